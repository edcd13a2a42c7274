import { foldOf } from './document-fixtures.js';
import { type JsonObject, type JsonValue } from '../../common/json.js';
import { type NewMessage } from '../../ledger/conversation.store.js';
import { type MessagePart } from '../../ledger/message.js';
import { type TurnErrorRecord, type TurnRequest } from '../../ledger/turn.js';
import { deepestJson, HOSTILE_TEXTS, hostileJson, prototypeKeys } from './hostile-values.js';
import { create, PLENTY } from './session-fixtures.js';
import { DESK, NOTES, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** The maximum JSON depth of the services, less the levels that the ports add around a value. */
const DEEPEST = 190;
const TEXT = HOSTILE_TEXTS.join('\n');

/** Tests that every field of every port returns the values of the application unchanged. */
export function describeHostileValues(context: ConformanceContext): void {
  describe('hostile values', () => {
    let lane: TestLane;

    beforeEach(async () => {
      lane = await TestLane.open(context);
    });

    afterEach(() => {
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    });

    it('TRN-01 a turn keeps its input, and passes it to its worker', async () => {
      const request: TurnRequest = {
        input: { text: TEXT, content: contentParts(), metadata: hostileJson() },
        history: messages().map(({ id: _, ...draft }) => draft),
        statePatch: hostileJson(),
        force: true,
      };
      const turn = await lane.queue('', { request, attributes: hostileJson() });

      expect({ request: turn.request, attributes: turn.attributes }).toEqual({ request, attributes: hostileJson() });
      expect(await lane.get(turn.id)).toEqual(turn);
      expect(await lane.list()).toEqual([turn]);
      expect((await lane.take()).turn).toMatchObject({ request: turn.request, attributes: turn.attributes });
    });

    it('TRN-01 a turn keeps its reply, its report and its messages', async () => {
      const { hold, turn } = await lane.run('hello');
      const answer = { reply: { text: TEXT, data: hostileJson() }, report: hostileJson() };
      const said = messages();
      const settled = await lane.settle(hold, { ...answer, messages: said });

      expect(settled.turn).toMatchObject(answer);
      expect(await lane.get(turn.id)).toEqual(settled.turn);
      expect(await lane.list()).toEqual([settled.turn]);
      expect(await lane.messages()).toEqual(
        said.map((message) => ({ ...message, ...placed(), turnId: turn.id, orchestrator: DESK })),
      );
    });

    it('TRN-08 a turn keeps its error, for its retry and after it has failed', async () => {
      const error: TurnErrorRecord = { name: TEXT, message: TEXT, code: TEXT, details: hostileJson() };
      const { hold, turn } = await lane.run('hello');
      const retried = await lane.adapter.turns.retry(hold, { error, delayMs: 0 });
      expect(retried.error).toEqual(error);
      expect((await lane.get(turn.id))?.error).toEqual(error);

      const { turn: failed } = await lane.settle((await lane.take()).hold, { status: 'failed', error });
      expect(failed.error).toEqual(error);
      expect((await lane.get(turn.id))?.error).toEqual(error);
    });

    it('BOT-30 a step keeps its result', async () => {
      const { hold } = await lane.run('hello');
      const values: JsonValue[] = [hostileJson(), TEXT, null, false, 0, '', [], {}, deepestJson(DEEPEST)];
      const steps = values.map((value, key) => ({ ...lane.step('ask', value), key }));
      for (const step of steps) expect(await lane.adapter.turns.saveStep(hold, step)).toEqual(step);
      for (const step of steps) {
        expect(await lane.adapter.turns.saveStep(hold, { ...step, value: 'another' })).toEqual(step);
      }

      await lane.adapter.turns.release(hold, 0);
      const stored = [...(await lane.take()).steps].sort((a, b) => Number(a.key) - Number(b.key));
      expect(stored).toEqual(steps);
    });

    it.each([
      ['a structure', hostileJson()],
      ['a string', TEXT],
      ['null', null],
      ['false', false],
      ['0', 0],
    ] as const)(
      'TRN-13 a signal keeps its payload, %s, whether it came before or during the wait',
      async (_, payload) => {
        const { turns } = lane.adapter;
        const { hold, turn } = await lane.run('hello');
        await turns.signal(turn.id, 'early', payload);
        const early = await turns.wait(hold, { signal: 'early', step: lane.step('early', null) });
        expect(early.received).toEqual({ payload });

        await turns.wait(hold, { signal: 'late', step: lane.step('late', null) });
        await turns.signal(turn.id, 'late', payload);
        const { steps } = await lane.take();
        expect(steps).toHaveLength(2);
        for (const { value } of steps) expect(value).toEqual({ received: true, payload });
      },
    );

    it('TRN-06 an interrupted turn keeps the message of the user', async () => {
      const input = { text: TEXT, content: contentParts(), metadata: hostileJson() };
      const { id } = await lane.queue('', { request: { input } });
      await lane.adapter.turns.wait((await lane.take()).hold, { signal: 'go', step: lane.step('go', null) });
      await lane.adapter.turns.cancel(id, 'interrupt');

      expect(await lane.messages()).toMatchObject([{ content: input.content, metadata: input.metadata }]);
    });

    it('BOT-20 a checkpoint keeps its state, and passes it to the next turn', async () => {
      const { checkpoints } = context.adapter;
      const state = { ...hostileJson(), deep: deepestJson(DEEPEST) };
      const given = { ...lane.checkpoint(0), state, lastRoute: [...HOSTILE_TEXTS] };
      const saved = await checkpoints.append(given, 'all');

      expect(saved).toEqual({ ...given, savedAt: saved.savedAt });
      expect(await checkpoints.load(DESK, lane.sessionId)).toEqual(saved);
      expect(await checkpoints.history(DESK, lane.sessionId)).toEqual([saved]);
      expect((await lane.run('hello')).checkpoint).toEqual(saved);
    });

    it('STA-03 a message keeps its content and metadata, and passes them to the next turn', async () => {
      const { conversations } = context.adapter;
      const given = messages();
      const appended = await conversations.append(lane.sessionId, given);

      expect(appended).toEqual(given.map((message) => ({ ...message, ...placed() })));
      expect(await conversations.page(lane.sessionId)).toEqual(appended);
      expect(await conversations.window(lane.sessionId, 100)).toEqual(appended);
      await lane.queue('hello');
      expect((await lane.take({ windows: { [DESK]: 100 } })).history).toEqual(appended);
    });

    it('SES-12 a session keeps its metadata on create and on merge', async () => {
      const metadata: JsonObject = { ...hostileJson(), deep: deepestJson(DEEPEST) };
      const made = await create(context, { metadata });
      const { toJSON: _, ...patch } = metadata;
      const bare = await create(context);
      const { session: merged } = await context.sessions.mergeMetadata(bare.id, patch, PLENTY);

      expect(made.metadata).toEqual(metadata);
      expect(await context.sessions.fetchById(made.id)).toEqual(made);
      expect(await context.sessions.fetchMany({ userId: made.userId })).toEqual([made]);
      expect(merged.metadata).toEqual(patch);
      expect(await context.sessions.fetchById(merged.id)).toEqual(merged);
      expect((await context.sessions.touch(merged.id)).session.metadata).toEqual(patch);
    });

    it('SES-12 a merge removes keys of any name, and only those', async () => {
      const keys = { ...prototypeKeys(), ...(hostileJson().keys as JsonObject) };
      const { id } = await create(context, { metadata: { ...keys, kept: true } });
      const removal = Object.fromEntries(Object.keys(keys).map((key) => [key, null]));

      const { session } = await context.sessions.mergeMetadata(id, removal, PLENTY);
      expect(session.metadata).toEqual({ kept: true });
      expect(await context.sessions.fetchById(id)).toEqual(session);
    });

    it('a document keeps its value', async () => {
      const { state } = context.adapter;
      const address = { namespace: context.id(), scope: '', sessionId: lane.sessionId, key: 'key' };
      for (const value of [hostileJson(), TEXT, deepestJson(DEEPEST), null]) {
        const written = await state.set(address, value);
        expect(written?.value).toEqual(value);
        expect(await state.get(address)).toEqual(written);
      }
    });

    it.each([
      ['structures', [hostileJson(), deepestJson(DEEPEST)]],
      ['strings', [TEXT, ...HOSTILE_TEXTS]],
      ['empty values', ['', [], {}, [[]], null, false, 0]],
      ['one empty list', [[]]],
      ['one empty object', [{}]],
    ])('ORC-05 a document keeps its entries, its fold and its initial value, %s', async (_, entries) => {
      const { state } = context.adapter;
      const address = { namespace: context.id(), scope: '', sessionId: lane.sessionId, key: 'key' };
      const append = { id: context.id(), entries, initial: entries };
      const made = await state.append(address, append);
      expect(made).toMatchObject({ value: entries, batches: [{ id: append.id, entries }] });
      const both = await state.append(address, { id: context.id(), entries });
      expect(both).toMatchObject({ value: entries, batches: [{ entries }, { entries }] });
      expect(both?.batches[0]).toEqual(made?.batches[0]);
      expect(await state.get(address)).toEqual(both);
      const fold = foldOf(both, 1, entries[0]);
      const folded = await state.append(address, { id: context.id(), entries: [], fold });
      expect(folded).toEqual({
        ...both,
        value: entries[0],
        batches: both?.batches.slice(1),
        accessedAt: folded?.accessedAt,
      });
      expect(await state.get(address, {})).toMatchObject({ value: entries[0], batches: folded?.batches });
      expect(await state.set(address, 'again')).toMatchObject({ value: 'again', batches: [] });
    });

    it('ORC-30 a turn receives documents unchanged, and appends to them', async () => {
      const entries = [hostileJson(), TEXT, deepestJson(DEEPEST), [], {}, null];
      const { hold } = await lane.run('first');
      await lane.queue('second');
      const begun = { id: context.id(), entries, initial: entries };
      const request = lane.claimRequest({ documents: { [DESK]: [NOTES] } });
      const { next } = await lane.settle(hold, { stateChanges: [{ name: NOTES, append: begun }] }, request);
      expect(next?.documents).toMatchObject([{ value: entries, batches: [{ id: begun.id, entries }] }]);
      expect(await lane.adapter.state.get({ ...NOTES, sessionId: lane.sessionId })).toEqual(next?.documents[0]);
      expect((await lane.take(request)).documents).toEqual(next?.documents);

      const folded = { id: context.id(), entries, fold: { through: begun.id, value: hostileJson() } };
      await lane.settle(next?.hold ?? hold, { stateChanges: [{ name: NOTES, append: folded }] });
      const { documents } = await lane.run('third', { documents: { [DESK]: [NOTES] } });
      expect(documents).toMatchObject([{ value: hostileJson(), batches: [{ id: folded.id, entries }] }]);
    });

    function messages(): NewMessage[] {
      return [
        { id: context.id(), role: 'user', content: TEXT, name: TEXT, metadata: hostileJson() },
        { id: context.id(), role: 'user', content: contentParts() },
        {
          id: context.id(),
          role: 'assistant',
          content: null,
          toolCalls: [
            { id: TEXT, name: TEXT, arguments: TEXT },
            { id: '', name: '', arguments: hostileJson() },
          ],
        },
        { id: context.id(), role: 'tool', content: '', toolCallId: TEXT, metadata: { deep: deepestJson(DEEPEST) } },
      ];
    }
  });
}

function contentParts(): MessagePart[] {
  return [
    { ...hostileJson(), type: 'text', text: TEXT },
    { type: TEXT, ...(hostileJson().keys as JsonObject) },
    { type: '' },
  ];
}

/** The fields that the log adds to a message. Their values do not matter here. */
function placed(): { position: number; createdAt: string } {
  return { position: expect.any(Number) as number, createdAt: expect.any(String) as string };
}
