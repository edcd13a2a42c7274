import {
  CheckpointNotFoundError,
  defineOrchestrator,
  IdempotencyConflictError,
  InvalidInputError,
  NothingToUndoError,
  OrchestrationStateManager,
  type OrchestratorConfig,
  type OrchestratorDefinition,
  OrchestratorDriftError,
  OrchestratorEvents,
  reply,
  SessionBusyError,
  SessionNotFoundError,
  type SessionsAdapter,
  type TurnContext,
  TurnReentryError,
} from 'nestjs-agent-sessions';
import { type ConversationLog } from 'nestjs-agent-sessions/adapter';
import { eventually } from '../support/eventually.js';
import {
  type Application,
  gate,
  LASTING_STORES,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';

interface Desk {
  readonly said?: readonly string[];
}

const FAST = { retry: { backoff: { type: 'fixed', delayMs: 1 } } } as const;

describe.each(LIVE_STORES)('undo over $name', ({ open }) => {
  it('BOT-25 takes turns back one by one, up to the state before the first', async () => {
    const { app, sessionId, say, seen, handle } = await startDesk(open());
    const turns = [await say('a'), await say('b'), await say('c')];

    expect(await handle.undo(sessionId)).toEqual({ sessionId, turnIndex: 3, undone: turns[2].id });
    expect(await state(app, sessionId)).toEqual({ said: ['a', 'b'] });
    expect(await handle.undo(sessionId)).toEqual({ sessionId, turnIndex: 4, undone: turns[1].id });
    expect(await state(app, sessionId)).toEqual({ said: ['a'] });
    expect(await handle.undo(sessionId)).toEqual({ sessionId, turnIndex: 5, undone: turns[0].id });
    expect(await state(app, sessionId)).toEqual({ said: [] });

    await say('d');
    expect(await state(app, sessionId)).toEqual({ said: ['d'] });
    expect(seen).toEqual([[], ['a', 'to a'], ['a', 'to a', 'b', 'to b'], []]);
    // The log itself keeps everything, and no undo has said anything.
    const log = await app.adapter.conversations.page(sessionId);
    expect(log.map(({ content }) => content)).toEqual(['a', 'to a', 'b', 'to b', 'c', 'to c', 'd', 'to d']);
  });

  it('BOT-25 continues from the restored turn, and can undo further turns', async () => {
    const { app, sessionId, say, seen, handle } = await startDesk(open());
    for (const text of ['a', 'b']) await say(text);
    await handle.undo(sessionId);
    for (const text of ['c', 'd']) await say(text);
    expect(seen.at(-1)).toEqual(['a', 'to a', 'c', 'to c']);

    await handle.undo(sessionId);
    await handle.undo(sessionId);
    expect(await state(app, sessionId)).toEqual({ said: ['a'] });
    await say('e');
    expect(seen.at(-1)).toEqual(['a', 'to a']);
    expect(await state(app, sessionId)).toEqual({ said: ['a', 'e'] });
  });

  it('BOT-25 says when there is nothing to take back, and changes nothing then', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    const none = { orchestrator: 'desk', sessionId, code: 'NOTHING_TO_UNDO' };
    expect(await rejection(handle.undo(sessionId), NothingToUndoError)).toMatchObject(none);
    await say('a');
    await handle.undo(sessionId);
    const before = await handle.history(sessionId);

    expect(await rejection(handle.undo(sessionId), NothingToUndoError)).toMatchObject(none);
    expect(await handle.history(sessionId)).toEqual(before);
    expect(await app.adapter.conversations.page(sessionId)).toHaveLength(2);
    await rejection(handle.undo('nobody'), SessionNotFoundError);
    await rejection(handle.undo(''), InvalidInputError);
    await rejection(handle.undo(sessionId, { timeoutMs: 0 }), InvalidInputError);
  });

  it('BOT-25 BOT-21 says when retention has pruned the way back', async () => {
    const { app, sessionId, say, handle } = await startDesk(open(), { keepCheckpoints: 2 });
    for (const text of ['a', 'b', 'c']) await say(text);
    await handle.undo(sessionId);

    const pruned = { orchestrator: 'desk', sessionId, turnIndex: 0, code: 'CHECKPOINT_PRUNED' };
    expect(await rejection(handle.undo(sessionId), CheckpointNotFoundError, 'CHECKPOINT_PRUNED')).toMatchObject(pruned);
    expect(await state(app, sessionId)).toEqual({ said: ['a', 'b'] });
    expect(await handle.history(sessionId)).toHaveLength(2);
  });

  it('BOT-25 lists the checkpoints, the latest first, page by page', async () => {
    const { sessionId, say, handle } = await startDesk(open());
    const [a, b] = [await say('a'), await say('b')];
    await handle.undo(sessionId);

    const entry = { lastRoute: ['answer'], version: '1', savedAt: expect.any(String) as string };
    const history = await handle.history(sessionId);
    expect(history).toEqual([
      { ...entry, turnIndex: 2, state: { said: ['a'] }, turnId: a.id },
      { ...entry, turnIndex: 1, state: { said: ['a', 'b'] }, turnId: b.id, parent: 0 },
      { ...entry, turnIndex: 0, state: { said: ['a'] }, turnId: a.id },
    ]);
    expect(await handle.history(sessionId, { limit: 1 })).toEqual(history.slice(0, 1));
    expect(await handle.history(sessionId, { before: 2, limit: 1 })).toEqual(history.slice(1, 2));
    expect(await handle.history('nobody')).toEqual([]);
    await rejection(handle.history(sessionId, { limit: 0 }), InvalidInputError);
  });

  it('BOT-25 fills the window of a turn however many messages were undone', async () => {
    const { sessionId, say, seen, handle } = await startDesk(open(), { historyWindow: 4 });
    for (const text of ['a', 'b', 'c']) await say(text);
    for (let round = 0; round < 4; round += 1) {
      await say(`no ${round}`);
      await handle.undo(sessionId);
    }
    await say('d');
    expect(seen.at(-1)).toEqual(['b', 'to b', 'c', 'to c']);
    await say('e');
    expect(seen.at(-1)).toEqual(['c', 'to c', 'd', 'to d']);
  });

  it('BOT-25 BOT-46 reads at most a window for turns after an undo', async () => {
    const adapter = open();
    let read = 0;
    const page: ConversationLog['page'] = async (...args) => {
      const messages = await adapter.conversations.page(...args);
      read += messages.length;
      return messages;
    };
    const conversations = Object.assign(Object.create(adapter.conversations) as ConversationLog, { page });
    const { app, sessionId, say, seen, handle } = await startDesk({ ...adapter, conversations }, { historyWindow: 4 });
    for (const text of ['a', 'b', 'c']) await say(text);
    for (let round = 0; round < 12; round += 1) {
      await say(`no ${round}`);
      await handle.undo(sessionId);
    }
    read = 0;
    await say('d');
    expect(seen.at(-1)).toEqual(['b', 'to b', 'c', 'to c']);
    expect(read).toBe(4);
    expect(await app.checkpoints.load('desk', sessionId)).toMatchObject({ undone: [{ from: 7, through: 30 }] });
  });

  it('BOT-25 keeps a leading system message after an undo', async () => {
    const { sessionId, say, seen, handle, app } = await startDesk(open(), { historyWindow: 2 });
    await app.adapter.conversations.append(sessionId, [{ id: 'lead', role: 'system', content: 'Be kind.' }]);
    for (const text of ['a', 'b', 'c']) await say(text);
    await handle.undo(sessionId);
    await say('d');
    expect(seen.at(-1)).toEqual(['Be kind.', 'b', 'to b']);
  });

  it('BOT-25 waits for the running turn, and undoes that one', async () => {
    const done = gate();
    const { app, sessionId, say, handle } = await startDesk(open(), {}, ({ input, signal }) =>
      input.text === 'slow' ? done.pass(signal) : undefined,
    );
    await say('a');
    const slow = handle.execute('slow', { sessionId });
    await eventually(async () => (await app.turns.lanes.get(sessionId)).head?.status === 'running');
    await rejection(handle.undo(sessionId, { whenBusy: 'reject' }), SessionBusyError);
    const undo = handle.undo(sessionId);
    await eventually(async () => (await app.turns.lanes.get(sessionId)).queued === 1);
    done.open();

    expect(await undo).toMatchObject({ turnIndex: 2, undone: (await slow).id });
    expect(await state(app, sessionId)).toEqual({ said: ['a'] });
  });

  it('BOT-25 one key is one undo, however often and at once it is sent', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    for (const text of ['a', 'b', 'c']) await say(text);
    const undo = () => handle.undo(sessionId, { idempotencyKey: 'once' });

    const [first, second] = await Promise.all([undo(), undo()]);
    expect(second).toEqual(first);
    expect(await undo()).toEqual(first);
    expect(await state(app, sessionId)).toEqual({ said: ['a', 'b'] });
    await rejection(handle.execute('d', { sessionId, idempotencyKey: 'once' }), IdempotencyConflictError);
  });

  it('BOT-25 undos at once each take one turn back', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    for (const text of ['a', 'b', 'c']) await say(text);
    const undone = await Promise.all([handle.undo(sessionId), handle.undo(sessionId)]);

    expect(new Set(undone.map((each) => each.undone)).size).toBe(2);
    expect(await state(app, sessionId)).toEqual({ said: ['a'] });
  });

  it('BOT-25 TRN-06 what an interrupted turn has left behind goes with the turn before it', async () => {
    const { app, sessionId, say, seen, handle } = await startDesk(open(), {}, ({ input, signal }) =>
      input.text === 'slow' ? gate().pass(signal) : undefined,
    );
    for (const text of ['a', 'b']) await say(text);
    const slow = rejectionOf(handle.execute('slow', { sessionId }));
    await eventually(async () => (await app.turns.lanes.get(sessionId)).head?.status === 'running');
    await handle.undo(sessionId, { whenBusy: 'interrupt' });

    expect(await slow).toMatchObject({ code: 'TURN_CANCELLED' });
    await say('c');
    expect(seen.at(-1)).toEqual(['a', 'to a']);
    expect(await state(app, sessionId)).toEqual({ said: ['a', 'c'] });
  });

  it('BOT-25 BOT-52 takes back only what its own orchestrator did', async () => {
    const other = deskOf('sales');
    const { app, sessionId, say, seen, handle } = await startDesk(open(), {}, undefined, [other.definition]);
    const sales = app.handle<Desk>(other.definition);
    await say('a');
    await sales.execute('x', { sessionId });
    await say('b');
    await sales.execute('y', { sessionId });
    await handle.undo(sessionId);

    await say('c');
    expect(seen.at(-1)).toEqual(['a', 'to a', 'x', 'to x', 'y', 'to y']);
    await sales.execute('z', { sessionId });
    expect(await app.checkpoints.load('sales', sessionId)).toMatchObject({ state: { said: ['x', 'y', 'z'] } });
    expect(await state(app, sessionId)).toEqual({ said: ['a', 'c'] });
    await sales.undo(sessionId);
    await say('d');
    expect(await state(app, sessionId)).toEqual({ said: ['a', 'c', 'd'] });
  });

  it('BOT-25 ORC-30 what the plan knows is as before the turn, but for the tokens', async () => {
    const work = async ({ tools, usage, input }: TurnContext<Desk>): Promise<void> => {
      usage.add({ promptTokens: 1, completionTokens: 2 });
      for (const tool of input.text.split(' ')) await tools.use(tool, tool, () => tool);
    };
    const steps = [
      { name: 'start', isDefault: true, sequence: ['find', 'look'], onComplete: 'end' },
      { name: 'end', availableTools: { allowed: ['pay'] } },
    ];
    const { app, sessionId, say, handle } = await startDesk(open(), { steps }, work);
    const manager = app.app.get(OrchestrationStateManager, { strict: false });
    const known = async () => {
      const {
        version: _,
        lastAccessed: __,
        cumulativeTokenUsage,
        ...rest
      } = (await manager.of('desk').getState(sessionId))!;
      return { tokens: cumulativeTokenUsage.totalTokens, ...rest };
    };
    await say('find');
    const before = await known();
    expect(before).toMatchObject({ activeStep: 'start', sequenceIndex: 1 });
    await say('look');
    expect(await known()).toMatchObject({ activeStep: 'end', recentlyUsedTools: ['look', 'find'] });
    await handle.undo(sessionId);

    expect(await known()).toEqual({ ...before, tokens: 6, toolHistory: [expect.objectContaining({ tool: 'find' })] });
    await say('look');
    expect(await known()).toMatchObject({ activeStep: 'end', tokens: 9 });
    await handle.undo(sessionId);
    expect(await known()).toMatchObject({ activeStep: 'start', sequenceIndex: 1, recentlyUsedTools: ['find'] });
    await handle.undo(sessionId);
    expect(await known()).toMatchObject({ recentlyUsedTools: [], toolHistory: [], sequenceIndex: 0, tokens: 9 });
    await say('find look pay');
  });

  it('BOT-25 BOT-09 BOT-10 tells and reports what any turn does, but for what a handler would do', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    const told: string[] = [];
    app.app.get(OrchestratorEvents, { strict: false }).stream.subscribe(({ type }) => told.push(type));
    // The caller may learn of the end from the store, before this process emits it.
    const over = (turns: number) => eventually(() => told.filter((type) => type === 'turn-settled').length === turns);
    const { id } = await say('a');
    await over(1);
    told.length = 0;
    const { turnIndex } = await handle.undo(sessionId);
    await over(1);
    await rejection(handle.undo(sessionId), NothingToUndoError);
    await over(2);

    const begun = ['turn-starting', 'session-loaded'];
    expect(told).toEqual([...begun, 'drift-checked', 'checkpoint-persisted', 'turn-settled', ...begun, 'turn-settled']);
    const [, undo, refused] = await app.turns.list({ sessionId });
    const request = { input: { text: '' }, command: { type: 'undo' } };
    expect(undo).toMatchObject({
      status: 'awaiting-input',
      turnIndex,
      request,
      reply: { text: null, data: { undone: id } },
    });
    expect(undo.report).toMatchObject({ status: 'awaiting-input', attempt: 1, iterations: [] });
    expect(refused).toMatchObject({ status: 'failed', failures: 1, error: { code: 'NOTHING_TO_UNDO' }, request });
  });

  it('BOT-25 TRN-12 rejects a handler that waits for an undo of the session it runs in', async () => {
    const { sessionId, say, handle } = await startDesk(open(), {}, async ({ input }) => {
      if (input.text === 'undo') await rejection(handle.undo(sessionId), TurnReentryError);
    });
    await say('a');
    expect(await say('undo')).toMatchObject({ reply: 'to undo' });
  });
});

describe.each(LASTING_STORES)('undo that outlives its process over $name', ({ create }) => {
  it('BOT-25 BOT-23 BOT-24 migrates or rejects the restored state, as at the start of any turn', async () => {
    const connect = create();
    const first = await startDesk(connect());
    const { sessionId } = first;
    await first.say('a');
    await first.app.close();
    const other = { reply: () => 'other', more: () => 'more' };
    const second = defineOrchestrator<Desk>({ name: 'desk', intents: other, route: () => 'reply' });
    const drifted = await startApplication({ adapter: connect(), orchestrators: [second], turns: FAST });
    await drifted.handle(second).execute('b', { sessionId, force: true });

    await rejection(drifted.handle(second).undo(sessionId), OrchestratorDriftError);
    expect(await drifted.handle(second).undo(sessionId, { force: true })).toMatchObject({ turnIndex: 2 });
    await drifted.handle(second).execute('b', { sessionId });
    await drifted.close();

    const third = defineOrchestrator<Desk>({
      name: 'desk',
      version: '2',
      intents: { answer: () => reply('new', { state: { said: ['new'] } }) },
      migrations: [{ from: '1', to: '2', migrate: ({ said }) => ({ said: [...(said as string[]), 'migrated'] }) }],
    });
    const migrating = await startApplication({ adapter: connect(), orchestrators: [third], turns: FAST });
    await migrating.handle(third).undo(sessionId);
    expect(await migrating.checkpoints.load('desk', sessionId)).toMatchObject({
      version: '2',
      signature: third.signature,
      state: { said: ['a', 'migrated'] },
    });
    await migrating.handle(third).execute('c', { sessionId });
  });
});

interface OpenDesk {
  readonly app: Application;
  readonly sessionId: string;
  /** The input of each turn, in order. */
  readonly seen: unknown[][];
  readonly handle: ReturnType<typeof handleOf>;
  readonly say: (text: string) => ReturnType<OpenDesk['handle']['execute']>;
}

type Work = (turn: TurnContext<Desk>) => unknown;

function handleOf(app: Application, definition: OrchestratorDefinition) {
  return app.handle<Desk>(definition);
}

function deskOf(name: string, config: Partial<OrchestratorConfig<Desk>> = {}, work: Work = () => undefined) {
  const seen: unknown[][] = [];
  const definition = defineOrchestrator<Desk>({
    name,
    initialState: () => ({ said: [] }),
    intents: {
      answer: async (turn) => {
        await work(turn);
        seen.push(turn.history.map(({ content }) => content));
        const { text } = turn.input;
        return reply(`to ${text}`, { state: { said: [...(turn.state.said ?? []), text] } });
      },
    },
    ...config,
  }) as unknown as OrchestratorDefinition;
  return { seen, definition };
}

async function startDesk(
  adapter: SessionsAdapter,
  config: Partial<OrchestratorConfig<Desk>> = {},
  work?: Work,
  others: readonly OrchestratorDefinition[] = [],
): Promise<OpenDesk> {
  const { seen, definition } = deskOf('desk', config, work);
  const app = await startApplication({ adapter, orchestrators: [definition, ...others], turns: FAST });
  const sessionId = await app.session();
  const handle = handleOf(app, definition);
  return { app, sessionId, seen, handle, say: (text) => handle.execute(text, { sessionId }) };
}

async function state(app: Application, sessionId: string): Promise<unknown> {
  return (await app.checkpoints.load('desk', sessionId))?.state;
}

/** Returns the error of a rejected promise. */
function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'resolved',
    (error: unknown) => error,
  );
}
