import { setTimeout as delay } from 'node:timers/promises';
import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  type SessionsAdapter,
  ShuttingDownError,
  type TurnContext,
  type TurnsOptions,
} from 'nestjs-agent-sessions';
import {
  aborted,
  type Application,
  gate,
  LASTING_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';
import { eventually } from '../support/eventually.js';

const HOUR = 3_600_000;

describe.each(LASTING_STORES)('stopping an application over $name', ({ create }) => {
  it('TRN-14 gives a running turn time to finish, and its caller the result', async () => {
    const { pass, open: release } = gate();
    const app = await start(create()(), { shutdownGraceMs: 20_000 }, async (turn) => {
      await pass();
      expect(turn.signal.aborted).toBe(false);
    });
    const sessionId = await app.session();
    const running = app.turns.execute('desk', 'runs', { sessionId });
    await eventually(async () => (await app.turns.list({ sessionId, status: 'running' })).length === 1);

    const closed = app.close();
    await eventually(() => isClosing(app));
    release();
    expect(await running).toMatchObject({ reply: 'did runs' });
    await closed;
  });

  it('TRN-14 claims no new turn; notifies callers of queued turns, which then run elsewhere', async () => {
    const open = create();
    const { pass, open: release } = gate();
    const first = await start(open(), { shutdownGraceMs: 20_000 }, () => pass());
    const sessionId = await first.session();
    const running = first.turns.execute('desk', 'runs', { sessionId });
    await eventually(async () => (await first.turns.list({ sessionId, status: 'running' })).length === 1);
    const queued = first.turns.execute('desk', 'queued', { sessionId });
    const heard = rejection(queued, ShuttingDownError);
    await eventually(async () => (await first.turns.list({ sessionId })).length === 2);

    const closed = first.close();
    await eventually(() => isClosing(first));
    release();
    await closed;
    await running;
    const error = await heard;
    expect(error).toMatchObject({ code: 'SHUTTING_DOWN', sessionId });

    const second = await start(open());
    expect(await second.turns.get(error.turnId ?? '')).toMatchObject({ request: { input: { text: 'queued' } } });
    expect(await second.turns.result(error.turnId ?? '')).toMatchObject({ reply: 'did queued', turnIndex: 1 });
  });

  it('TRN-14 beyond the grace aborts the turn and releases it uncounted; nothing stays locked', async () => {
    const open = create();
    let reason: unknown;
    const begun = gate();
    const first = await start(open(), { shutdownGraceMs: 30, leaseMs: HOUR }, ({ signal }) => {
      begun.open();
      return aborted(signal).catch((error: unknown) => {
        reason = error;
        throw error;
      });
    });
    const sessionId = await first.session();
    const heard = rejection(first.turns.execute('desk', 'interrupted', { sessionId }), ShuttingDownError);
    await begun.pass();
    await first.close();
    const { turnId = '' } = await heard;
    expect(reason).toMatchObject({ code: 'TURN_STOPPED' });

    const attempts: number[] = [];
    const second = await start(open(), { leaseMs: HOUR }, async ({ attempt }) => void attempts.push(attempt));
    expect(await second.turns.result(turnId)).toMatchObject({ reply: 'did interrupted', turnIndex: 0 });
    expect(await second.turns.get(turnId)).toMatchObject({ failures: 0 });
    expect(attempts).toEqual([1]);
  });

  it('TRN-14 does not wait for a handler that ignores its signal', async () => {
    const open = create();
    const { pass, open: release } = gate();
    const begun = gate();
    let ended = false;
    const first = await start(open(), { shutdownGraceMs: 10, leaseMs: HOUR }, async () => {
      begun.open();
      await pass();
      ended = true;
    });
    const { id } = await first.turns.submit('desk', 'deaf', { sessionId: await first.session() });
    await begun.pass();
    await first.close();
    const second = await start(open());
    expect(await second.turns.result(id)).toMatchObject({ reply: 'did deaf' });
    const settled = await second.turns.get(id);

    // The first one ends after all: too late, it changes nothing.
    release();
    await eventually(() => ended);
    expect(await second.turns.get(id)).toEqual(settled);
  });

  it('TRN-14 also releases a turn that is claimed during the shutdown', async () => {
    const open = create();
    const adapter = open();
    const claim = gate();
    const slow = { ...adapter, turns: delayClaims(adapter, () => claim.pass()) };
    const { pass, open: release } = gate();
    const first = await start(slow, { shutdownGraceMs: 0, leaseMs: HOUR }, () => pass());
    const { id } = await first.turns.submit('desk', 'just claimed', { sessionId: await first.session() });

    let closed = false;
    const closing = first.close().then(() => (closed = true));
    // The grace is over by then; were it not, the turn would be stopped in the ordinary way.
    await delay(20);
    claim.open();
    await eventually(() => closed, { limitMs: 5000, what: 'closing' }).finally(release);
    await closing;
    const second = await start(open());
    expect(await second.turns.result(id)).toMatchObject({ reply: 'did just claimed' });
  });

  it('TRN-14 takes no new turns', async () => {
    const app = await start(create()());
    const sessionId = await app.session();
    await app.close();
    await rejection(app.turns.submit('desk', 'late', { sessionId }), ShuttingDownError);
    await rejection(app.turns.execute('desk', 'late', { sessionId }), ShuttingDownError);
  });

  it('TRN-14 a handler that is refused a turn of its own by the shutdown has not failed', async () => {
    const open = create();
    const { pass, open: release } = gate();
    const first: Application = await start(
      open(),
      { shutdownGraceMs: 20_000, retry: { attempts: 1 } },
      async ({ sessionId, attempt }) => {
        await pass();
        await first.turns.submit('desk', `follow-up ${attempt}`, { sessionId });
      },
    );
    const sessionId = await first.session();
    const { id } = await first.turns.submit('desk', 'outer', { sessionId });
    await eventually(async () => (await first.turns.list({ sessionId, status: 'running' })).length === 1);
    const closed = first.close();
    await eventually(() => isClosing(first));
    release();
    await closed;

    const second = await start(open());
    expect(await second.turns.result(id)).toMatchObject({ reply: 'did outer' });
    expect(await second.turns.get(id)).toMatchObject({ failures: 0 });
  });

  it('TRN-14 BOT-30 a handler finds the turn again that it submitted with its signal', async () => {
    const open = create();
    const child = async (app: Application, { id, input, sessionId, signal }: TurnContext): Promise<void> => {
      const idempotencyKey = `${id}:child`;
      if (input.text === 'outer')
        await app.turns.execute('desk', 'child', { sessionId: `${sessionId}-child`, idempotencyKey, signal });
    };
    const { pass, open: release } = gate();
    const first: Application = await start(open(), { shutdownGraceMs: 30 }, async (turn) => {
      await child(first, turn);
      await pass(turn.signal);
    });
    const sessionId = await first.session();
    await first.sessions.create({ id: `${sessionId}-child`, userId: 'ann' });
    const { id } = await first.turns.submit('desk', 'outer', { sessionId });
    await eventually(async () => (await first.turns.list({ sessionId: `${sessionId}-child` })).length === 1);
    await first.close();
    release();

    const second: Application = await start(open(), {}, (turn) => child(second, turn));
    expect(await second.turns.result(id)).toMatchObject({ reply: 'did outer' });
    expect(await second.turns.list({ sessionId: `${sessionId}-child` })).toMatchObject([{ status: 'awaiting-input' }]);
  });
});

it('TRN-14 another process that runs takes over what the stopped one released', async () => {
  const adapter = memoryAdapter();
  const first = await start(adapter, { shutdownGraceMs: 10, leaseMs: HOUR }, ({ signal }) => aborted(signal));
  const { id, sessionId } = await first.turns.submit('desk', 'moves', { sessionId: await first.session() });
  await eventually(async () => (await first.turns.list({ sessionId, status: 'running' })).length === 1);
  const second = await start(adapter);
  const result = second.turns.result(id);
  await first.close();
  expect(await result).toMatchObject({ reply: 'did moves' });
  expect(await second.turns.get(id)).toMatchObject({ failures: 0 });
});

/** An application with one orchestrator that does `work`, then answers. */
function start(
  adapter: SessionsAdapter,
  turns: TurnsOptions = {},
  work: (turn: TurnContext) => Promise<void> = async () => {},
): Promise<Application> {
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn) => {
        await work(turn);
        return reply(`did ${turn.input.text}`);
      },
    },
  });
  return startApplication({ adapter, orchestrators: [desk], turns });
}

/** Intake is closed. */
async function isClosing({ turns }: Application): Promise<boolean> {
  const error: unknown = await turns
    .submit('no such orchestrator', 'probe', { sessionId: 'probe' })
    .catch((e: unknown) => e);
  return error instanceof ShuttingDownError;
}

/** The store's ledger, whose accept claims nothing and whose claims take as long as `pause`. */
function delayClaims({ turns }: SessionsAdapter, pause: () => Promise<void>): SessionsAdapter['turns'] {
  const slow: Partial<SessionsAdapter['turns']> = {
    accept: ({ claim: _, ...request }) => turns.accept(request),
    claim: async (...args) => {
      const claimed = await turns.claim(...args);
      await pause();
      return claimed;
    },
  };
  return Object.assign(Object.create(turns) as SessionsAdapter['turns'], slow);
}
