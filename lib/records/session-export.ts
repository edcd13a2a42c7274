import { type Session } from '../ledger/session.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type Turn } from '../ledger/turn.js';
import { shownDocument, shownStep } from './secrets.js';
import { type SessionRecord } from './session-record.js';

/** Iterates over all stored data of one session, page by page. */
export async function* exportSession(store: SessionsAdapter, session: Session): AsyncGenerator<SessionRecord, void> {
  const { id: sessionId } = session;
  yield { type: 'session', sessionId, session };
  for await (const message of messagesOf(store, sessionId)) yield { type: 'message', sessionId, message };
  for await (const turn of turnsOf(store, sessionId)) {
    yield { type: 'turn', sessionId, turn };
    yield* partsOf(store, turn);
  }
  for (const orchestrator of sorted(await store.checkpoints.orchestrators(sessionId))) {
    for await (const checkpoint of checkpointsOf(store, sessionId, orchestrator)) {
      yield { type: 'checkpoint', sessionId, checkpoint };
    }
  }
  for (const namespace of sorted(await store.state.namespaces(sessionId))) {
    for await (const entry of documentsOf(store, sessionId, namespace)) {
      const shown = shownDocument(namespace, entry);
      const name = { namespace, scope: entry.scope, key: entry.key };
      if (shown) yield { type: 'document', sessionId, name, ...shown };
    }
  }
}

async function* partsOf(
  { turns, events }: SessionsAdapter,
  { id: turnId, sessionId }: Turn,
): AsyncGenerator<SessionRecord, void> {
  const steps = sorted(await turns.steps(turnId), ({ kind, iteration, intent, parent, name, key }) => [
    iteration,
    intent,
    parent,
    name,
    kind,
    typeof key,
    key,
  ]);
  for (const step of steps) yield { type: 'step', sessionId, turnId, step: shownStep(step) };
  const signals = sorted(await turns.signals(turnId), ({ name }) => [name]);
  for (const signal of signals) yield { type: 'signal', sessionId, turnId, signal };
  const ofTurn = readPages(
    (after: number | undefined, limit) => events.read(turnId, after ?? 0, limit),
    ({ offset }) => offset,
  );
  for await (const event of ofTurn) yield { type: 'event', sessionId, turnId, event };
}

const messagesOf = ({ conversations }: SessionsAdapter, sessionId: string) =>
  readPages(
    (after: number | undefined, limit) => conversations.page(sessionId, { after: after ?? 0, limit }),
    ({ position }) => position,
  );

const turnsOf = ({ turns }: SessionsAdapter, sessionId: string) =>
  readPages(
    (after: number | undefined, limit) => turns.list({ sessionId, after: after ?? 0, limit }),
    ({ position }) => position,
  );

const checkpointsOf = ({ checkpoints }: SessionsAdapter, sessionId: string, orchestrator: string) =>
  readPages(
    (before: number | undefined, limit) =>
      checkpoints.history(orchestrator, sessionId, { limit, ...(before === undefined ? {} : { before }) }),
    ({ turnIndex }) => turnIndex,
  );

const documentsOf = ({ state }: SessionsAdapter, sessionId: string, namespace: string) =>
  readPages(
    (after: { scope: string; key: string } | undefined, limit) =>
      state.list({ sessionId, namespace, limit, ...(after ? { after } : {}) }),
    ({ scope, key }) => ({ scope, key }),
  );

/** Sorts by part, and strings by code unit, so that the order is the same everywhere. */
function sorted<T>(
  items: readonly T[],
  keyOf: (item: T) => readonly (string | number)[] = (item) => [String(item)],
): T[] {
  return [...items].sort((a, b) => {
    const [one, other] = [keyOf(a), keyOf(b)];
    const at = one.findIndex((part, index) => part !== other[index]);
    return at === -1 ? 0 : one[at] < other[at] ? -1 : 1;
  });
}

const PAGE = 50;

/**
 * Iterates over a list of the store, page by page.
 * @param read returns the items after a position; from the beginning if absent
 */
export async function* readPages<T, Place>(
  read: (after: Place | undefined, limit: number) => Promise<readonly T[]>,
  placeOf: (item: T) => Place,
): AsyncGenerator<T, void> {
  for (let after: Place | undefined; ;) {
    const page = await read(after, PAGE);
    yield* page;
    if (page.length < PAGE) return;
    after = placeOf(page[page.length - 1]);
  }
}
