import { type StateCleared, type StateReset } from 'nestjs-agent-sessions';
import { documentAt, live, put } from './document-rows.js';
import { type Store } from './store.js';
import { type Epochs, type LaneRow } from './tables.js';

export function resetState(store: Store, { sessionId, namespaces, epoch, log }: StateReset): StateCleared | null {
  const head = log && { ...log.head, sessionId };
  if (head && (documentAt(store, head)?.version ?? 0) !== log.ifVersion) return null;
  const documents = namespaces.map((namespace) => [namespace, clear(store, sessionId, namespace)] as const);
  const messages = log ? [...store.messages.by('log', [sessionId])] : [];
  for (const message of messages) store.messages.delete(message);
  const lane = store.lanes.get(sessionId);
  // Without a turn nobody has begun, and nothing is to be known of the session.
  if (lane && lane.nextPosition > 1) {
    const begun = Object.fromEntries(namespaces.map((namespace) => [namespace, epoch]));
    store.lanes.put({ ...lane, epochs: { ...lane.epochs, ...begun } });
    if (head) {
      const { value, ifVersion } = log;
      put(store, head, { value, batches: [], version: store.nextVersion(ifVersion), createdAt: store.time() }, {});
    }
  }
  return { documents: Object.fromEntries(documents), messages: messages.length };
}

/** @returns how many went that had not expired */
function clear(store: Store, sessionId: string, namespace: string): number {
  const count = [...live(store, { sessionId, namespace })].length;
  for (const row of store.documents.by('session', [sessionId, namespace])) store.documents.delete(row);
  return count;
}

/** Of namespaces, those that were reset since a turn was claimed first. */
export function resetSince(
  lane: LaneRow | undefined,
  epochs: Epochs | undefined,
  namespaces: readonly string[],
): string[] {
  const [now, then] = [lane?.epochs, epochs].map((each) => new Map(Object.entries(each ?? {})));
  return namespaces.filter((namespace) => now.get(namespace) !== then.get(namespace));
}
