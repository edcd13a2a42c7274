import fc from 'fast-check';
import {
  CheckpointNotFoundError,
  defineOrchestrator,
  IdempotencyConflictError,
  InvalidInputError,
  OrchestrationStateManager,
  type OrchestratorConfig,
  type OrchestratorDefinition,
  type OrchestratorHandle,
  reply,
  type SessionsAdapter,
  type SubmitOptions,
  type TurnContext,
  TurnCancelledError,
  TurnFailedError,
  TurnNotFoundError,
  type TurnResult,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import {
  aborted,
  type Application,
  LASTING_STORES,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';

interface Desk {
  readonly said?: readonly string[];
}

/** What an application knows of a session of the desk. */
interface Talk {
  readonly app: Application;
  readonly sessionId: string;
  /** The history that the handler received in each turn. */
  readonly seen: string[][];
  readonly handle: OrchestratorHandle;
  readonly say: (text: string, options?: Partial<SubmitOptions>) => Promise<TurnResult>;
  /** Stops a turn that runs, and keeps `half`. @returns its id */
  readonly stop: (options: Partial<SubmitOptions>) => Promise<string>;
  readonly state: () => Promise<unknown>;
}

const FAST = { retry: { attempts: 2, backoff: { type: 'fixed', delayMs: 1 } } } as const;

describe.each(LIVE_STORES)('a turn that replaces others over $name', ({ open }) => {
  it('AIS-07 continues from before the replaced turn', async () => {
    const { say, state, seen } = await start(open());
    await say('a');
    const b = await say('b');
    expect(await say('B', { replaces: b.id })).toMatchObject({ turnIndex: 2, reply: 'to B' });
    expect(seen.at(-1)).toEqual(['a', 'to a']);
    expect(await state()).toEqual({ said: ['a', 'B'] });

    await say('c');
    expect(seen.at(-1)).toEqual(['a', 'to a', 'B', 'to B']);
    expect(await state()).toEqual({ said: ['a', 'B', 'c'] });
  });

  it('AIS-07 replaces later turns too, up to all turns of the session', async () => {
    const { say, state, seen } = await start(open());
    const turns = [await say('a'), await say('b'), await say('c')];
    await say('B', { replaces: turns[1].id });
    expect(seen.at(-1)).toEqual(['a', 'to a']);
    expect(await state()).toEqual({ said: ['a', 'B'] });
    await say('A', { replaces: turns[0].id });
    expect(seen.at(-1)).toEqual([]);
    expect(await state()).toEqual({ said: ['A'] });
    await say('d');
    expect(seen.at(-1)).toEqual(['A', 'to A']);
  });

  it('AIS-07 can be undone and replaced itself', async () => {
    const { say, state, seen, handle, sessionId } = await start(open());
    await say('a');
    const b = await say('b');
    const second = await say('B', { replaces: b.id });
    await say('BB', { replaces: second.id });
    expect(seen.at(-1)).toEqual(['a', 'to a']);
    expect(await state()).toEqual({ said: ['a', 'BB'] });
    await handle.undo(sessionId);
    expect(await state()).toEqual({ said: ['a'] });
    await say('c');
    expect(seen.at(-1)).toEqual(['a', 'to a']);
  });

  it('AIS-07 changes nothing if it fails or is cancelled', async () => {
    const { app, say, state, seen, sessionId } = await start(open());
    const a = await say('a');
    await rejection(say('fail', { replaces: a.id }), TurnFailedError);
    expect(await state()).toEqual({ said: ['a'] });
    const turn = await app.turns.submit('desk', 'hang', { sessionId, replaces: a.id });
    await eventually(async () => (await app.turns.get(turn.id))?.status === 'running');
    await app.turns.cancel(turn.id);
    await rejection(app.turns.result(turn.id), TurnCancelledError);
    await say('b');
    expect(seen.at(-1)).toEqual(['a', 'to a']);
    expect(await state()).toEqual({ said: ['a', 'b'] });
  });

  it('AIS-07 replaces turns that failed, or that were cancelled and kept', async () => {
    const { app, say, state, seen, sessionId } = await start(open());
    await say('a');
    const { id: failed } = await app.turns.submit('desk', 'fail', { sessionId });
    await rejection(app.turns.result(failed), TurnFailedError);
    const { id: stopped } = await app.turns.submit('desk', 'hang', { sessionId });
    await eventually(async () => (await app.turns.get(stopped))?.status === 'running');
    await app.turns.cancel(stopped, { keep: [{ role: 'assistant', content: 'half' }] });
    await rejection(app.turns.result(stopped), TurnCancelledError);
    await say('b');
    expect(seen.at(-1)).toEqual(['a', 'to a', 'hang', 'half']);
    await say('C', { replaces: failed });
    expect(seen.at(-1)).toEqual(['a', 'to a']);
    expect(await state()).toEqual({ said: ['a', 'C'] });
  });

  it('AIS-07 PRF-09 replaces a turn that failed without reading the log', async () => {
    const calls: string[] = [];
    const adapter = recordingAdapter(open(), calls);
    const { app, say, sessionId } = await start(adapter);
    const history = Array.from({ length: 300 }, (_, n) => ({ role: 'user' as const, content: `message ${n}` }));
    await app.adapter.conversations.append(
      sessionId,
      history.map((message, n) => ({ ...message, id: `m${n}` })),
    );
    const { id: failed } = await app.turns.submit('desk', 'fail', { sessionId });
    await rejection(app.turns.result(failed), TurnFailedError);
    calls.length = 0;
    await say('C', { replaces: failed });

    expect(calls.filter((call) => call === 'conversations.page')).toEqual([]);
    expect(calls.filter((call) => call === 'conversations.window').length).toBeLessThanOrEqual(1);
  });

  it('AIS-07 PRF-09 replaces a turn that was cancelled without reading the messages of earlier turns', async () => {
    const calls: string[] = [];
    const adapter = recordingAdapter(open(), calls);
    const { app, say, sessionId, seen } = await start(adapter);
    const history = Array.from({ length: 300 }, (_, n) => ({ role: 'user' as const, content: `message ${n}` }));
    await app.adapter.conversations.append(
      sessionId,
      history.map((message, n) => ({ ...message, id: `m${n}` })),
    );
    await say('a');
    await app.turns.lanes.pause({ sessionId });
    const { id: cancelled } = await app.turns.submit('desk', 'b', { sessionId });
    await app.turns.cancel(cancelled);
    await app.turns.lanes.resume({ sessionId });
    await say('c');
    calls.length = 0;
    await say('B', { replaces: cancelled });

    // One page for each of the two replaced turns, and one for the history.
    expect(calls.filter((call) => call === 'conversations.page')).toHaveLength(3);
    expect(seen.at(-1)?.slice(-2)).toEqual(['a', 'to a']);
  });

  it('AIS-07 replaces turns if it is stopped and messages of it are kept', async () => {
    const { app, say, state, seen, stop, handle, sessionId } = await start(open(), { keepCheckpoints: 'all' });
    await say('a');
    const b = await say('b');
    const stopped = await stop({ replaces: b.id });
    expect(await state()).toEqual({ said: ['a'] });
    await say('c');
    expect(seen.at(-1)).toEqual(['a', 'to a', 'hang', 'half']);
    expect(await state()).toEqual({ said: ['a', 'c'] });
    const told = async (atTurn: number): Promise<unknown[]> => {
      const { id } = await handle.fork(sessionId, { atTurn });
      return (await app.adapter.conversations.page(id)).map(({ content }) => content);
    };
    expect(await told(1)).toEqual(['a', 'to a', 'b', 'to b']);
    expect(await told(2)).toEqual(['a', 'to a', 'hang', 'half']);

    await say('C', { replaces: stopped });
    expect(seen.at(-1)).toEqual(['a', 'to a']);
    expect(await state()).toEqual({ said: ['a', 'C'] });
  });

  it('AIS-07 can be stopped in place of the first turn, or of one that failed, and undone', async () => {
    const { app, say, state, seen, stop, handle, sessionId } = await start(open());
    const { id: failed } = await app.turns.submit('desk', 'fail', { sessionId });
    await rejection(app.turns.result(failed), TurnFailedError);
    await stop({ replaces: failed });
    const a = await say('a');
    expect(seen.at(-1)).toEqual(['hang', 'half']);
    await stop({ replaces: failed });
    expect(await state()).toEqual({});
    await say('b');
    expect(seen.at(-1)).toEqual(['hang', 'half']);
    await handle.undo(sessionId);
    expect(await handle.undo(sessionId)).not.toMatchObject({ undone: a.id });
    await say('c');
    expect(seen.at(-1)).toEqual([]);
    expect(await state()).toEqual({ said: ['c'] });
  });

  it('AIS-07 replaces turns if another turn interrupts it', async () => {
    const { app, say, seen, sessionId } = await start(open());
    await say('a');
    const b = await say('b');
    const turn = await app.turns.submit('desk', 'hang', { sessionId, replaces: b.id });
    await eventually(async () => (await app.turns.get(turn.id))?.status === 'running');
    await say('c', { whenBusy: 'interrupt' });
    expect(seen.at(-1)).toEqual(['a', 'to a', 'hang']);
  });

  it('AIS-07 replaces once, however often it is retried', async () => {
    const { say, state, seen } = await start(open());
    await say('a');
    const b = await say('b');
    await say('fail once', { replaces: b.id });
    expect(seen.slice(-2)).toEqual([
      ['a', 'to a'],
      ['a', 'to a'],
    ]);
    expect(await state()).toEqual({ said: ['a', 'fail once'] });
  });

  it('AIS-07 restores the progress of the plan', async () => {
    const talk = await start(open(), {
      steps: [
        { name: 'start', isDefault: true, sequence: ['look', 'act'] },
        { name: 'done', conditions: [{ type: 'tool_used', value: 'act' }] },
      ],
    });
    const { app, say, sessionId } = talk;
    const progress = async (): Promise<unknown> => {
      const { activeStep, recentlyUsedTools } =
        (await app.app.get(OrchestrationStateManager, { strict: false }).getState(sessionId)) ?? {};
      return { activeStep, recentlyUsedTools };
    };
    await say('use look');
    const before = await progress();
    const act = await say('use act');
    expect(await progress()).not.toEqual(before);
    const nothing = await say('nothing', { replaces: act.id });
    expect(await progress()).toEqual(before);
    const used = await say('use act', { replaces: nothing.id });
    expect(await progress()).not.toEqual(before);
    await talk.stop({ replaces: used.id });
    expect(await progress()).toEqual(before);
    // And its own uses are counted from there.
    const again = await say('use act');
    const after = await progress();
    await say('use act', { replaces: again.id });
    expect(await progress()).toEqual(after);
  });

  it('AIS-07 forks at a checkpoint without the messages of a later replacement', async () => {
    const { app, say, handle, sessionId } = await start(open());
    await say('a');
    const b = await say('b');
    await say('B', { replaces: b.id });
    const told = async (atTurn: number): Promise<unknown[]> => {
      const { id } = await handle.fork(sessionId, { atTurn });
      return (await app.adapter.conversations.page(id)).map(({ content }) => content);
    };
    expect(await told(0)).toEqual(['a', 'to a']);
    expect(await told(1)).toEqual(['a', 'to a', 'b', 'to b']);
    expect(await told(2)).toEqual(['a', 'to a', 'B', 'to B']);
  });

  it('AIS-07 is accepted only for a turn of its session and orchestrator', async () => {
    const { app, say, sessionId } = await start(open());
    const a = await say('a');
    const elsewhere = await app.session();
    const submit = (options: object): Promise<unknown> => app.turns.submit('desk', 'B', { sessionId, ...options });
    await rejection(submit({ replaces: 'nothing' }), TurnNotFoundError);
    await rejection(submit({ replaces: a.id, sessionId: elsewhere }), TurnNotFoundError);
    await rejection(submit({ replaces: '' }), InvalidInputError);
    await rejection(submit({ replaces: 7 }), InvalidInputError);
    expect(await app.turns.list({ sessionId })).toHaveLength(1);
  });

  it('AIS-07 BOT-25 does not replace a fork, and keeps its messages if it replaces an earlier turn', async () => {
    const { app, say, handle, sessionId, seen } = await start(open());
    await say('a');
    const target = await app.session();
    await rejection(say('fail', { sessionId: target }), TurnFailedError);
    await handle.fork(sessionId, { newSessionId: target });
    const [failed, fork] = await app.turns.list({ sessionId: target });
    await rejection(app.turns.submit('desk', 'B', { sessionId: target, replaces: fork.id }), TurnNotFoundError);

    await say('b', { sessionId: target });
    await say('B', { sessionId: target, replaces: failed.id });
    expect(seen.at(-1)).toEqual(['a', 'to a']);
    expect((await handle.history(target))[0].state).toEqual({ said: ['a', 'B'] });
  });

  it('AIS-07 is part of what an idempotency key stands for', async () => {
    const { app, say, sessionId } = await start(open());
    const [a, b] = [await say('a'), await say('b')];
    const submit = (replaces?: string): Promise<{ id: string }> =>
      app.turns.submit('desk', 'B', { sessionId, idempotencyKey: 'key', ...(replaces ? { replaces } : {}) });
    const first = await submit(b.id);
    expect(await submit(b.id)).toMatchObject({ id: first.id });
    await rejection(submit(a.id), IdempotencyConflictError);
    await rejection(submit(), IdempotencyConflictError);
  });

  it('AIS-07 BOT-21 fails if retention has pruned the checkpoint before the replaced turn', async () => {
    const { say, state } = await start(open(), { keepCheckpoints: 1 });
    await say('a');
    const b = await say('b');
    await say('c');
    await rejection(say('B', { replaces: b.id }), CheckpointNotFoundError, 'CHECKPOINT_PRUNED');
    expect(await state()).toEqual({ said: ['a', 'b', 'c'] });
  });

  it('AIS-07 BOT-10 tells each event of a turn once, also if it cannot replace the others', async () => {
    const { app, say, handle, sessionId } = await start(open(), { keepCheckpoints: 2 });
    await say('a');
    const [b, c] = [await say('b'), await say('c')];
    const told: string[] = [];
    const types = ['turn-starting', 'session-loaded', 'drift-checked', 'routed', 'turn-settled'] as const;
    for (const type of types) handle.on(type, (event) => told.push(event.type));
    const failed = await rejection(say('B', { replaces: b.id }), CheckpointNotFoundError);
    expect(failed).toMatchObject({ code: 'CHECKPOINT_PRUNED' });
    expect(told.splice(0)).toEqual(['turn-starting', 'turn-settled']);
    const [turn] = await app.turns.list({ sessionId, status: ['failed'] });
    expect(turn.report).toBeDefined();

    await say('C', { replaces: c.id });
    await eventually(() => told.length === types.length);
    expect(told).toEqual(types);
  });
});

describe.each(LASTING_STORES)('a turn that replaces others after a deploy over $name', ({ create }) => {
  it('AIS-07 BOT-24 migrates the state before them once, and reports it', async () => {
    const connect = create();
    const { app, say, sessionId } = await start(connect());
    await say('a');
    const b = await say('b');
    await app.close();
    const migrate = ({ said }: Record<string, unknown>) => ({ said: [...(said as string[]), 'migrated'] });
    const next = await start(connect(), { version: '2', migrations: [{ from: '1', to: '2', migrate }] });
    const told: unknown[] = [];
    next.handle.on('drift-checked', ({ drifted, migrated }) => told.push({ drifted, migrated }));
    const { id } = await next.say('B', { sessionId, replaces: b.id });
    expect(told).toEqual([{ drifted: true, migrated: ['1', '2'] }]);
    expect((await next.app.turns.get(id))?.report).toMatchObject({ migrated: ['1', '2'] });
    expect(await next.app.adapter.checkpoints.load('desk', sessionId)).toMatchObject({
      version: '2',
      state: { said: ['a', 'migrated', 'B'] },
    });
  });
});

describe('any sequence of turns, undos and replacements', () => {
  it(`AIS-07 BOT-25 leaves the conversation that a list predicts, over ${LIVE_STORES[0].name}`, async () => {
    const operation = fc.oneof(
      fc.record({ type: fc.constant('say' as const) }),
      fc.record({ type: fc.constant('undo' as const) }),
      fc.record({ type: fc.constant('replace' as const), back: fc.nat(5) }),
    );
    const [{ open }] = LIVE_STORES;
    const talk = await start(open(), { keepCheckpoints: 'all' });
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 3, maxLength: 12 }), async (operations) => {
        const sessionId = await talk.app.session();
        let expected: { id: string; text: string }[] = [];
        let count = 0;
        for (const { type, ...rest } of operations) {
          count += 1;
          if (type === 'undo') {
            if (expected.length === 0) continue;
            await talk.handle.undo(sessionId);
            expected.pop();
            continue;
          }
          const at = expected.length - 1 - ('back' in rest ? rest.back : 0);
          const replaced = type === 'replace' ? expected.at(Math.max(0, at)) : undefined;
          if (replaced) expected = expected.slice(0, expected.indexOf(replaced));
          const text = `${type} ${count}`;
          const { id } = await talk.say(text, { sessionId, ...(replaced ? { replaces: replaced.id } : {}) });
          expect(talk.seen.at(-1)).toEqual(expected.flatMap((turn) => [turn.text, `to ${turn.text}`]));
          expected.push({ id, text });
          const checkpoint = await talk.app.adapter.checkpoints.load('desk', sessionId);
          expect(checkpoint?.state).toEqual({ said: expected.map((turn) => turn.text) });
        }
      }),
      { numRuns: 30 },
    );
  });
});

async function start(adapter: SessionsAdapter, config: Partial<OrchestratorConfig<Desk>> = {}): Promise<Talk> {
  const seen: string[][] = [];
  const isHanging = new Set<string>();
  const answer = async (turn: TurnContext<Desk>) => {
    const { text } = turn.input;
    seen.push(turn.history.map(({ content }) => content as string));
    if (text === 'hang') {
      isHanging.add(turn.id);
      return aborted(turn.signal);
    }
    if (text === 'fail' || (text === 'fail once' && turn.attempt === 1)) throw new Error('no');
    if (text.startsWith('use ')) await turn.tools.use(text.slice(4), text, () => 'ok');
    return reply(`to ${text}`, { state: { said: [...(turn.state.said ?? []), text] } });
  };
  const desk = defineOrchestrator<Desk>({
    name: 'desk',
    historyWindow: 50,
    intents: { answer },
    ...config,
  }) as unknown as OrchestratorDefinition;
  const app = await startApplication({ adapter, orchestrators: [desk], turns: FAST });
  const sessionId = await app.session();
  const handle = app.handle(desk);
  return {
    app,
    sessionId,
    seen,
    handle,
    say: (text, options = {}) => handle.execute(text, { sessionId, ...options }),
    stop: async (options) => {
      const { id } = await app.turns.submit('desk', 'hang', { sessionId, ...options });
      await eventually(() => isHanging.has(id));
      await app.turns.cancel(id, { keep: [{ role: 'assistant', content: 'half' }] });
      await rejection(app.turns.result(id), TurnCancelledError);
      return id;
    },
    state: async () => (await adapter.checkpoints.load('desk', sessionId))?.state,
  };
}
