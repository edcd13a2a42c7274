import { isDeepStrictEqual } from 'node:util';
import { type JsonObject, type JsonValue } from '../../common/json.js';
import { type NewMessage } from '../../ledger/conversation.store.js';
import { type ConversationMessage } from '../../ledger/message.js';
import { entriesOf, foldOf, versionAfter } from './document-fixtures.js';
import { create, HOUR, insertIdle, PLENTY, RULES } from './session-fixtures.js';
import { DESK, NOTES, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const MIB = 1_048_576;
/** The maximum sizes of metadata and of a state that the options can allow. */
const LARGEST = 16 * MIB;
/** The size of values without a limit, or with a much lower default limit. */
const LARGE = MIB;

/**
 * Tests that the store returns the largest values and the largest numbers of rows that the services accept. Failures
 * do not print the values, which have up to several MiB.
 */
export function describeSizes(context: ConformanceContext): void {
  describe('sizes', () => {
    let lane: TestLane;

    beforeEach(async () => {
      lane = await TestLane.open(context);
    });

    // Later tests must not run on a store full of large values.
    afterEach(async () => {
      await context.sessions.delete(lane.sessionId);
    });

    it('TRN-07 stores a large input, large attributes and a large reply of a turn', async () => {
      const request = { input: { text: text(LARGE), content: [{ type: 'text', text: text(LARGE) }] } };
      const attributes = sized(16_384);
      const accepted = await lane.queue('', { request, attributes });
      expectSame([accepted.request, accepted.attributes], [request, attributes]);
      const { hold, turn } = await lane.take();
      expectSame([turn.request, turn.attributes], [request, attributes]);

      const answer = { reply: { text: text(LARGE), data: sized(LARGE) }, report: sized(LARGE) };
      const message: NewMessage = { id: context.id(), role: 'assistant', content: text(LARGE), metadata: sized(LARGE) };
      await lane.settle(hold, { ...answer, messages: [message] });

      const stored = await lane.get(turn.id);
      expectSame([stored?.reply, stored?.report], [answer.reply, answer.report]);
      const [said] = await lane.messages();
      expectSame(contentOf(said), contentOf(message));
    });

    it('TRN-07 stores an input of 4 MiB', async () => {
      const request = { input: { text: 'x'.repeat(4 * MIB) } };
      const { id } = await lane.queue('', { request });
      expectSame((await lane.get(id))?.request, request);
    });

    it('BOT-20 stores the largest orchestrator state that the options can allow', async () => {
      const { hold, turn } = await lane.run('hello');
      const state = sized(LARGEST);
      await lane.settle(hold, { checkpoint: { ...lane.checkpoint(0, turn.id), state } });

      expectSame((await context.adapter.checkpoints.load(DESK, lane.sessionId))?.state, state);
    });

    it('SES-12 stores the largest session metadata that the options can allow, to the byte', async () => {
      const metadata = sized(LARGEST);
      const { id } = await create(context);
      await context.sessions.mergeMetadata(id, metadata, LARGEST);
      expectSame((await context.sessions.fetchById(id))?.metadata, metadata);
    });

    it('BOT-30 TRN-13 stores large step results and signal payloads', async () => {
      const { turns } = context.adapter;
      const { hold, turn } = await lane.run('hello');
      const value = sized(LARGE);
      const saved = await turns.saveStep(hold, lane.step('ask', value));
      expectSame(saved.value, value);
      await turns.signal(turn.id, 'go', value);
      const { received } = await turns.wait(hold, { signal: 'go', step: lane.step('go', null) });
      expectSame(received?.payload, value);
      await turns.release(hold, 0);

      const { steps } = await lane.take();
      const stored = Object.fromEntries(steps.map((step) => [step.name, step.value]));
      expectSame([stored.ask, stored.go], [value, { received: true, payload: value }]);
    });

    it('stores a large document', async () => {
      const { state } = context.adapter;
      const address = { namespace: context.id(), scope: '', sessionId: lane.sessionId, key: 'key' };
      const value = sized(LARGE);
      await state.set(address, value);
      expectSame((await state.get(address))?.value, value);
    });

    it('ORC-05 ORC-30 stores many batches and large entries, and returns them to a turn', async () => {
      const { state } = context.adapter;
      const address = { ...NOTES, sessionId: lane.sessionId };
      const entries: JsonValue[] = [...many(300, (n) => n), sized(LARGE)];
      await state.set(address, sized(LARGEST));
      const small = await state.set(address, 'small');
      for (const entry of entries) await state.append(address, { id: context.id(), entries: [entry] });
      const { hold, documents } = await lane.run('hello', { documents: { [DESK]: [NOTES] } });
      const stored = await state.get(address);
      expectSame(documents, [stored]);
      expectSame(stored && [stored.version, entriesOf(stored)], [versionAfter(small, 301), entries]);

      const fold = foldOf(stored, 301, sized(LARGEST));
      const more = many(1000, (index) => ({ index }));
      await lane.settle(hold, { stateChanges: [{ name: NOTES, append: { id: context.id(), entries: more, fold } }] });
      const folded = await state.get(address);
      expectSame(folded && [folded.version, folded.value, entriesOf(folded)], [
        versionAfter(small, 302),
        fold.value,
        more,
      ]);
    });

    it('ORC-30 returns 100 documents to a turn, and stores as many changes of one', async () => {
      const names = many(100, (n) => ({ ...NOTES, key: `notes ${n}` }));
      const { hold } = await lane.run('first');
      await lane.queue('second');
      const stateChanges = names.map((name) => ({
        name,
        append: { id: context.id(), entries: [name.key], initial: 0 },
      }));
      const { next } = await lane.settle(hold, { stateChanges }, lane.claimRequest({ documents: { [DESK]: names } }));
      expect(next?.documents.map((document) => document?.batches[0]?.entries)).toEqual(names.map(({ key }) => [key]));
    });

    it('STA-03 BOT-25 stores 5,000 messages in one settle, and returns them in one window', async () => {
      const { hold } = await lane.run('first');
      const messages = many(5000, (n): NewMessage => ({ id: context.id(), role: 'user', content: `message ${n}` }));
      await lane.settle(hold, { messages });
      await lane.queue('second');
      const { history } = await lane.take({ windows: { [DESK]: 10_000 } });

      expect(history.map(contentOf)).toEqual(messages.map(contentOf));
      expect(history.map(({ position }) => position)).toEqual(many(5000, (n) => n + 1));
      expect(await context.adapter.conversations.page(lane.sessionId, { limit: 10_000 })).toEqual(history);
    });

    it('BOT-30 stores 200 steps of a turn', async () => {
      const { hold } = await lane.run('hello');
      const steps = many(200, (n) => ({ ...lane.step('ask', n), key: n }));
      for (const step of steps) await lane.adapter.turns.saveStep(hold, step);
      await lane.adapter.turns.release(hold, 0);

      const stored = [...(await lane.take()).steps].sort((a, b) => Number(a.key) - Number(b.key));
      expect(stored).toEqual(steps);
    });

    it('TRN-07 queues 500 turns, lists them in one page and supersedes them in one call', async () => {
      const texts = many(500, (n) => `turn ${n}`);
      await Promise.all(texts.map((each) => lane.accept(each, { maxQueued: 1000 })));
      const listed = (await lane.list()).map(({ request }) => request.input.text);
      expect(listed.toSorted()).toEqual(texts.toSorted());

      await lane.queue('new', { whenBusy: 'latest' });
      expect(await lane.drain()).toEqual(['new']);
    });

    it('SES-06 stores as many surfaces of a session as the options can allow', async () => {
      const surfaces = many(1000, (n) => `surface ${n}`);
      const userId = context.id();
      const { session } = await context.sessions.create(
        { id: context.id(), userId, attachedSurfaces: surfaces, metadata: {} },
        { ...RULES, maxSurfaces: 1000 },
      );
      expect((await context.sessions.fetchById(session.id))?.attachedSurfaces).toEqual(surfaces);
      expect(await context.sessions.count({ userId, surfaceId: 'surface 999' })).toBe(1);
    });

    it('SES-04 SES-09 SES-10 SES-11 finds 1,000 sessions in one page, and sweeps 500 in one batch', async () => {
      await context.sessions.expireStale({ idleMs: HOUR, maxMs: HOUR }, PLENTY);
      await context.sessions.suspendStale(HOUR, PLENTY);
      const userId = context.id();
      const idle = await insertIdle(context, 2 * HOUR, { userId });
      await Promise.all(many(999, () => context.sessions.insert({ ...idle, id: context.id() })));

      expect(await context.sessions.fetchMany({ userId, limit: 1000 })).toHaveLength(1000);
      expect(await context.sessions.suspendStale(HOUR, 500)).toHaveLength(500);
      expect(await context.sessions.expireStale({ idleMs: HOUR }, 500)).toHaveLength(500);
      expect(await context.sessions.count({ userId, state: 'expired' })).toBe(500);
    });
  });
}

function many<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

/** Returns a string of the given number of UTF-8 bytes, with characters of one to four bytes. */
function text(bytes: number): string {
  const piece = 'aé日👩';
  return piece.repeat(Math.floor(bytes / Buffer.byteLength(piece))).padEnd(bytes % Buffer.byteLength(piece), '.');
}

/** Returns an object of exactly the given number of bytes as JSON. */
function sized(bytes: number): JsonObject {
  const object = { list: [1, 2, 3], nested: { flag: true }, text: '' };
  const rest = bytes - Buffer.byteLength(JSON.stringify(object));
  return { ...object, text: 'x'.repeat(rest) };
}

function contentOf({ id, role, content, metadata }: ConversationMessage | NewMessage): JsonValue {
  return [id, role, content, metadata ?? null];
}

function expectSame(actual: unknown, expected: unknown): void {
  expect(isDeepStrictEqual(actual, expected)).toBe(true);
}
