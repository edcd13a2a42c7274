import { generateText, stepCountIs, tool as aiTool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import {
  defineOrchestrator,
  InvalidInputError,
  type OrchestratorDefinition,
  type OrchestratorTool,
  type OrchestratorToolOptions,
  PermanentTurnError,
  reply,
  SessionConflictError,
  type TurnContext,
  TurnFailedError,
  TurnReentryError,
  type TurnsOptions,
} from 'nestjs-agent-sessions';
import { WHEN_BUSY } from '../../lib/ledger/turn.js';
import { childId } from '../../lib/orchestrator/child-session.js';
import { eventually } from '../support/eventually.js';
import {
  type Application,
  gate,
  LASTING_STORES,
  rejection,
  SAMPLED_STORES,
  startApplication,
} from '../support/running-application.js';

const call = (toolCallId: string) => ({ toolCallId });

describe.each(SAMPLED_STORES)('an orchestrator as a tool over $name', ({ open }) => {
  it("BOT-50 runs each call as a turn in a child session with the caller's owner", async () => {
    const { app, say } = await startDesk(open, async (ask) => {
      const { reply: first, status } = await ask().execute({ input: 'one' }, call('c1'));
      const { reply: second } = await ask().execute({ input: 'two' }, call('c2'));
      return `${status}: ${first} ${second}`;
    });
    const { id: sessionId } = await app.sessions.create({ userId: 'bob', workspaceId: 'acme' });
    expect(await say(sessionId)).toMatchObject({ reply: 'awaiting-input: one (0) two (2)' });
    const child = `${sessionId}/expert`;
    expect(await app.sessions.get(child)).toMatchObject({
      userId: 'bob',
      workspaceId: 'acme',
      attachedSurfaces: [],
      metadata: { parentSessionId: sessionId },
    });
    const [caller] = await app.turns.list({ sessionId });
    expect(await app.turns.list({ sessionId: child })).toMatchObject([
      { request: { input: { text: 'one' } }, attributes: { callerTurnId: caller.id, toolCallId: 'c1' } },
      { request: { input: { text: 'two' } }, attributes: { callerTurnId: caller.id, toolCallId: 'c2' } },
    ]);
    expect(await app.adapter.conversations.page(sessionId)).toHaveLength(2);
  });

  it('FIX-63 runs a turn for each call if a later answer uses an id again, and takes ids of any length', async () => {
    const long = 'x'.repeat(1000);
    const { app, say } = await startDesk(open, async (ask) => {
      const answered = { role: 'assistant' };
      const asked = [
        await ask().execute({ input: 'one' }, { toolCallId: '0', messages: [] }),
        await ask().execute({ input: 'one' }, { toolCallId: '0', messages: [answered] }),
        await ask().execute({ input: 'two' }, { toolCallId: '0', messages: [answered] }),
        await ask().execute({ input: 'one' }, { toolCallId: '0', messages: [answered] }),
        await ask().execute({ input: 'long' }, call(long)),
      ];
      return asked.map(({ reply }) => reply).join(' ');
    });
    const sessionId = await app.session();
    expect(await say(sessionId)).toMatchObject({ reply: 'one (0) one (2) two (4) one (2) long (6)' });
    expect(await app.turns.list({ sessionId: `${sessionId}/expert` })).toHaveLength(4);
  });

  it.each(WHEN_BUSY)('BOT-50 runs all parallel calls of an answer, also with turns.whenBusy %s', async (whenBusy) => {
    const work = async (ask: Ask): Promise<string> => {
      const asked = await Promise.all(['a', 'b', 'c'].map((input) => ask().execute({ input }, call(input))));
      return asked.map(({ status, reply }) => `${status} ${reply?.[0]}`).join();
    };
    const { app, say } = await startDesk(open, work, {}, undefined, { whenBusy });
    expect(await say(await app.session())).toMatchObject({
      reply: 'awaiting-input a,awaiting-input b,awaiting-input c',
    });
  });

  it('BOT-50 ignores a session that the model chooses', async () => {
    const { app, say, otherId } = await startDesk(open, async (ask, other) => {
      const args = { input: 'hi', sessionId: other, session: { id: other } };
      return (await ask().execute(args, call('c1'))).reply;
    });
    const sessionId = await app.session();
    expect(await say(sessionId)).toMatchObject({ reply: 'hi (0)' });
    expect(await app.turns.list({ sessionId: otherId })).toEqual([]);
    expect(await app.turns.list({ sessionId: `${sessionId}/expert` })).toHaveLength(1);
  });

  it('BOT-50 creates a new session for each call, isolated from the others', async () => {
    const { app, say } = await startDesk(
      open,
      async (ask) => {
        const both = await Promise.all(['c1', 'c2'].map((id) => ask().execute({ input: id }, call(id))));
        return both.map((result) => result.reply).join(' ');
      },
      { session: 'fresh', name: 'oracle' },
    );
    const sessionId = await app.session();
    expect(await say(sessionId)).toMatchObject({ reply: 'c1 (0) c2 (0)' });
    const made = await app.sessions.find({ userId: 'ann' });
    const ids = made.map(({ id }) => id).filter((id) => id.startsWith(`${sessionId}/`));
    expect(ids).toEqual(Array(2).fill(expect.stringMatching(/\/oracle~[0-9a-f]{32}$/)));
    // They end with their calls, so that they are swept and purged as others are.
    for (const id of ids) {
      expect(await app.sessions.get(id)).toMatchObject({
        state: 'expired',
        metadata: { parentSessionId: sessionId },
      });
    }
  });

  it('BOT-50 expires a fresh session whose turn was cancelled or failed', async () => {
    const { app, say, asked } = await startDesk(
      open,
      async (ask) => {
        const controller = new AbortController();
        const waiting = rejection(
          ask().execute({ input: 'wait' }, { toolCallId: 'c1', abortSignal: controller.signal }),
          Error,
        );
        await eventually(() => asked.length === 1);
        controller.abort(new Error('enough'));
        await waiting;
        await rejection(ask().execute({ input: 'fail' }, call('c2')), TurnFailedError);
        return 'both';
      },
      { session: 'fresh' },
      () => {
        throw new PermanentTurnError('no');
      },
    );
    const sessionId = await app.session();
    expect(await say(sessionId)).toMatchObject({ reply: 'both' });
    await eventually(async () => {
      const made = (await app.sessions.find({ userId: 'ann' })).filter(({ id }) => id.startsWith(`${sessionId}/`));
      return made.length === 2 && made.every(({ state }) => state === 'expired');
    });
  });

  it.each(['child', 'fresh'] as const)(
    'BOT-50 a retried turn gets the turns that its calls made before: %s',
    async (session) => {
      const { app, say, asked } = await startDesk(
        open,
        async (ask, _, { attempt }) => {
          const { reply: answer } = await ask().execute({ input: 'once' }, call('c1'));
          if (attempt === 1) throw new Error('after the call');
          return answer;
        },
        { session },
      );
      expect(await say(await app.session())).toMatchObject({ reply: 'once (0)' });
      expect(asked).toEqual(['once']);
    },
  );

  it('BOT-50 cancels the turn of a call when the caller is cancelled', async () => {
    const { app, say, asked } = await startDesk(open, async (ask) => {
      await ask().execute({ input: 'wait' }, call('c1'));
    });
    const sessionId = await app.session();
    const told = rejection(say(sessionId), Error);
    await eventually(() => asked.length === 1);
    const [caller] = await app.turns.list({ sessionId });
    await app.turns.cancel(caller.id);
    await told;
    await eventually(async () => {
      const [inner] = await app.turns.list({ sessionId: `${sessionId}/expert` });
      return inner.status === 'cancelled';
    });
  });

  it("BOT-50 cancels the turn when the model's call is aborted, and the caller continues", async () => {
    const { app, say, asked } = await startDesk(open, async (ask) => {
      const controller = new AbortController();
      const calling = ask().execute({ input: 'wait' }, { toolCallId: 'c1', abortSignal: controller.signal });
      const told = rejection(calling, Error);
      await eventually(() => asked.length === 1);
      controller.abort(new Error('the model has seen enough'));
      return (await told).message;
    });
    const sessionId = await app.session();
    expect(await say(sessionId)).toMatchObject({ reply: 'the model has seen enough' });
    await eventually(async () => {
      const [inner] = await app.turns.list({ sessionId: `${sessionId}/expert` });
      return inner.status === 'cancelled';
    });
  });

  it("BOT-50 TRN-12 never the caller's own lane: a turn of the child that calls for itself gets an error", async () => {
    let outer: OrchestratorTool | undefined;
    const seen: unknown[] = [];
    const { app, say } = await startDesk(
      open,
      async (ask) => {
        outer = ask();
        return (await outer.execute({ input: 'itself' }, call('c1'))).reply;
      },
      {},
      async () => {
        if (outer) seen.push(await rejection(outer.execute({ input: 'again' }, call('c2')), TurnReentryError));
      },
    );
    expect(await say(await app.session())).toMatchObject({ reply: 'itself (0)' });
    expect(seen).toHaveLength(1);
  });

  it('BOT-50 a retried turn gets the turn of its call, although the child session has ended since', async () => {
    const store = open();
    let lost = false;
    let runs = 0;
    const saveStep: typeof store.turns.saveStep = async (hold, step) => {
      if (step.kind !== 'tool' || lost) return store.turns.saveStep(hold, step);
      lost = true;
      await app.sessions.expire(`${sessionId}/expert`);
      throw new Error('The result of the call was not stored.');
    };
    const turns = Object.assign(Object.create(store.turns) as typeof store.turns, { saveStep });
    const expert = defineOrchestrator({ name: 'expert', intents: { answer: () => reply(`answer ${(runs += 1)}`) } });
    const parent: OrchestratorDefinition = defineOrchestrator({
      name: 'parent',
      intents: {
        ask: async (turn) =>
          reply(String((await app.handle(expert).asTool(turn).execute({ input: 'hi' }, call('c1'))).reply)),
      },
    });
    const app = await startApplication({
      adapter: { ...store, turns },
      orchestrators: [parent, expert],
      turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } } },
    });
    const sessionId = await app.session();

    expect(await app.handle(parent).execute('hi', { sessionId })).toMatchObject({ reply: 'answer 1' });
    expect(lost).toBe(true);
    expect(runs).toBe(1);
    expect(await app.turns.list({ sessionId: `${sessionId}/expert~2` })).toEqual([]);
  });

  it("BOT-50 rejects a child id that another user's session has, and replaces an ended child session", async () => {
    const { app, say } = await startDesk(open, async (ask, _, { session }) => {
      const asking = ask().execute({ input: 'hi' }, call('c1'));
      return session.metadata.taken ? (await rejection(asking, SessionConflictError)).sessionId : (await asking).reply;
    });
    const { id: taken } = await app.sessions.create({ userId: 'ann', metadata: { taken: true } });
    await app.sessions.create({ id: `${taken}/expert`, userId: 'mallory' });
    expect(await say(taken)).toMatchObject({ reply: `${taken}/expert` });
    expect(await app.turns.list({ sessionId: `${taken}/expert` })).toEqual([]);

    const sessionId = await app.session();
    await say(sessionId);
    await app.sessions.expire(`${sessionId}/expert`);
    expect(await say(sessionId)).toMatchObject({ reply: 'hi (0)' });
    await app.sessions.delete(`${sessionId}/expert~2`);
    expect(await say(sessionId)).toMatchObject({ reply: 'hi (0)' });
    expect(await app.sessions.get(`${sessionId}/expert`)).toMatchObject({ state: 'expired' });
  });

  it('BOT-50 rejects invalid options and arguments, and creates no session', async () => {
    const seen: string[] = [];
    const { app, say, bind } = await startDesk(open, async (ask, _, turn) => {
      for (const options of [{ name: 'a/b' }, { name: '' }, { session: 'own' }, { sessionId: 's' }]) {
        expect(() => bind(turn, options as OrchestratorToolOptions)).toThrow(InvalidInputError);
      }
      for (const args of [undefined, {}, { input: 1 }, 'hi']) {
        const asking = ask().execute(args as never, call('c1'));
        seen.push((await rejection(asking, InvalidInputError)).path);
      }
      seen.push((await rejection(ask().execute({ input: 'hi' }, call('')), InvalidInputError)).path);
    });
    const sessionId = await app.session();
    await say(sessionId);
    expect(seen).toEqual(['args', 'args', 'args', 'args', 'toolCallId']);
    expect(await app.sessions.get(`${sessionId}/expert`)).toBeNull();
  });

  it("BOT-50 works as a tool of the AI SDK, and ignores a session in the model's input", async () => {
    const prompts: unknown[] = [];
    const { app, say, bind } = await startDesk(open, async (_, other, turn) => {
      const expert = bind(turn, { description: 'Knows it all.' });
      const model = new MockLanguageModelV3({
        doGenerate: async ({ tools, prompt }) => {
          prompts.push(tools);
          const called = prompt.some(({ role }) => role === 'tool');
          const input = JSON.stringify({ input: 'what is it?', sessionId: other });
          return {
            content: called
              ? [{ type: 'text', text: JSON.stringify(prompt.at(-1)) }]
              : [{ type: 'tool-call', toolCallId: 'call-1', toolName: 'expert', input }],
            finishReason: { unified: called ? 'stop' : 'tool-calls', raw: undefined },
            usage: {
              inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
              outputTokens: { total: 1, text: 1, reasoning: 0 },
            },
            warnings: [],
          };
        },
      });
      const { text } = await generateText({
        model,
        prompt: turn.input.text,
        tools: { [expert.name]: aiTool(expert) },
        stopWhen: stepCountIs(3),
        abortSignal: turn.signal,
      });
      return text;
    });
    const sessionId = await app.session();
    const { reply: text } = await say(sessionId);
    expect(text).toContain('"reply":"what is it? (0)"');
    expect(prompts[0]).toMatchObject([
      {
        name: 'expert',
        description: 'Knows it all.',
        inputSchema: { type: 'object', required: ['input'], additionalProperties: false },
      },
    ]);
    expect(await app.turns.list({ sessionId: `${sessionId}/expert` })).toHaveLength(1);
  });
});

describe.each(LASTING_STORES)('an orchestrator as a tool over $name', ({ create }) => {
  it('BOT-50 BOT-30 continues the turn of a call when the caller is retried in another process', async () => {
    const open = create();
    const first = await startDesk(open, async (ask) => (await ask().execute({ input: 'wait' }, call('c1'))).reply);
    const sessionId = await first.app.session();
    const { id } = await first.app.handle({ name: 'desk' }).submit('hi', { sessionId });
    await eventually(() => first.asked.length === 1);
    await first.app.close();

    const second = await startDesk(open, async (ask) => (await ask().execute({ input: 'wait' }, call('c1'))).reply);
    second.release();
    expect(await second.app.turns.result(id)).toMatchObject({ reply: 'wait (0)' });
    expect(await second.app.turns.get(id)).toMatchObject({ failures: 0 });
    expect(await second.app.turns.list({ sessionId: `${sessionId}/expert` })).toMatchObject([
      { status: 'awaiting-input', failures: 0 },
    ]);
  });

  it('BOT-50 shares one child session between callers, also of several processes if the store allows it', async () => {
    const open = create();
    const start = () =>
      startDesk(open, async (ask, _, { session, input }) => {
        const parent = { ...session, id: 'shared-parent' };
        return (await ask(parent).execute({ input: input.text }, call(input.text))).reply;
      });
    const first = await start();
    const desks = first.app.adapter.shared ? [first, await start(), await start()] : [first];
    const callers = await Promise.all(Array.from({ length: 9 }, () => first.app.session()));
    const results = await Promise.all(
      callers.map((sessionId, n) => desks[n % desks.length].say(sessionId, `call ${n}`)),
    );
    const counts = results.map(({ reply: text }) => Number(/\((\d+)\)/.exec(text ?? '')?.[1]));
    expect(counts.sort((a, b) => a - b)).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16]);
    expect(await first.app.turns.list({ sessionId: 'shared-parent/expert' })).toHaveLength(9);
  });
});

it('BOT-50 shortens an id of a child session that is too long with a hash', () => {
  const parent = 'p'.repeat(195);
  const ids = ['expert', 'expert~2', 'oracle'].map((name) => childId(parent, name));
  expect(new Set(ids).size).toBe(3);
  for (const id of ids) expect(id).toMatch(/^p{135}~[0-9a-f]{64}$/);
  expect(childId('p'.repeat(193), 'expert')).toBe(`${'p'.repeat(193)}/expert`);
});

type Ask = (parent?: TurnContext['session']) => OrchestratorTool;

/** A desk whose single intent runs `work`, and an expert that it may call. The expert waits on the input `wait`, and replies with the length of its history. */
async function startDesk(
  open: (typeof SAMPLED_STORES)[number]['open'],
  work: (ask: Ask, otherId: string, turn: TurnContext) => Promise<unknown>,
  options: OrchestratorToolOptions = {},
  think: () => Promise<void> = async () => {},
  turns: TurnsOptions = {},
) {
  const asked: string[] = [];
  const { pass, open: release } = gate();
  const started = gate();
  const expert = defineOrchestrator({
    name: 'expert',
    intents: {
      answer: async ({ input, history, signal }) => {
        asked.push(input.text);
        if (input.text === 'wait') await pass(signal);
        await think();
        return reply(`${input.text} (${history.length})`);
      },
    },
  });
  const bind = (turn: TurnContext, given: OrchestratorToolOptions): OrchestratorTool =>
    app.handle(expert).asTool(turn, given);
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      ask: async (turn) => {
        await started.pass();
        const ask: Ask = (session = turn.session) => bind({ ...turn, session }, options);
        return (await work(ask, otherId, turn)) as string;
      },
    },
  });
  const app: Application = await startApplication({
    adapter: open(),
    orchestrators: [desk, expert],
    turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } }, ...turns },
  });
  const otherId = await app.session();
  started.open();
  const say = (sessionId: string, text = 'hi') => app.handle(desk).execute(text, { sessionId });
  return { app, say, bind, asked, release, otherId };
}
