import {
  CheckpointNotFoundError,
  defineOrchestrator,
  InvalidInputError,
  NothingToUndoError,
  OrchestrationStateManager,
  type OrchestratorConfig,
  type OrchestratorDefinition,
  OrchestratorDriftError,
  turnOutcome,
  SessionConflictError,
  SessionNotFoundError,
  type SessionsAdapter,
  type TurnContext,
  TurnWaitTimeoutError,
} from 'nestjs-agent-sessions';
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

describe.each(LIVE_STORES)('fork over $name', ({ open }) => {
  it('BOT-25 creates a session that continues from the latest turn, and leaves the old one unchanged', async () => {
    const { app, sessionId, say, seen, handle } = await startDesk(open());
    for (const text of ['a', 'b']) await say(text);
    const log = await app.adapter.conversations.page(sessionId);
    const forked = await handle.fork(sessionId);

    const { id: _, createdAt: __, lastActivityAt: ___, stateChangedAt: ____, version: _____, ...source } = (await app.sessions.get(sessionId))!; // prettier-ignore
    expect(forked).toMatchObject({ ...source, attachedSurfaces: [] });
    expect(forked.id).not.toBe(sessionId);
    expect(await app.sessions.get(forked.id)).toEqual(forked);
    expect(await contents(app, forked.id)).toEqual(['a', 'to a', 'b', 'to b']);
    expect(await handle.history(forked.id)).toMatchObject([{ turnIndex: 0, state: { said: ['a', 'b'] } }]);

    await handle.execute('c', { sessionId: forked.id });
    await say('d');
    expect(seen.slice(-2)).toEqual([
      ['a', 'to a', 'b', 'to b'],
      ['a', 'to a', 'b', 'to b'],
    ]);
    expect(await state(app, forked.id)).toEqual({ said: ['a', 'b', 'c'] });
    expect(await state(app, sessionId)).toEqual({ said: ['a', 'b', 'd'] });
    expect((await app.adapter.conversations.page(sessionId)).slice(0, log.length)).toEqual(log);
  });

  it('BOT-25 continues from an earlier turn, even one that was undone later', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    for (const text of ['a', 'b', 'c']) await say(text);
    await handle.undo(sessionId);
    await say('d');

    const fork = async (atTurn: number) => {
      const { id } = await handle.fork(sessionId, { atTurn });
      expect(await state(app, id)).toEqual((await app.checkpoints.load('desk', sessionId, atTurn))?.state);
      return (await contents(app, id)).filter((text) => !text.startsWith('to '));
    };
    expect(await fork(0)).toEqual(['a']);
    expect(await fork(1)).toEqual(['a', 'b']);
    expect(await fork(2)).toEqual(['a', 'b', 'c']);
    expect(await fork(3)).toEqual(['a', 'b']);
    expect(await fork(4)).toEqual(['a', 'b', 'd']);
  });

  it('BOT-25 copies messages and their authors unchanged, without undone messages', async () => {
    const { app, sessionId, handle, say } = await startDesk(open());
    const { conversations } = app.adapter;
    await conversations.append(sessionId, [
      { id: 'lead', role: 'system', content: 'Be kind.', metadata: { by: 'us' } },
    ]);
    await handle.execute(
      { text: 'a', content: [{ type: 'text', text: 'a' }], metadata: { from: 'app' } },
      { sessionId },
    );
    await say('tools');
    await say('no');
    await handle.undo(sessionId);
    const { id } = await handle.fork(sessionId);

    const said = async (of: string) =>
      (await conversations.page(of)).map(({ id: _, position: __, createdAt: ___, turnId: ____, ...rest }) => rest);
    expect(await said(id)).toEqual((await said(sessionId)).slice(0, -2));
    expect(new Set((await conversations.page(id)).map((message) => message.id)).size).toBe(6);
    expect((await said(id))[0]).not.toHaveProperty('orchestrator');
  });

  it('BOT-25 can fork a fork, and undo it back to its start, not further', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    for (const text of ['a', 'b']) await say(text);
    const { id: first } = await handle.fork(sessionId);
    await handle.execute('c', { sessionId: first });
    const { id: second } = await handle.fork(first, { atTurn: 0 });
    const { id: third } = await handle.fork(first);

    expect(await contents(app, second)).toEqual(['a', 'to a', 'b', 'to b']);
    expect(await contents(app, third)).toEqual(['a', 'to a', 'b', 'to b', 'c', 'to c']);
    await handle.undo(first);
    expect(await state(app, first)).toEqual({ said: ['a', 'b'] });
    await rejection(handle.undo(first), NothingToUndoError);
    await rejection(handle.undo(third), NothingToUndoError);
  });

  it('BOT-25 creates one session for repeated and concurrent calls of the same fork', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    await say('a');
    const fork = () => handle.fork(sessionId, { newSessionId: `${sessionId}/fork` });
    const forks = await Promise.all([fork(), fork(), fork()]);
    await say('b');
    await handle.execute('c', { sessionId: forks[0].id });

    expect(new Set(forks.map(({ id }) => id))).toEqual(new Set([`${sessionId}/fork`]));
    expect(await fork()).toMatchObject({ id: `${sessionId}/fork` });
    expect(await contents(app, `${sessionId}/fork`)).toEqual(['a', 'to a', 'c', 'to c']);
    expect(await state(app, `${sessionId}/fork`)).toEqual({ said: ['a', 'c'] });
  });

  it('BOT-25 rejects a target session of another owner, or one that is not empty', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    await say('a');
    await say('b');
    const theirs = await app.sessions.create({ userId: 'bob' });
    const elsewhere = await app.sessions.create({ userId: 'ann', workspaceId: 'other' });
    const used = await app.session();
    await handle.execute('x', { sessionId: used });
    const spoken = await app.session();
    await app.adapter.conversations.append(spoken, [{ id: 'm', role: 'user', content: 'hello' }]);

    for (const { id } of [theirs, elsewhere]) {
      const refused = handle.fork(sessionId, { newSessionId: id });
      expect(await rejection(refused, SessionConflictError)).toMatchObject({ sessionId: id });
      expect(await contents(app, id)).toEqual([]);
    }
    for (const id of [used, spoken, sessionId]) {
      const before = await contents(app, id);
      const refused = handle.fork(sessionId, { newSessionId: id, atTurn: 0 });
      expect(await rejection(refused, SessionConflictError, 'SESSION_NOT_EMPTY')).toMatchObject({ sessionId: id });
      expect(await contents(app, id)).toEqual(before);
    }
    await handle.fork(sessionId, { newSessionId: 'mine', userId: 'bob', metadata: { copy: true } });
    expect(await app.sessions.get('mine')).toMatchObject({ userId: 'bob', metadata: { copy: true } });
    // Another fork into the same one.
    const other = handle.fork(sessionId, { newSessionId: 'mine', userId: 'bob', atTurn: 0 });
    await rejection(other, SessionConflictError, 'SESSION_NOT_EMPTY');
    expect(await state(app, 'mine')).toEqual({ said: ['a', 'b'] });
  });

  it('BOT-25 rejects missing checkpoints, missing sessions and invalid options, and creates no session', async () => {
    const { app, sessionId, say, handle } = await startDesk(open(), { keepCheckpoints: 2 });
    const none = rejection(handle.fork(sessionId), CheckpointNotFoundError);
    expect(await none).toMatchObject({ orchestrator: 'desk', sessionId, code: 'CHECKPOINT_NOT_FOUND' });
    for (const text of ['a', 'b', 'c']) await say(text);
    const count = await app.sessions.count();

    const unknown = handle.fork(sessionId, { atTurn: 3 });
    expect(await rejection(unknown, CheckpointNotFoundError)).toMatchObject({ turnIndex: 3 });
    const pruned = handle.fork(sessionId, { atTurn: 0 });
    expect(await rejection(pruned, CheckpointNotFoundError, 'CHECKPOINT_PRUNED')).toMatchObject({
      turnIndex: 0,
      sessionId,
    });
    expect(await rejection(handle.fork('nobody'), SessionNotFoundError)).toMatchObject({ sessionId: 'nobody' });
    for (const wrong of [{ atTurn: -1 }, { newSessionId: 'no id' }, { userId: '' }, { metadata: 7 as never }]) {
      const error = await handle.fork(sessionId, wrong).catch((reason: unknown) => reason);
      if ('metadata' in wrong) expect(error).toMatchObject({ code: 'STATE_NOT_SERIALIZABLE' });
      else expect(error).toBeInstanceOf(InvalidInputError);
    }
    expect(await app.sessions.count()).toBe(count);
  });

  it.each(['session', 'checkpoint', 'checkpoint of the turn'])(
    'FIX-90 BOT-25 copies nothing of another user who gets the id of the source after the %s was read',
    async (read) => {
      const { app, sessionId, say, handle } = await startDesk(open());
      await say('a');
      const [get, create] = [app.sessions.get.bind(app.sessions), app.sessions.create.bind(app.sessions)];
      const { conversations } = app.adapter;
      const page = conversations.page.bind(conversations);
      let isReplaced = false;
      const replaced = async <T>(result: T): Promise<T> => {
        if (isReplaced) return result;
        isReplaced = true;
        await app.sessions.delete(sessionId);
        await create({ id: sessionId, userId: 'bob' });
        await handle.execute('of bob', { sessionId });
        return result;
      };
      if (read === 'session') app.sessions.get = async (id) => replaced(await get(id));
      else if (read === 'checkpoint') app.sessions.create = async (input) => replaced(await create(input));
      else conversations.page = async (id, range) => page(id === sessionId ? await replaced(id) : id, range);

      await rejection<Error>(
        handle.fork(sessionId, { newSessionId: 'copy' }),
        read === 'session' ? SessionNotFoundError : CheckpointNotFoundError,
      );
      expect(isReplaced).toBe(true);
      expect(await contents(app, 'copy')).toEqual([]);
    },
  );

  it('FIX-90 BOT-25 copies nothing into the session of another user who gets the id of the target', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    await say('a');
    const create = app.sessions.create.bind(app.sessions);
    app.sessions.create = async (input) => {
      const session = await create(input);
      await app.sessions.delete('copy');
      await create({ id: 'copy', userId: 'bob' });
      return session;
    };
    await rejection(handle.fork(sessionId, { newSessionId: 'copy' }), SessionNotFoundError);
    expect(await contents(app, 'copy')).toEqual([]);
    expect(await app.turns.list({ sessionId: 'copy' })).toEqual([]);
  });

  it('BOT-25 copies a log of many pages completely', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    const message = (n: number) => ({ id: `m${n}`, role: 'user' as const, content: String(n) });
    await app.adapter.conversations.append(
      sessionId,
      Array.from({ length: 5000 }, (_, n) => message(n)),
    );
    await say('a');
    await say('b');
    const { id } = await handle.fork(sessionId, { atTurn: 0 });

    const copied: string[] = [];
    for (let after = 0; after < 5002; after += 1000) {
      const page = await app.adapter.conversations.page(id, { after, limit: 1000 });
      copied.push(...page.map(({ content }) => content as string));
    }
    expect(copied).toEqual([...Array.from({ length: 5000 }, (_, n) => String(n)), 'a', 'to a']);
  });

  it('BOT-25 a fork while turns run has whole turns, and the state that belongs to them', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    await say('first');
    const turns = Promise.all(Array.from({ length: 12 }, (_, n) => say(String(n))));
    const forks: string[] = [];
    for (let n = 0; n < 5; n += 1) forks.push((await handle.fork(sessionId)).id);
    await turns;

    for (const id of forks) {
      const { said } = (await state(app, id)) as { said: string[] };
      expect(await contents(app, id)).toEqual(said.flatMap((text) => [text, `to ${text}`]));
    }
  });

  it('BOT-25 does not wait for a running turn, which can fork its own session', async () => {
    const done = gate();
    let forked = '';
    const desk: OpenDesk = await startDesk(open(), {}, async ({ input, sessionId, signal }) => {
      if (input.text !== 'slow') return;
      forked = (await desk.handle.fork(sessionId)).id;
      await done.pass(signal);
    });
    const { app, sessionId, say, handle } = desk;
    await say('a');
    const slow = say('slow');
    await eventually(() => forked !== '');
    const { id } = await handle.fork(sessionId);
    done.open();
    await slow;

    expect(await contents(app, forked)).toEqual(['a', 'to a']);
    expect(await contents(app, id)).toEqual(['a', 'to a']);
  });

  it('BOT-25 BOT-52 forks the state of one orchestrator, and the messages of all of them', async () => {
    const { definition } = deskOf('sales');
    const { app, sessionId, say, handle } = await startDesk(open(), {}, undefined, [definition]);
    const sales = app.handle<Desk>(definition);
    await say('a');
    await sales.execute('x', { sessionId });
    await say('b');
    await sales.execute('y', { sessionId });
    const { id } = await handle.fork(sessionId);
    const { id: early } = await handle.fork(sessionId, { atTurn: 0 });

    expect(await speakers(app, id)).toEqual(['desk a', 'desk to a', 'sales x', 'sales to x', 'desk b', 'desk to b', 'sales y', 'sales to y']); // prettier-ignore
    expect(await speakers(app, early)).toEqual(['desk a', 'desk to a', 'sales x', 'sales to x']);
    expect(await app.checkpoints.load('sales', id)).toBeNull();
    await sales.execute('z', { sessionId: id });
    expect(await app.checkpoints.load('sales', id)).toMatchObject({ turnIndex: 0, state: { said: ['z'] } });
  });

  it('BOT-25 ORC-30 what the plan knows is as after the turn', async () => {
    const steps = [{ name: 'start', isDefault: true, sequence: ['find', 'look', 'pay'] }];
    const work = async ({ tools, usage, input }: TurnContext<Desk>): Promise<void> => {
      usage.add({ promptTokens: 1, completionTokens: 2 });
      await tools.use(input.text, input.text, () => 'done');
    };
    const { app, sessionId, say, handle } = await startDesk(open(), { steps }, work);
    const manager = app.app.get(OrchestrationStateManager, { strict: false }).of('desk');
    await say('find');
    await say('look');
    const { id } = await handle.fork(sessionId, { atTurn: 0 });

    expect(await manager.getState(id)).toMatchObject({
      activeStep: 'start',
      sequenceIndex: 1,
      recentlyUsedTools: ['find'],
      cumulativeTokenUsage: { totalTokens: 3 },
    });
    await handle.execute('look', { sessionId: id });
    expect(await manager.getState(id)).toMatchObject({ sequenceIndex: 2, cumulativeTokenUsage: { totalTokens: 6 } });
    expect(await manager.getState(sessionId)).toMatchObject({ sequenceIndex: 2 });
  });
});

describe.each(LASTING_STORES)('a fork that outlives its process over $name', ({ create }) => {
  it('BOT-25 is completed by the same call after an interruption', async () => {
    const connect = create();
    const { app, sessionId, say, handle } = await startDesk(connect());
    await say('a');
    await app.turns.lanes.pause({ all: true });
    const newSessionId = `${sessionId}-fork`;
    await rejection(handle.fork(sessionId, { newSessionId, timeoutMs: 50 }), TurnWaitTimeoutError);
    await app.close();

    const { definition } = deskOf('desk');
    const next = await startApplication({ adapter: connect(), orchestrators: [definition], turns: FAST });
    await next.turns.lanes.resume({ all: true });
    await next.handle(definition).fork(sessionId, { newSessionId });
    expect(await contents(next, newSessionId)).toEqual(['a', 'to a']);
    expect(await next.turns.list({ sessionId: newSessionId })).toHaveLength(1);
    // The same applies if the process died after it created the session.
    await next.sessions.create({ id: `${newSessionId}-2`, userId: 'ann' });
    await next.handle(definition).fork(sessionId, { newSessionId: `${newSessionId}-2` });
    expect(await contents(next, `${newSessionId}-2`)).toEqual(['a', 'to a']);
  });

  it('BOT-25 BOT-23 BOT-24 migrates or rejects the copied state, as at the start of any turn', async () => {
    const connect = create();
    const { app, sessionId, say } = await startDesk(connect());
    await say('a');
    await app.close();
    const drifted = defineOrchestrator<Desk>({
      name: 'desk',
      intents: { reply: () => 'x', more: () => 'y' },
      route: () => 'more',
    });
    const second = await startApplication({ adapter: connect(), orchestrators: [drifted], turns: FAST });
    await rejection(second.handle(drifted).fork(sessionId), OrchestratorDriftError);
    const { id } = await second.handle(drifted).fork(sessionId, { force: true });
    await second.handle(drifted).execute('b', { sessionId: id });

    // A call with the same new session does not repeat the failure of an earlier one.
    const newSessionId = `${sessionId}-fork`;
    await rejection(second.handle(drifted).fork(sessionId, { newSessionId }), OrchestratorDriftError);
    await rejection(second.handle(drifted).fork(sessionId, { newSessionId }), OrchestratorDriftError);
    const retried = await second.handle(drifted).fork(sessionId, { newSessionId, force: true });
    expect(retried.id).toBe(newSessionId);
    expect(await contents(second, newSessionId)).toEqual(['a', 'to a']);
    await second.close();

    const migrating = defineOrchestrator<Desk>({
      name: 'desk',
      version: '2',
      intents: { answer: () => 'x' },
      migrations: [{ from: '1', to: '2', migrate: ({ said }) => ({ said: [...(said as string[]), 'migrated'] }) }],
    });
    const third = await startApplication({ adapter: connect(), orchestrators: [migrating], turns: FAST });
    const fork = await third.handle(migrating).fork(sessionId);
    expect(await third.checkpoints.load('desk', fork.id)).toMatchObject({
      version: '2',
      state: { said: ['a', 'migrated'] },
    });
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
    intents: {
      answer: async (turn) => {
        await work(turn);
        seen.push(turn.history.map(({ content }) => content));
        const { text } = turn.input;
        const calls = [
          { role: 'assistant', content: null, toolCalls: [{ id: 'c1', name: 'find', arguments: { q: 1 } }] },
          { role: 'tool', content: '{}', toolCallId: 'c1', name: 'find' },
        ] as const;
        const messages = text === 'tools' ? calls : [{ role: 'assistant', content: `to ${text}` } as const];
        return turnOutcome({ messages, state: { said: [...(turn.state.said ?? []), text] } });
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
  const { id: sessionId } = await app.sessions.create({
    userId: 'ann',
    initialSurfaceId: 'web',
    metadata: { plan: 'pro' },
  });
  const handle = handleOf(app, definition);
  return { app, sessionId, seen, handle, say: (text) => handle.execute(text, { sessionId }) };
}

async function state(app: Application, sessionId: string): Promise<unknown> {
  return (await app.checkpoints.load('desk', sessionId))?.state;
}

async function contents(app: Application, sessionId: string): Promise<string[]> {
  return (await app.adapter.conversations.page(sessionId)).map(({ content }) => content as string);
}

async function speakers(app: Application, sessionId: string): Promise<string[]> {
  const log = await app.adapter.conversations.page(sessionId);
  return log.map(({ orchestrator, content }) => `${orchestrator} ${content as string}`);
}
