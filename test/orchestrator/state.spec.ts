import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import {
  defineOrchestrator,
  type JsonObject,
  type JsonValue,
  turnOutcome,
  PermanentTurnError,
  reply,
  StateSerializationError,
  TooLargeError,
  TurnCancelledError,
  type TurnContext,
  TurnFailedError,
  type TurnInput,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { aborted, type Application, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

class Money {
  constructor(readonly cents: number) {}
}

const cycle: { self?: unknown } = {};
cycle.self = cycle;

const NOT_JSON: readonly { readonly what: string; readonly value: unknown; readonly path: string }[] = [
  { what: 'a Date', value: { order: { at: new Date(0) } }, path: 'state.order.at' },
  { what: 'a Map', value: { orders: new Map() }, path: 'state.orders' },
  { what: 'a Set', value: { orders: new Set() }, path: 'state.orders' },
  { what: 'a class instance', value: { price: new Money(5) }, path: 'state.price' },
  { what: 'a BigInt', value: { n: 1n }, path: 'state.n' },
  { what: 'a function', value: { list: [{ f: () => 1 }] }, path: 'state.list[0].f' },
  { what: 'a symbol', value: { s: Symbol('s') }, path: 'state.s' },
  { what: 'NaN', value: { total: NaN }, path: 'state.total' },
  { what: 'Infinity', value: { total: -Infinity }, path: 'state.total' },
  { what: 'a cycle', value: { cycle }, path: 'state.cycle.self' },
  { what: 'undefined in a list', value: { list: [1, undefined] }, path: 'state.list[1]' },
  { what: 'bytes', value: { bytes: Buffer.from('x') }, path: 'state.bytes' },
];

const WRONG_RESULTS: readonly { readonly what: string; readonly value: unknown; readonly message: RegExp }[] = [
  { what: 'null', value: null, message: /answer returned null\. Return reply/ },
  { what: 'a number', value: 42, message: /answer returned a number/ },
  { what: 'a list', value: ['hi'], message: /answer returned an? / },
  {
    what: 'a generator',
    value: emptyGenerator(),
    message: /cannot return a generator or a stream\. To stream a model, return streamReply\(turn, { model }\)/,
  },
  {
    what: 'a stream of the AI SDK',
    value: new (class {
      readonly textStream = [];
    })(),
    message: /return streamReply\(turn, { model }\)/,
  },
  { what: 'a response of the AI SDK', value: new Response('hi'), message: /return streamReply\(turn, { model }\)/ },
  { what: 'a class instance', value: new Money(5), message: /answer returned an? / },
  {
    what: 'a reply that is not a string',
    value: reply(42 as never),
    message: /a reply must be a string, not a number/,
  },
  { what: 'a reply that was not awaited', value: reply(Promise.resolve('hi') as never), message: /not a promise/ },
  {
    what: 'an unknown status',
    value: turnOutcome({ status: 'done' as never }),
    message: /status must be awaiting-input or completed/,
  },
  {
    what: 'a state that is not an object',
    value: turnOutcome({ state: [] as never }),
    message: /state must be an object/,
  },
  { what: 'invalid messages', value: turnOutcome({ messages: [{}] as never }), message: /messages\[0\]\.role/ },
];

async function* emptyGenerator(): AsyncGenerator<string, void> {}

describe.each(LIVE_STORES)('state over $name', ({ open }) => {
  it.each(NOT_JSON)(
    'BOT-07 $what in a returned state fails the turn with the path, before anything is stored',
    async ({ value, path }) => {
      const { app, say } = await startDesk(open, ({ input }) => (input.text === 'bad' ? value : { ok: true }));
      const sessionId = await app.session();
      await say(sessionId, 'good');
      const before = await stored(app, sessionId);
      const error = await rejection(say(sessionId, 'bad'), TurnFailedError);
      expect(error.failure).toMatchObject({
        name: 'StateSerializationError',
        code: 'STATE_NOT_SERIALIZABLE',
        details: { path },
      });
      expect(await app.turns.get(error.turnId)).toMatchObject({ failures: 1 });
      expect(await stored(app, sessionId)).toEqual(before);
    },
  );

  it.each(NOT_JSON)('BOT-07 $what in a state patch is refused before the turn is accepted', async ({ value, path }) => {
    const { app, say } = await startDesk(open, () => ({}));
    const sessionId = await app.session();
    const error = await rejection(say(sessionId, 'hi', { state: value as object }), StateSerializationError);
    expect(error).toMatchObject({ code: 'STATE_NOT_SERIALIZABLE', path });
    expect(await app.turns.list({ sessionId })).toEqual([]);
  });

  it.each<[string, (late: () => Promise<never>) => unknown]>([
    ['the state', (late) => ({ order: late() })],
    ['place of the state', (late) => reply('hi', { state: late() as never })],
    ['the data', (late) => reply('hi', { state: { total: NaN }, data: { price: late() } })],
    ['place of the reply', (late) => reply(late() as never)],
    ['a list', (late) => [late(), late()]],
  ])('FIX-05 a promise in %s that rejects after the turn does not end the process', async (_, answer) => {
    const late = async (): Promise<never> => {
      await delay(5);
      throw new Error('The price is not known.');
    };
    const unhandled: unknown[] = [];
    const listener = (reason: unknown): unknown => unhandled.push(reason);
    process.on('unhandledRejection', listener);
    const { app, say } = await startDesk(open, () => answer(late));
    await rejection(say(await app.session(), 'hi'), TurnFailedError);
    await delay(50);
    process.off('unhandledRejection', listener);
    expect(unhandled).toEqual([]);
  });

  it('BOT-07 the same goes for the first state, for data, for messages and for attributes', async () => {
    const at = new Date(0);
    const first = defineOrchestrator({ name: 'first', initialState: () => ({ at }), intents: { answer: () => 'hi' } });
    const data = defineOrchestrator({ name: 'data', intents: { answer: () => reply('hi', { data: { at } }) } });
    const messages = defineOrchestrator({
      name: 'messages',
      intents: {
        answer: () => turnOutcome({ messages: [{ role: 'assistant', content: 'hi', metadata: { at } as never }] }),
      },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [first, data, messages] });
    const sessionId = await app.session();
    const paths = { first: 'initialState.at', data: 'data.at', messages: 'messages[0].metadata.at' };
    for (const [name, path] of Object.entries(paths)) {
      const error = await rejection(app.turns.execute(name, 'hi', { sessionId }), TurnFailedError);
      expect(error.failure).toMatchObject({ code: 'STATE_NOT_SERIALIZABLE', details: { path } });
      expect(await app.checkpoints.load(name, sessionId)).toBeNull();
    }
    const refused = app.turns.execute('data', 'hi', { sessionId, attributes: { at } });
    expect((await rejection(refused, StateSerializationError)).path).toBe('attributes.at');
    expect(await app.adapter.conversations.page(sessionId)).toEqual([]);
  });

  it('BOT-07 any JSON comes back as it went in', async () => {
    const seen: unknown[] = [];
    const { app, say } = await startDesk(open, ({ state, input }) => {
      seen.push(state.value);
      return { value: JSON.parse(input.text) as JsonValue };
    });
    const sessionId = await app.session();
    await fc.assert(
      fc.asyncProperty(jsonValues(), async (value) => {
        const text = JSON.stringify(value);
        await say(sessionId, text);
        await say(sessionId, text);
        expect(seen.at(-1)).toEqual(JSON.parse(text));
      }),
      { numRuns: 25 },
    );
  });

  it('BOT-07 a state over the limit fails the turn; one at the limit does not', async () => {
    const empty = JSON.stringify({ note: '' }).length;
    const { app, say } = await startDesk(open, ({ input }) => ({ note: 'ä'.repeat(Number(input.text)) }), {
      maxStateBytes: empty + 200,
    });
    const sessionId = await app.session();
    await say(sessionId, '100');
    const before = await stored(app, sessionId);
    const error = await rejection(say(sessionId, '101'), TurnFailedError);
    expect(error.failure).toMatchObject({
      name: 'TooLargeError',
      code: 'TOO_LARGE',
      details: { bytes: empty + 202, maxBytes: empty + 200 },
    });
    expect(await stored(app, sessionId)).toEqual(before);
  });

  it('BOT-07 limits the state to 256 KiB by default, with the stored state included in the size of a patch', async () => {
    const { app, say } = await startDesk(open, ({ input }) => ({ [input.text]: 'x'.repeat(150_000) }));
    const sessionId = await app.session();
    await say(sessionId, 'a');
    const error = await rejection(say(sessionId, 'b'), TurnFailedError);
    expect(error.failure).toMatchObject({ code: 'TOO_LARGE', details: { maxBytes: 262_144 } });
    await say(sessionId, 'a');
    const patch = { state: { big: 'x'.repeat(300_000) } };
    await rejection(say(sessionId, 'hi', patch), TooLargeError);
  });

  it('BOT-07 lets a handler change the state only by a returned patch', async () => {
    const problems: unknown[] = [];
    const { app, say } = await startDesk(
      open,
      ({ state, input }) => {
        if (input.text !== 'change') return;
        const mutable = state as { order: { items: string[] }; extra?: string };
        for (const change of [
          () => (mutable.extra = 'x'),
          () => (mutable.order.items = []),
          () => mutable.order.items.push('x'),
        ]) {
          try {
            change();
          } catch (error) {
            problems.push(error);
          }
        }
      },
      { initialState: () => ({ order: { items: ['a'] } }) },
    );
    const sessionId = await app.session();
    await say(sessionId, 'change');
    expect(problems.map((problem) => (problem as Error).name)).toEqual(Array(3).fill('TypeError'));
    await say(sessionId, 'change');
    expect(problems).toHaveLength(6);
    expect((await app.checkpoints.load('desk', sessionId))?.state).toEqual({ order: { items: ['a'] } });
  });

  it('BOT-07 copies state on input and output', async () => {
    const first = { order: { items: ['a'] } };
    const returned = { cart: ['b'] };
    const patch = { given: ['c'] };
    const { app } = await startDesk(open, () => returned, { initialState: () => first });
    const sessionId = await app.session();
    const accepted = app.handle({ name: 'desk' }).submit('hi', { sessionId, state: patch });
    patch.given.push('changed after the call');
    await app.turns.result((await accepted).id);
    first.order.items.push('changed after the turn');
    returned.cart.push('changed after the turn');

    const expected = { order: { items: ['a'] }, cart: ['b'], given: ['c'] };
    const loaded = await app.checkpoints.load('desk', sessionId);
    expect(loaded?.state).toEqual(expected);
    (loaded?.state as { cart: string[] }).cart.push('changed by a reader');
    expect((await app.checkpoints.load('desk', sessionId))?.state).toEqual(expected);
  });

  it('FIX-64 JSON with keys named like properties of every object comes back unchanged from every place', async () => {
    const value = JSON.parse(
      '{"constructor":"Team Nine","prototype":[1],"toString":1,"deep":[{"constructor":{"prototype":{"x":1}}}]}',
    ) as JsonObject;
    const seen: unknown[] = [];
    const { app, say } = await startDesk(open, async (turn) => {
      const stored = await turn.step('step', () => value);
      const used = await turn.tools.use('tool', 'call', () => value, { input: value });
      seen.push(stored, used, turn.input.metadata, turn.attributes, turn.session.metadata, turn.state.sent);
      await turn.emit({ type: 'progress', data: value });
      turn.modules.tools.set('tool', 'key', value);
      turn.modules.tools.patch('tool', 'other', value);
      seen.push(await turn.modules.tools.get('tool', 'key'), await turn.modules.tools.get('tool', 'other'));
      if (turn.attempt === 1) throw new Error('the attempt is repeated');
      return reply('done', {
        data: value,
        state: value,
        messages: [{ role: 'assistant', content: 'x', metadata: value }],
      });
    });
    const { id: sessionId } = await app.sessions.create({ userId: 'ann', metadata: value });
    const input = { text: 'hi', metadata: value };
    const result = await say(sessionId, input, { state: { sent: value }, attributes: value });

    expect(seen).toHaveLength(16);
    for (const each of seen) expect(each).toEqual(value);
    expect(result.data).toEqual(value);
    expect((await app.checkpoints.load('desk', sessionId))?.state).toEqual({ ...value, sent: value });
    const messages = await app.adapter.conversations.page(sessionId);
    expect(messages.map(({ metadata }) => metadata)).toEqual([value, value]);
    const progress: unknown[] = [];
    for await (const { type, data } of app.turns.readEvents(result.id)) if (type === 'progress') progress.push(data);
    expect(progress).toEqual([value, value]);
  });

  it('FIX-64 gives a wait a payload with keys named like properties of every object, and rejects one with the key __proto__', async () => {
    const payload = JSON.parse('{"constructor":{"prototype":{"x":1}},"deep":[{"toString":1}]}') as JsonObject;
    const seen: unknown[] = [];
    const { app } = await startDesk(open, async (turn) => {
      seen.push(await turn.waitFor('go'));
      if (seen.length === 1) throw new Error('the attempt is repeated');
      return reply('done');
    });
    const { id } = await app.handle({ name: 'desk' }).submit('hi', { sessionId: await app.session() });
    await eventually(async () => (await app.turns.get(id))?.status === 'waiting');
    const hostile = JSON.parse('{"deep":[{"__proto__":{"admin":true}}]}') as JsonObject;
    const error = await rejection(app.turns.signal(id, 'go', hostile), StateSerializationError);
    expect(error.path).toBe('The payload.deep[0].__proto__');
    expect(await app.turns.get(id)).toMatchObject({ status: 'waiting' });

    await app.turns.signal(id, 'go', payload);
    expect(await app.turns.result(id)).toMatchObject({ reply: 'done' });
    expect(seen).toEqual([payload, payload]);
  });

  it('FIX-64 rejects the key __proto__ with its path, and changes nothing', async () => {
    const hostile = '{"a":1,"deep":[{"__proto__":{"admin":true}}]}';
    const { app, say } = await startDesk(open, async (turn) => {
      const value = JSON.parse(turn.input.text.slice(1)) as JsonObject;
      if (turn.input.text.startsWith('s')) await turn.step('step', () => value);
      if (turn.input.text.startsWith('t')) await turn.tools.use('tool', 'call', () => 1, { input: value });
      if (turn.input.text.startsWith('d')) return reply('done', { data: value });
      if (turn.input.text.startsWith('m'))
        return reply('done', { messages: [{ role: 'assistant', content: 'x', metadata: value }] });
      return value;
    });
    const sessionId = await app.session();
    const at = 'deep[0].__proto__';
    for (const [text, path] of [
      [`s${hostile}`, `The result of step "step".${at}`],
      [`t${hostile}`, `options.input.${at}`],
      [`d${hostile}`, `data.${at}`],
      [`m${hostile}`, `messages[0].metadata.${at}`],
      [`p${hostile}`, `state.${at}`],
    ]) {
      const error = await rejection(say(sessionId, text), TurnFailedError);
      expect(error.failure).toMatchObject({ code: 'STATE_NOT_SERIALIZABLE', details: { path } });
    }
    const sent = JSON.parse(hostile) as JsonObject;
    for (const call of [
      () => say(sessionId, 'p{}', { state: sent }),
      () => say(sessionId, 'p{}', { attributes: sent }),
      () => say(sessionId, { text: 'p{}', metadata: sent }),
    ]) {
      expect((await rejection(call(), StateSerializationError)).path).toContain(at);
    }
    expect(await app.checkpoints.load('desk', sessionId)).toBeNull();
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  it('BOT-07 undefined removes a key, null stays', async () => {
    const patches: Record<string, object> = {
      set: { a: 1, b: { c: 2, d: undefined }, n: null },
      remove: { a: undefined, missing: undefined },
    };
    const { app, say } = await startDesk(open, ({ input }) => patches[input.text]);
    const sessionId = await app.session();
    const state = async () => (await app.checkpoints.load('desk', sessionId))?.state;
    await say(sessionId, 'set');
    expect(await state()).toEqual({ a: 1, b: { c: 2 }, n: null });
    await say(sessionId, 'remove');
    expect(await state()).toEqual({ b: { c: 2 }, n: null });
  });

  it("BOT-08 known failure, reported as a success: an intent's thrown error is the turn's error, and state, messages and index stay as before", async () => {
    const { app, say } = await startDesk(open, ({ input, history, turnIndex }) => {
      if (input.text === 'fail') throw new PermanentTurnError('the shop is closed');
      return reply(`${turnIndex}: ${history.length} before`, { state: { last: input.text } });
    });
    const sessionId = await app.session();
    await say(sessionId, 'one');
    const before = await stored(app, sessionId);

    const attributes = { channel: 'web' };
    const error = await rejection(say(sessionId, 'fail', { attributes }), TurnFailedError);
    expect(error.failure).toEqual({
      name: 'PermanentTurnError',
      message: 'the shop is closed',
      code: 'PERMANENT_TURN_ERROR',
      details: {},
    });
    expect(await stored(app, sessionId)).toEqual(before);
    const record = await app.turns.get(error.turnId);
    expect(record).toMatchObject({
      status: 'failed',
      failures: 1,
      attributes,
      request: { input: { text: 'fail' } },
      error: { message: 'the shop is closed' },
    });
    for (const absent of ['turnIndex', 'reply']) expect(record).not.toHaveProperty(absent);
    expect(await say(sessionId, 'two')).toMatchObject({ turnIndex: 1, reply: '1: 2 before' });
  });

  it('BOT-08 what a failing route or router says is the error, too', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => {
        throw new PermanentTurnError('the model is away');
      },
      intents: { answer: () => 'hi' },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await app.session();
    const error = await rejection(app.handle(desk).execute('hi', { sessionId }), TurnFailedError);
    expect(error.failure?.message).toBe('the model is away');
    expect(await stored(app, sessionId)).toEqual({ checkpoint: null, messages: [] });
  });

  it.each(WRONG_RESULTS)('BOT-08 an intent that returns $what fails the turn', async ({ value, message }) => {
    const { app, say } = await startDesk(open, () => value);
    const sessionId = await app.session();
    const error = await rejection(say(sessionId, 'hi'), TurnFailedError);
    expect(error.failure?.message).toMatch(message);
    expect(await app.turns.get(error.turnId)).toMatchObject({ failures: 1 });
    expect(await stored(app, sessionId)).toEqual({ checkpoint: null, messages: [] });
  });

  it('BOT-08 a cancelled turn leaves state, messages and index as before', async () => {
    const { app, say } = await startDesk(open, async ({ input, signal }) => {
      if (input.text === 'wait') await aborted(signal);
      return { last: input.text };
    });
    const sessionId = await app.session();
    await say(sessionId, 'one');
    const before = await stored(app, sessionId);
    const { id } = await app.handle({ name: 'desk' }).submit('wait', { sessionId });
    await eventually(async () => (await app.turns.get(id))?.status === 'running');
    await app.turns.cancel(id);
    await rejection(app.turns.result(id), TurnCancelledError);
    expect(await stored(app, sessionId)).toEqual(before);
    expect(await say(sessionId, 'two')).toMatchObject({ turnIndex: 1 });
  });

  it('STA-03 messages join the log when the turn settles, not before, and not when it fails', async () => {
    const during: unknown[] = [];
    const { app, say } = await startDesk(open, async ({ input, attempt, sessionId }) => {
      during.push((await app.adapter.conversations.page(sessionId)).length);
      if (input.text === 'fail') throw new PermanentTurnError('no');
      if (attempt === 1) throw new Error('once more');
      return reply('hello');
    });
    const sessionId = await app.session();
    await rejection(say(sessionId, 'fail'), TurnFailedError);
    const { id } = await say(sessionId, 'works at last');
    expect(during).toEqual([0, 0, 0]);
    expect(await app.adapter.conversations.page(sessionId)).toMatchObject([
      { position: 1, role: 'user', content: 'works at last', turnId: id, orchestrator: 'desk', id: `${id}.0` },
      { position: 2, role: 'assistant', content: 'hello', turnId: id, orchestrator: 'desk', id: `${id}.1` },
    ]);
  });

  it('STA-03 lets a turn add messages: tools after the user message, a leading system message before it', async () => {
    const messages = [
      { role: 'system', content: 'You are a desk.' },
      { role: 'assistant', content: null, toolCalls: [{ id: 'c1', name: 'find', arguments: { order: 7 } }] },
      { role: 'tool', content: [{ type: 'json', value: { status: 'shipped' } }], toolCallId: 'c1', name: 'find' },
      { role: 'assistant', content: 'Shipped.', metadata: { model: 'm' }, id: 'own-id' },
    ] as const;
    const { app, say } = await startDesk(open, () => reply('Shipped.', { messages }));
    const sessionId = await app.session();
    const { id, reply: text } = await say(sessionId, 'where is 7?');
    expect(text).toBe('Shipped.');
    const [system, calls, tool, answer] = messages;
    expect(await app.adapter.conversations.page(sessionId)).toMatchObject([
      { ...system, id: `${id}.1` },
      { role: 'user', content: 'where is 7?', id: `${id}.0` },
      { ...calls, id: `${id}.2` },
      { ...tool, id: `${id}.3` },
      answer,
    ]);
  });
});

/** An application whose one intent returns what `answer` does. */
async function startDesk(
  open: (typeof LIVE_STORES)[number]['open'],
  answer: (turn: TurnContext) => unknown,
  options: object = {},
) {
  const desk = defineOrchestrator({ name: 'desk', ...options, intents: { answer: answer as () => object } });
  const app = await startApplication({
    adapter: open(),
    orchestrators: [desk],
    turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } } },
  });
  const say = (sessionId: string, text: string | TurnInput, more: object = {}) =>
    app.handle(desk).execute(text, { sessionId, ...more });
  return { app, say };
}

/** The records that an unsuccessful turn must not change. */
async function stored({ checkpoints, adapter }: Application, sessionId: string) {
  return {
    checkpoint: await checkpoints.load('desk', sessionId),
    messages: await adapter.conversations.page(sessionId),
  };
}

/** Any JSON, with the names of inherited properties as keys, but without `__proto__`. */
function jsonValues(): fc.Arbitrary<unknown> {
  const key = fc.oneof(fc.string(), fc.constantFrom('constructor', 'prototype', 'toString', 'hasOwnProperty'));
  return fc
    .letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.jsonValue({ maxDepth: 2 }),
        fc.array(tie('value')),
        fc.dictionary(
          key.filter((name) => name !== '__proto__'),
          tie('value'),
        ),
      ),
    }))
    .value.filter((value) => !JSON.stringify(value).includes('__proto__'));
}
