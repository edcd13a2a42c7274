import { type Store } from './store.js';
import { isOpen, type TurnRow } from './tables.js';

/** Removes all that is keyed by the session: a session that is not there, or in a foreign store, has contents, too. */
export function removeSession(store: Store, sessionId: string): boolean {
  const session = store.sessions.get(sessionId);
  if (session) store.sessions.delete(session);
  const lane = store.lanes.get(sessionId);
  if (lane) store.lanes.delete(lane);
  for (const row of store.turns.by('lane', [sessionId])) {
    removeTurn(store, row);
    if (isOpen(row.turn)) store.hint(row.turn.id);
  }
  for (const checkpoint of store.checkpoints.by('session', [sessionId])) store.checkpoints.delete(checkpoint);
  for (const message of store.messages.by('log', [sessionId])) store.messages.delete(message);
  for (const document of store.documents.by('session', [sessionId])) store.documents.delete(document);
  return session !== undefined;
}

/** Removes a turn and all that is keyed by it. */
export function removeTurn(store: Store, row: TurnRow): void {
  for (const step of store.steps.by('turn', [row.turn.id])) store.steps.delete(step);
  for (const signal of store.signals.by('turn', [row.turn.id])) store.signals.delete(signal);
  for (const batch of store.batches.by('turn', [row.turn.id])) store.batches.delete(batch);
  store.turns.delete(row);
}
