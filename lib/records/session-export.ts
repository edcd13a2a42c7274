import { Logger } from '@nestjs/common';
import { UnreadableRecordError } from '../common/sessions.error.js';
import { type ConversationMessage } from '../ledger/message.js';
import { isSameSession } from '../ledger/session.lifecycle.js';
import { type Session } from '../ledger/session.js';
import { type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type StoredSignal } from '../ledger/turn.store.js';
import { type StoredStep } from '../ledger/turn-step.js';
import { type Turn } from '../ledger/turn.js';
import { recordsMessages } from './records.messages.js';
import { shownDocument, shownStep } from './secrets.js';
import { type SessionRecord } from './session-record.js';

const logger = new Logger('SessionRecords');

/**
 * Iterates over all stored data of one session, page by page. Ends if the session is deleted meanwhile, because its id
 * may belong to another one then. Skips and logs records that cannot be read.
 */
export async function* exportSession(store: SessionsAdapter, session: Session): AsyncGenerator<SessionRecord, void> {
  const { id: sessionId } = session;
  yield { type: 'session', sessionId, session };
  for await (const message of messagesOf(store, session)) yield { type: 'message', sessionId, message };
  for await (const turn of turnsOf(store, session)) {
    yield { type: 'turn', sessionId, turn };
    yield* partsOf(store, turn);
  }
  for (const orchestrator of sorted(await store.checkpoints.orchestrators(sessionId))) {
    for await (const checkpoint of readable(checkpointsOf(store, session, orchestrator))) {
      yield { type: 'checkpoint', sessionId, checkpoint };
    }
  }
  for (const namespace of sorted(await store.state.namespaces(sessionId))) {
    for await (const entry of documentsOf(store, session, namespace)) {
      const shown = shownDocument(namespace, entry);
      const name = { namespace, scope: entry.scope, key: entry.key };
      if (shown) yield { type: 'document', sessionId, name, ...shown };
    }
  }
}

async function* partsOf(store: SessionsAdapter, { id: turnId, sessionId }: Turn): AsyncGenerator<SessionRecord, void> {
  for await (const step of readable(stepsOf(store, turnId))) {
    yield { type: 'step', sessionId, turnId, step: shownStep(step) };
  }
  for await (const signal of readable(signalsOf(store, turnId))) yield { type: 'signal', sessionId, turnId, signal };
  for await (const event of eventsOf(store, turnId)) yield { type: 'event', sessionId, turnId, event };
}

async function* stepsOf({ turns }: SessionsAdapter, turnId: string): AsyncGenerator<StoredStep, void> {
  yield* sorted(await turns.steps(turnId), ({ kind, iteration, intent, parent, name, key }) => [
    iteration,
    intent,
    parent,
    name,
    kind,
    typeof key,
    key,
  ]);
}

async function* signalsOf({ turns }: SessionsAdapter, turnId: string): AsyncGenerator<StoredSignal, void> {
  yield* sorted(await turns.signals(turnId), ({ name }) => [name]);
}

const eventsOf = ({ events }: SessionsAdapter, turnId: string) =>
  readPages(
    (after: number | undefined, limit) => events.read(turnId, after ?? 0, limit),
    ({ offset }) => offset,
  );

/** Reads the messages one by one where a page has one that cannot be read. Their positions have no gaps. */
async function* messagesOf(store: SessionsAdapter, session: Session): AsyncGenerator<ConversationMessage, void> {
  for (let after = 0, limit = PAGE; ;) {
    try {
      const page = await ofSession(store, session, store.conversations.page(session.id, { after, limit }));
      yield* page;
      if (page.length < limit) return;
      after = page[page.length - 1].position;
    } catch (error) {
      const unreadable = asSkippable(error);
      if (limit === 1) {
        logger.error(recordsMessages.skipped(unreadable));
        after += 1;
      }
      limit = limit === 1 ? PAGE : 1;
    }
  }
}

const turnsOf = (store: SessionsAdapter, session: Session) =>
  readPages(
    (after: number | undefined, limit) =>
      ofSession(store, session, store.turns.list({ sessionId: session.id, after: after ?? 0, limit })),
    ({ position }) => position,
  );

const checkpointsOf = (store: SessionsAdapter, session: Session, orchestrator: string) =>
  readPages(
    (before: number | undefined, limit) => {
      const query = { limit, ...(before === undefined ? {} : { before }) };
      return ofSession(store, session, store.checkpoints.history(orchestrator, session.id, query));
    },
    ({ turnIndex }) => turnIndex,
  );

const documentsOf = (store: SessionsAdapter, session: Session, namespace: string) =>
  readPages(
    (after: { scope: string; key: string } | undefined, limit) => {
      const query = { sessionId: session.id, namespace, limit, ...(after ? { after } : {}) };
      return ofSession(store, session, store.state.list(query));
    },
    ({ scope, key }) => ({ scope, key }),
  );

/** Returns a page, or nothing if the session was deleted before it was read. */
async function ofSession<T>(
  { sessions }: SessionsAdapter,
  session: Session,
  page: Promise<readonly T[]>,
): Promise<readonly T[]> {
  const items = await page;
  const stored = items.length === 0 ? null : await sessions.fetchById(session.id);
  return stored && isSameSession(stored, session) ? items : [];
}

/** Ends a list at the first record that cannot be read, and logs it. */
async function* readable<T>(records: AsyncIterable<T>): AsyncGenerator<T, void> {
  try {
    yield* records;
  } catch (error) {
    logger.error(recordsMessages.skipped(asSkippable(error)));
  }
}

/** Returns the error of a record that cannot be read. @throws any other error, also that of the session itself */
function asSkippable(error: unknown): UnreadableRecordError {
  if (!UnreadableRecordError.isInstance(error) || error.kind === 'session') throw error;
  return error;
}

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
async function* readPages<T, Place>(
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
