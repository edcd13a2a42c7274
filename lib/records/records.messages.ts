import { loggedId } from '../common/log-details.js';
import { type UnreadableRecordError } from '../common/sessions.error.js';

const UNREADABLE_CURE =
  'The log names each of them ("Skipped a corrupt session"). If a newer version wrote them, update this process.';

/** The messages of `SessionRecords`. */
export const recordsMessages = {
  wrongSelection: (): string =>
    'must be exactly { sessionId }, { userId, workspaceId } (null: no workspace) or { userId, allWorkspaces: true }.',

  notErased: (left: number, erased: number): string =>
    `SessionRecords.erase: ${erased} sessions are erased, but ${left} sessions of the user cannot be read. ${UNREADABLE_CURE} ` +
    'Call erase({ sessionId }) for each.',

  notExported: (left: number): string =>
    `SessionRecords.export: ${left} sessions of the user cannot be read. ${UNREADABLE_CURE} Repair them, and export again.`,

  skipped: ({ kind, recordId }: UnreadableRecordError): string =>
    `Skipped a corrupt ${kind}, ${loggedId(recordId)}, in an export. Repair or delete it, and export again.`,

  noErase: (): string =>
    'SessionRecords.erase: the custom session store has no `erase`. It must implement AtomicSessionStoreAdapter.',
};
