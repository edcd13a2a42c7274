import {
  type Checkpoint,
  defineOrchestrator,
  type OrchestratorConfig,
  OrchestratorDriftError,
  type OrchestratorRef,
  reply,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { CheckpointConflictError } from 'nestjs-agent-sessions/adapter';
import {
  type Application,
  LASTING_STORES,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';

describe.each(LIVE_STORES)('checkpoints over $name', ({ open }) => {
  it('BOT-20 a settled turn appends one, with the state, the route, who wrote it and when', async () => {
    const desk = countingDesk({ version: '7' });
    const { handle, session, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const turns = [await handle(desk).execute('a', { sessionId }), await handle(desk).execute('b', { sessionId })];

    const [second, first] = await checkpoints.history('desk', sessionId);
    const common = { orchestrator: 'desk', sessionId, version: '7', signature: desk.signature, intents: ['count'], summarizedThrough: 0 }; // prettier-ignore
    const savedAt = expect.stringMatching(/^\d{4}-.*Z$/) as string;
    expect(first).toEqual({ ...common, turnIndex: 0, state: { count: 1 }, lastRoute: ['count'], turnId: turns[0].id, savedAt }); // prettier-ignore
    expect(second).toEqual({ ...common, turnIndex: 1, state: { count: 2 }, lastRoute: ['count'], turnId: turns[1].id, savedAt, parent: 0 }); // prettier-ignore
    expect(await checkpoints.load('desk', sessionId)).toEqual(second);
    expect(await checkpoints.load('desk', sessionId, 0)).toEqual(first);
    expect(await checkpoints.load('desk', sessionId, 2)).toBeNull();
    expect(await checkpoints.list('desk')).toEqual([sessionId]);
  });

  it('BOT-20 the store that Nest injects refuses a taken index, and overwrites nothing', async () => {
    const desk = countingDesk();
    const { handle, session, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    await handle(desk).execute('a', { sessionId });
    const first = (await checkpoints.load('desk', sessionId)) as Checkpoint;
    const taken = checkpoints.append({ ...first, state: { count: 99 } }, 'all');
    expect(await rejection(taken, CheckpointConflictError)).toMatchObject({ sessionId, turnIndex: 0 });
    await rejection(checkpoints.append({ ...first, turnIndex: 2 }, 'all'), CheckpointConflictError);
    expect(await checkpoints.history('desk', sessionId)).toEqual([first]);
  });

  it('BOT-20 retries a turn on top of a checkpoint that another writer added', async () => {
    const seen: unknown[] = [];
    const desk = defineOrchestrator<{ count?: number }>({
      name: 'desk',
      intents: {
        count: async ({ state, attempt, sessionId, turnIndex }) => {
          seen.push([attempt, turnIndex, state]);
          if (attempt === 1) await app.checkpoints.append(checkpointOf(sessionId, 0, { count: 10 }), 'all');
          return { count: (state.count ?? 0) + 1 };
        },
      },
    });
    const app: Application = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } } },
    });
    const checkpointOf = (sessionId: string, turnIndex: number, state: { count: number }) => ({
      orchestrator: 'desk',
      sessionId,
      turnIndex,
      state,
      lastRoute: [],
      signature: desk.signature,
      version: '1',
      summarizedThrough: 0,
    });
    const sessionId = await app.session();
    expect(await app.handle(desk).execute('hi', { sessionId })).toMatchObject({ turnIndex: 1 });
    expect(seen).toEqual([
      [1, 0, {}],
      [2, 1, { count: 10 }],
    ]);
    expect(await app.checkpoints.load('desk', sessionId)).toMatchObject({ turnIndex: 1, state: { count: 11 } });
  });

  it.each([1, 3])(
    'BOT-21 known failure, counts drifted without bound: exactly keepCheckpoints rows remain: %p',
    async (keepCheckpoints) => {
      const desk = countingDesk({ keepCheckpoints });
      const { handle, session, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
      const sessionId = await session();
      for (let turn = 1; turn <= 7; turn += 1) {
        await handle(desk).execute('hi', { sessionId });
        const rows = await checkpoints.history('desk', sessionId);
        expect(rows.map(({ turnIndex }) => turnIndex)).toEqual(
          Array.from({ length: Math.min(turn, keepCheckpoints) }, (_, i) => turn - 1 - i),
        );
      }
      expect(await checkpoints.load('desk', sessionId)).toMatchObject({ turnIndex: 6, state: { count: 7 } });
    },
  );

  it('BOT-21 a hundred remain by default, all of them with keepCheckpoints: all', async () => {
    const [some, all] = [countingDesk({ name: 'some' }), countingDesk({ name: 'all', keepCheckpoints: 'all' })];
    const { handle, session, checkpoints } = await startApplication({
      adapter: open(),
      orchestrators: [some, all],
      turns: { maxQueuedPerSession: 1000 },
    });
    const sessionId = await session();
    const say = (desk: typeof some) => handle(desk).execute('hi', { sessionId });
    await Promise.all(Array.from({ length: 103 }, () => [say(some), say(all)]).flat());
    const page = { limit: 1000 };
    expect(await checkpoints.history('some', sessionId, page)).toHaveLength(100);
    expect(await checkpoints.history('all', sessionId, page)).toHaveLength(103);
    expect((await checkpoints.history('some', sessionId, page)).at(-1)?.turnIndex).toBe(3);
  });
});

describe.each(LASTING_STORES)('an orchestrator of another structure, over $name', ({ create }) => {
  it('BOT-23 stops before dispatch with both signatures in the record, and changes nothing', async () => {
    const open = create();
    const sessionId = await settleOne(open, countingDesk());
    const ran: string[] = [];
    const changed = changedDesk(ran);
    const app = await startApplication({ adapter: open(), orchestrators: [changed] });
    const before = await app.checkpoints.history('desk', sessionId);

    const drift = {
      name: 'OrchestratorDriftError',
      code: 'ORCHESTRATOR_DRIFT',
      savedSignature: countingDesk().signature,
      currentSignature: changed.signature,
      sessionId,
    };
    const error = await rejection(app.handle(changed).execute('hi', { sessionId }), OrchestratorDriftError);
    expect(error).toMatchObject(drift);
    const { id } = await app.handle(changed).submit('hi', { sessionId });
    expect(await rejection(app.turns.result(id), OrchestratorDriftError)).toMatchObject({ ...drift, turnId: id });
    const record = await app.turns.get(id);
    expect(record).toMatchObject({ failures: 1, error: { code: 'ORCHESTRATOR_DRIFT', message: error.message } });
    expect(ran).toEqual([]);
    expect(await app.checkpoints.history('desk', sessionId)).toEqual(before);
    expect(await app.adapter.conversations.page(sessionId)).toHaveLength(1);
  });

  it('BOT-23 force adopts the new structure once; then it is the one that counts', async () => {
    const open = create();
    const sessionId = await settleOne(open, countingDesk());
    const changed = changedDesk([]);
    const app = await startApplication({ adapter: open(), orchestrators: [changed] });
    const adopted = await app.handle(changed).execute('hi', { sessionId, force: true });
    expect(adopted).toMatchObject({ turnIndex: 1, reply: 'count was 1' });
    expect(await app.checkpoints.load('desk', sessionId)).toMatchObject({ signature: changed.signature });
    expect(await app.handle(changed).execute('hi', { sessionId })).toMatchObject({ turnIndex: 2 });
    await app.close();

    const former = countingDesk();
    const back = await startApplication({ adapter: open(), orchestrators: [former] });
    await rejection(back.handle(former).execute('hi', { sessionId }), OrchestratorDriftError);
  });

  it('BOT-23 a forced turn that fails adopts nothing', async () => {
    const open = create();
    const sessionId = await settleOne(open, countingDesk());
    const failing = defineOrchestrator({
      name: 'desk',
      route: () => 'other',
      intents: {
        other: () => {
          throw new Error('not today');
        },
      },
    });
    const app = await startApplication({
      adapter: open(),
      orchestrators: [failing],
      turns: { retry: { attempts: 1 } },
    });
    const forced = app.handle(failing).execute('hi', { sessionId, force: true });
    expect((await rejection(forced, TurnFailedError)).failure?.message).toBe('not today');
    const plain = app.handle(failing).execute('hi', { sessionId });
    await rejection(plain, OrchestratorDriftError);
  });

  it('BOT-22 does not treat code, version, window sizes or the order of intents as drift', async () => {
    const open = create();
    const intents = { a: () => 'a', b: () => 'b' };
    const sessionId = await settleOne(open, defineOrchestrator({ name: 'desk', route: () => 'a', intents }));
    const similar = defineOrchestrator({
      name: 'desk',
      version: '2',
      historyWindow: { router: 1, agents: 2 },
      keepCheckpoints: 5,
      route: () => 'b',
      intents: { b: () => 'other code', a: () => 'a' },
    });
    const app = await startApplication({ adapter: open(), orchestrators: [similar] });
    expect(await app.handle(similar).execute('hi', { sessionId })).toMatchObject({ turnIndex: 1, reply: 'other code' });
  });
});

function countingDesk(options: Partial<OrchestratorConfig<{ count?: number }>> = {}) {
  return defineOrchestrator<{ count?: number }>({
    name: 'desk',
    intents: { count: ({ state }) => ({ count: (state.count ?? 0) + 1 }) },
    ...options,
  });
}

/** The same state, but another structure. */
function changedDesk(ran: string[]) {
  return defineOrchestrator<{ count?: number }>({
    name: 'desk',
    route: () => (ran.push('route'), 'tell'),
    intents: {
      tell: ({ state }) => (ran.push('tell'), reply(`count was ${state.count}`)),
      reset: () => ({ count: 0 }),
    },
  });
}

/** An application that settles one turn of a new session and is gone. @returns the session's id */
async function settleOne(open: () => Application['adapter'], desk: OrchestratorRef): Promise<string> {
  const app = await startApplication({ adapter: open(), orchestrators: [desk] });
  const sessionId = await app.session();
  await app.handle(desk).execute('first', { sessionId });
  await app.close();
  return sessionId;
}
