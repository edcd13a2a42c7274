import { AsyncLocalStorage } from 'node:async_hooks';
import {
  defineOrchestrator,
  InMemorySessionStoreAdapter,
  memoryAdapter,
  type OrchestratorRef,
  type SessionsAdapter,
  type SessionStoreAdapter,
  ShuttingDownError,
  StoreUnavailableError,
  type TurnContext,
} from 'nestjs-agent-sessions';
import { type TurnChanges, type TurnLedger } from 'nestjs-agent-sessions/adapter';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { eventually } from '../support/eventually.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { aborted, type Application, gate, LIVE_STORES, startApplication } from '../support/running-application.js';

const HOUR = 3_600_000;
const PATIENT = { leaseMs: HOUR, shutdownGraceMs: 20_000 };

/** The default queue, which notes the sessions that were notified. */
class NotingQueue extends InProcessQueue {
  readonly notified: string[] = [];

  override notify(sessionId: string, delayMs?: number): Promise<void> {
    this.notified.push(sessionId);
    return super.notify(sessionId, delayMs);
  }
}

describe.each(LIVE_STORES)('turns that run at once over $name', ({ open }) => {
  it('TRN-20 PRF-05 a turn that finds its lane idle costs accept and settle, and no notification', async () => {
    const calls: string[] = [];
    const { app, queue } = await start(recordingAdapter(open(), calls));
    const sessionId = await app.session();
    calls.length = 0;
    for (let turn = 0; turn < 10; turn += 1) {
      expect(await app.turns.execute('desk', `${turn}`, { sessionId })).toMatchObject({ turnIndex: turn });
    }

    const counted = (call: string): number => calls.filter((each) => each === call).length;
    expect([counted('turns.accept'), counted('turns.claim'), counted('turns.settle')]).toEqual([10, 0, 10]);
    expect(queue.notified).toEqual([]);
  });

  it('TRN-02 turns of a lane that are submitted at once run one after the other, in their order', async () => {
    const texts: string[] = [];
    let running = 0;
    const { app } = await start(open(), async ({ input }) => {
      expect((running += 1)).toBe(1);
      texts.push(input.text);
      await new Promise(setImmediate);
      running -= 1;
    });
    const sessionId = await app.session();
    const submitted = Array.from({ length: 20 }, (_, n) => app.turns.submit('desk', `${n}`, { sessionId }));
    const turns = (await Promise.all(submitted)).sort((a, b) => a.position - b.position);
    await Promise.all(turns.map(({ id }) => app.turns.result(id)));

    expect(texts).toEqual(turns.map(({ request }) => request.input.text));
  });
});

describe('a turn that runs at once', () => {
  it('TRN-20 does not run in the asynchronous context of the request that submitted it', async () => {
    const request = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const { app, queue } = await start(memoryAdapter(), () => void seen.push(request.getStore()));
    const sessionId = await app.session();
    await request.run("ann's request", () => app.turns.execute('desk', 'hello', { sessionId }));

    expect(seen).toEqual([undefined]);
    expect(queue.notified).toEqual([]);
  });

  it('TRN-09 is cancelled by the signal of who submitted it', async () => {
    const { app } = await start(memoryAdapter(), ({ signal }) => aborted(signal));
    const sessionId = await app.session();
    const controller = new AbortController();
    const { id } = await app.turns.submit('desk', 'hello', { sessionId, signal: controller.signal });
    expect(await app.turns.get(id)).toMatchObject({ status: 'running' });
    controller.abort();

    await eventually(async () => (await app.turns.get(id))?.status === 'cancelled');
  });

  it('TRN-20 is notified where its process only submits', async () => {
    const calls: string[] = [];
    const queue = new NotingQueue(4);
    const adapter = recordingAdapter(memoryAdapter(), calls);
    const app = await startApplication({ adapter, role: 'submit', turns: { queue }, orchestrators: [desk()] });
    const sessionId = await app.session();
    const { id } = await app.turns.submit('desk', 'hello', { sessionId });

    expect(queue.notified).toEqual([sessionId]);
    expect(await app.turns.get(id)).toMatchObject({ status: 'queued' });
  });

  it('TRN-20 notifies a worker if all slots are taken', async () => {
    const { pass, open } = gate();
    const { app, queue } = await start(memoryAdapter(), () => pass(), 1);
    const [first, second] = [await app.session(), await app.session()];
    const running = app.turns.execute('desk', 'first', { sessionId: first });
    await eventually(async () => (await app.turns.list({ sessionId: first, status: 'running' })).length === 1);
    const { id } = await app.turns.submit('desk', 'second', { sessionId: second });
    expect(queue.notified).toEqual([second]);
    expect(await app.turns.get(id)).toMatchObject({ status: 'queued' });

    open();
    await running;
    await app.turns.result(id);
  });

  it('TRN-20 runs without a notification over a store whose accept claims nothing', async () => {
    const calls: string[] = [];
    const adapter = recordingAdapter(
      withAccept(memoryAdapter(), (turns, { claim: _, ...request }) => turns.accept(request)),
      calls,
    );
    const { app, queue } = await start(adapter);
    const sessionId = await app.session();
    await app.turns.execute('desk', 'hello', { sessionId });

    expect(calls.filter((call) => call === 'turns.claim')).toHaveLength(1);
    expect(queue.notified).toEqual([]);
  });

  it('TRN-20 leaves its place when it is refused', async () => {
    const { app } = await start(memoryAdapter(), () => undefined, 1);
    const sessionId = await app.session();
    for (let n = 0; n < 3; n += 1) {
      await expect(app.turns.submit('desk', 'hello', { sessionId: 'nobody' })).rejects.toThrow();
    }
    expect(await app.turns.execute('desk', 'hello', { sessionId })).toMatchObject({ turnIndex: 0 });
  });

  it('TRN-15 whose acceptance was not answered runs all the same, and nothing waits for its lease', async () => {
    const adapter = withAccept(memoryAdapter(), async (turns, request) => {
      await turns.accept(request);
      throw new StoreUnavailableError('The answer was lost.');
    });
    const { app } = await start(adapter, () => undefined, 4, { leaseMs: HOUR });
    const sessionId = await app.session();
    await expect(app.turns.submit('desk', 'hello', { sessionId })).rejects.toThrow('The answer was lost.');

    await eventually(async () => (await app.turns.list({ sessionId }))[0]?.status === 'awaiting-input');
    expect((await app.turns.list({ sessionId }))[0]).toMatchObject({ failures: 0 });
  });

  it('TRN-14 that was claimed while its process began to stop runs within the grace', async () => {
    const { app, adapter, answer, accepted } = await startWithSlowAnswers(() => undefined, PATIENT);
    const sessionId = await app.session();
    const submitted = app.turns.submit('desk', 'hello', { sessionId });
    await accepted;
    const closed = app.close();
    await eventually(() => isClosing(app));
    answer();
    await Promise.all([submitted, closed]);

    expect(await adapter.turns.list({ sessionId })).toMatchObject([{ status: 'awaiting-input', failures: 0 }]);
  });

  it('TRN-14 that was claimed while its process began to stop is released uncounted beyond the grace', async () => {
    const { app, adapter, answer, accepted } = await startWithSlowAnswers(({ signal }) => aborted(signal), {
      leaseMs: HOUR,
      shutdownGraceMs: 30,
    });
    const sessionId = await app.session();
    const submitted = app.turns.submit('desk', 'hello', { sessionId });
    await accepted;
    const closed = app.close();
    await eventually(() => isClosing(app));
    answer();
    await Promise.all([submitted, closed]);

    expect(await adapter.turns.list({ sessionId })).toMatchObject([{ status: 'queued', failures: 0 }]);
  });

  it('TRN-14 TRN-15 whose acceptance was not answered while its process stopped runs within the grace', async () => {
    const { app, adapter, answer, accepted } = await startWithSlowAnswers(() => undefined, PATIENT, 'lost');
    const sessionId = await app.session();
    const submitted = app.turns.submit('desk', 'hello', { sessionId }).catch(() => undefined);
    await accepted;
    const closed = app.close();
    await eventually(() => isClosing(app));
    answer();
    await Promise.all([submitted, closed]);

    expect(await adapter.turns.list({ sessionId })).toMatchObject([{ status: 'awaiting-input', failures: 0 }]);
  });

  it('TRN-20 tries an unavailable store once more, without a log line', async () => {
    const told: string[] = [];
    const tell = (line: unknown): void => void told.push(String(line));
    const away = async (): Promise<never> => {
      throw new StoreUnavailableError('The store is away.');
    };
    const adapter = withTurns(memoryAdapter(), () => ({ accept: away, claim: away }));
    const app = await startApplication({
      adapter,
      turns: { queue: new InProcessQueue(1), reconcileMs: HOUR },
      orchestrators: [desk()],
      logger: { log: () => undefined, warn: tell, error: tell },
    });
    const sessionId = await app.session();
    told.length = 0;
    for (let n = 0; n < 3; n += 1) await expect(app.turns.submit('desk', 'x', { sessionId })).rejects.toThrow('away');
    await app.close();

    expect(told).toEqual([]);
  });

  it('TRN-09 is cancelled by who asks before its acceptance was answered', async () => {
    // No renewal comes soon.
    const { app, answer, accepted } = await startWithSlowAnswers(({ signal }) => aborted(signal), { leaseMs: HOUR });
    const sessionId = await app.session();
    const submitted = app.turns.submit('desk', 'hello', { sessionId });
    await accepted;
    const [{ id }] = await app.turns.list({ sessionId });
    await app.turns.cancel(id);
    answer();
    await submitted;

    await eventually(async () => (await app.turns.get(id))?.status === 'cancelled');
  });

  it('TRN-15 begins while the answer of the settle before it is on the way', async () => {
    const { pass, open } = gate();
    let settles = 0;
    const adapter = withTurns(memoryAdapter(), (turns) => ({
      settle: async (...args) => {
        const settled = await turns.settle(...args);
        if ((settles += 1) === 1) await pass();
        return settled;
      },
    }));
    const { app, queue } = await start(adapter, () => undefined, 1);
    const sessionId = await app.session();
    await app.turns.submit('desk', 'first', { sessionId });
    await eventually(() => settles === 1);
    expect(await app.turns.execute('desk', 'second', { sessionId })).toMatchObject({ turnIndex: 1 });
    expect(queue.notified).toEqual([]);
    open();
  });

  it('BOT-35 that is for a newer process is notified when it was claimed', async () => {
    const store = memoryAdapter();
    const newer = await startApplication({ adapter: store, orchestrators: [desk(() => undefined, '2')] });
    const sessionId = await newer.session();
    await newer.turns.execute('desk', 'first', { sessionId });
    await newer.close();
    const { app, queue } = await start(store);
    await app.turns.submit('desk', 'second', { sessionId });

    await eventually(() => queue.notified.length > 0);
    expect(queue.notified).toEqual([sessionId]);
  });

  it('SES-15 TRN-14 does not hold a concurrency slot while loading an external session; its lease begins afterwards', async () => {
    const { pass, open } = gate();
    const inner = new InMemorySessionStoreAdapter();
    let lookups = 0;
    let isCounted = false;
    const sessions: SessionStoreAdapter = {
      insert: (session) => inner.insert(session),
      fetchMany: (query) => inner.fetchMany(query),
      update: (id, patch) => inner.update(id, patch),
      delete: (id) => inner.delete(id),
      fetchById: async (id) => {
        if (isCounted && (lookups += 1) === 1) await pass();
        return inner.fetchById(id);
      },
    };
    const app = await startApplication({
      adapter: { ...memoryAdapter(), sessions },
      turns: { queue: new InProcessQueue(1), reconcileMs: HOUR },
      orchestrators: [desk()],
    });
    const [slow, other] = [await app.session(), await app.session()];
    isCounted = true;
    const submitted = app.turns.submit('desk', 'slow', { sessionId: slow });
    await eventually(() => lookups === 1);
    expect(await app.turns.execute('desk', 'other', { sessionId: other })).toMatchObject({ turnIndex: 0 });
    open();
    const { id } = await submitted;
    expect(await app.turns.result(id)).toMatchObject({ turnIndex: 0 });
  });

  /** Accepting is done, and its answer is on the way until `answer` is called. Notifications come from every process, so callers do not poll. */
  async function startWithSlowAnswers(
    handle: Handler,
    settings: object,
    becomes: 'answered' | 'lost' = 'answered',
  ): Promise<{ app: Application; adapter: SessionsAdapter; answer: () => void; accepted: Promise<void> }> {
    const { pass, open } = gate();
    const { pass: accepted, open: accept } = gate();
    const store = memoryAdapter();
    const answering = withAccept(store, async (turns, request) => {
      const answer = await turns.accept(request);
      accept();
      await pass();
      if (becomes === 'lost') throw new StoreUnavailableError('The answer was lost.');
      return answer;
    });
    const changes: TurnChanges = { reach: 'store', subscribe: (listener) => store.changes.subscribe(listener) };
    const adapter = { ...answering, changes };
    const { app } = await start(adapter, handle, 4, settings);
    return { app, adapter, answer: open, accepted: accepted() };
  }
});

async function isClosing({ turns }: Application): Promise<boolean> {
  const probe = turns.submit('no such orchestrator', 'probe', { sessionId: 'probe' });
  return (await probe.catch((error: unknown) => error)) instanceof ShuttingDownError;
}

type Handler = (turn: TurnContext) => Promise<void> | void;

function desk(handle: Handler = () => undefined, version = '1'): OrchestratorRef {
  return defineOrchestrator({
    name: 'desk',
    version,
    intents: {
      answer: async (turn) => {
        await handle(turn);
        return 'done';
      },
    },
  });
}

/** Without the reconciler, which would notify, too. */
async function start(
  adapter: SessionsAdapter,
  handle?: Handler,
  concurrency = 8,
  settings: object = {},
): Promise<{ app: Application; queue: NotingQueue }> {
  const queue = new NotingQueue(concurrency);
  const turns = { queue, reconcileMs: HOUR, ...settings };
  return { app: await startApplication({ adapter, turns, orchestrators: [desk(handle)] }), queue };
}

function withAccept(
  adapter: SessionsAdapter,
  accept: (turns: TurnLedger, ...args: Parameters<TurnLedger['accept']>) => ReturnType<TurnLedger['accept']>,
): SessionsAdapter {
  return withTurns(adapter, (turns) => ({ accept: (...args) => accept(turns, ...args) }));
}

/** @param change the part that differs */
function withTurns(adapter: SessionsAdapter, change: (turns: TurnLedger) => Partial<TurnLedger>): SessionsAdapter {
  const { turns } = adapter;
  return { ...adapter, turns: Object.assign(Object.create(turns) as TurnLedger, change(turns)) };
}
