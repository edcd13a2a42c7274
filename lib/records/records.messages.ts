/** The messages of `SessionRecords`. */
export const recordsMessages = {
  wrongSelection: (): string =>
    'must be exactly { sessionId }, { userId, workspaceId } (null: no workspace) or { userId, allWorkspaces: true }.',

  noErase: (): string =>
    'SessionRecords.erase: the custom session store has no `erase`. It must implement AtomicSessionStoreAdapter.',
};
