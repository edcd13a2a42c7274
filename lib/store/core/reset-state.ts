import { type StateCleared, type StateReset } from '../../ledger/state.store.js';
import { liveDocument, putDocument } from './documents.js';
import { beginEpoch } from './epochs.js';
import { type Transaction } from './tables.js';

/** Implements StateStore.reset. */
export function resetState(tx: Transaction, { sessionId, namespaces, epoch, log }: StateReset): StateCleared | null {
  const lane = tx.lanes.get(sessionId);
  const head = log && { ...log.head, sessionId };
  if (head && (liveDocument(tx, head)?.version ?? 0) !== log.ifVersion) return null;
  const documents = namespaces.map(
    (namespace) => [namespace, tx.documents.clear(sessionId, namespace, tx.now)] as const,
  );
  const messages = log ? tx.messages.clear(sessionId) : 0;
  const hasHadTurns = lane !== undefined && lane.nextPosition > 1;
  if (hasHadTurns) {
    beginEpoch(tx, lane, namespaces, epoch);
    if (head) {
      const { now } = tx;
      const value = JSON.stringify(log.value);
      putDocument(tx, head, {
        value,
        batches: '[]',
        version: tx.nextVersion(log.ifVersion),
        createdAt: now,
        accessedAt: now,
        expiresAt: null,
      });
    }
  }
  return { documents: Object.fromEntries(documents), messages };
}
