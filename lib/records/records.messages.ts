/** The messages of `SessionRecords`. */
export const recordsMessages = {
  wrongSelection: (): string =>
    'must be exactly { sessionId }, { userId, workspaceId } (null: no workspace) or { userId, allWorkspaces: true }.',

  unreadable: (left: number, erased: number): string =>
    `SessionRecords.erase: ${erased} sessions are erased, but ${left} sessions of the user cannot be read. The log names ` +
    'each of them ("Skipped a corrupt session"). Call erase({ sessionId }) for each, or update this process if a newer version wrote them.',

  noErase: (): string =>
    'SessionRecords.erase: the custom session store has no `erase`. It must implement AtomicSessionStoreAdapter.',
};
