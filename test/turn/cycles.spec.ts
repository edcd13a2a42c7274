import {
  defineOrchestrator,
  reply,
  type SessionsAdapter,
  type TurnContext,
  TurnFailedError,
  TurnReentryError,
  type TurnService,
} from 'nestjs-agent-sessions';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { eventually } from '../support/eventually.js';
import {
  type Application,
  COMMON_STORES,
  gate,
  LIVE_STORES,
  startApplication,
} from '../support/running-application.js';

describe.each(LIVE_STORES)('turns that wait for each other over $name', ({ open }) => {
  it('FIX-04 fails with a typed error as soon as two turns call each other', async () => {
    const { session, run } = await startNotification(open(), async (turns, next) => {
      await turns.execute('desk', 'child', { sessionId: next });
    });
    const notify = [await session(), await session()];
    await expectCycle(await run(notify), notify);
  });

  it('FIX-04 finds a cycle of three that submit and wait for the result', async () => {
    const { session, run } = await startNotification(open(), async (turns, next) => {
      await turns.result((await turns.submit('desk', 'child', { sessionId: next })).id);
    });
    const notify = [await session(), await session(), await session()];
    await expectCycle(await run(notify), notify);
  });

  it('FIX-04 takes no wait that is over for a cycle', async () => {
    const { pass, open: goOn } = gate();
    let here = '';
    let there = '';
    const { app } = await startDesk(open(), async (turns, { input }) => {
      if (input.text === 'parent') {
        await turns().execute('desk', 'child', { sessionId: there });
        await pass();
      }
      if (input.text === 'back') await turns().execute('desk', 'child', { sessionId: here });
    });
    [here, there] = [await app.session(), await app.session()];
    const parent = app.turns.execute('desk', 'parent', { sessionId: here });
    await eventually(async () => (await app.turns.list({ sessionId: there })).some(({ settledAt }) => settledAt));
    const back = app.turns.execute('desk', 'back', { sessionId: there });
    await eventually(async () => (await app.turns.lanes.get(here)).queued === 1);
    goOn();
    expect(await parent).toMatchObject({ reply: 'parent' });
    expect(await back).toMatchObject({ reply: 'back' });
  });
});

describe.each(COMMON_STORES)('turns of two processes that wait for each other over $name', ({ create }) => {
  it('FIX-04 fails with a typed error as soon as the cycle closes', async () => {
    const open = create();
    const work = async (turns: TurnService, next: string): Promise<void> => {
      await turns.execute('desk', 'child', { sessionId: next });
    };
    const first = await startNotification(open(), work);
    const second = await startNotification(open(), work);
    const notify = [await first.session(), await first.session()];
    await expectCycle(await first.run(notify, second), notify);
  });
});

type Desk = Awaited<ReturnType<typeof startDesk>>;

/** Starts a turn in each session of a cycle. Once all of them run, each does `work` with the next session. */
async function startNotification(adapter: SessionsAdapter, work: (turns: TurnService, next: string) => Promise<void>) {
  const next = new Map<string, string>();
  const begun = { count: 0 };
  const everyone = gate();
  const desk: Desk = await startDesk(adapter, async (turns, { input, sessionId }) => {
    if (input.text !== 'notify') return;
    begun.count += 1;
    await everyone.pass();
    await work(turns(), next.get(sessionId) ?? '');
  });
  const notify = { ...desk, session: desk.app.session, next, begun, everyone };
  const run = async (sessionIds: string[], last = notify): Promise<unknown[]> => {
    for (const each of [notify, last]) {
      sessionIds.forEach((id, n) => each.next.set(id, sessionIds[(n + 1) % sessionIds.length]));
    }
    const runs = sessionIds.map((sessionId, n) =>
      (n === 0 ? last : notify).app.turns.execute('desk', 'notify', { sessionId }).catch((error: unknown) => error),
    );
    const started = (): number => [...new Set([notify, last])].reduce((sum, each) => sum + each.begun.count, 0);
    await eventually(() => started() === sessionIds.length);
    for (const each of [notify, last]) each.everyone.open();
    return Promise.all(runs);
  };
  return { ...notify, run };
}

/** At least one fails because of the cycle; what waits for it may fail with it. */
async function expectCycle(results: unknown[], sessionIds: readonly string[]): Promise<void> {
  const codes = results.flatMap((result) => (result instanceof TurnFailedError ? [result.failure?.code] : []));
  expect(codes).toContain('TURN_REENTRY');
  const [failed] = results.filter(
    (result) => result instanceof TurnFailedError && result.failure?.code === 'TURN_REENTRY',
  );
  expect((failed as TurnFailedError).failure).toMatchObject({ name: TurnReentryError.name });
  expect(sessionIds).toContain((failed as TurnFailedError).failure?.details?.sessionId);
}

async function startDesk(
  adapter: SessionsAdapter,
  work: (turns: () => TurnService, turn: TurnContext) => Promise<void>,
): Promise<{ app: Application }> {
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn) => {
        await work(() => app.turns, turn);
        return reply(turn.input.text);
      },
    },
  });
  const app: Application = await startApplication({
    adapter,
    orchestrators: [desk],
    turns: { queue: new InProcessQueue(32), timeoutMs: 30_000 },
  });
  return { app };
}
