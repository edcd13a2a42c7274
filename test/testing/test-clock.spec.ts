import 'reflect-metadata';
import { setTimeout as delay } from 'node:timers/promises';
import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import {
  defineOrchestrator,
  InvalidInputError,
  memoryAdapter,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  type TurnContext,
  TurnFailedError,
  TurnService,
} from 'nestjs-agent-sessions';
import { type AcceptTurn } from 'nestjs-agent-sessions/adapter';
import { type Conversation, TestClock, TurnNeedsTimeError } from 'nestjs-agent-sessions/testing';
import { eventually } from '../support/eventually.js';
import { gate, rejection } from '../support/running-application.js';
import { steadyClock } from '../support/steady-clock.js';
import { create } from './testing-application.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe('TestClock', () => {
  it('NST-26 starts at the real time and does not move', async () => {
    const before = Date.now();
    const clock = new TestClock();
    const { now } = clock;
    const begin = now();

    expect(begin).toBeGreaterThanOrEqual(before);
    expect(begin).toBeLessThanOrEqual(Date.now());
    await delay(5);
    expect(now()).toBe(begin);
  });

  it.each([
    ['30s', 30_000],
    ['2h', 2 * HOUR],
    ['1.5 days', 36 * HOUR],
    ['250', 250],
    [250, 250],
    [0, 0],
  ])('NST-26 %j is %d ms', async (by, ms) => {
    const clock = new TestClock();
    const begin = clock.now();

    await clock.advance(by);
    await clock.advance(by);

    expect(clock.now() - begin).toBe(2 * ms);
  });

  it.each(['', 'soon', '2 fortnights', '-1h', 'x'.repeat(200), -1, NaN, Infinity, 1e16, null, undefined, {}])(
    'NST-26 rejects %p and does not move',
    async (by) => {
      const clock = new TestClock();
      const begin = clock.now();

      const error = await rejection(clock.advance(by as string), InvalidInputError);

      expect(error.message).toMatch(/^by must /);
      expect(clock.now()).toBe(begin);
      await clock.advance(1);
      expect(clock.now()).toBe(begin + 1);
    },
  );

  it('NST-26 runs concurrent moves one after the other', async () => {
    const clock = new TestClock();
    const begin = clock.now();

    await Promise.all([clock.advance('1h'), clock.advance('1h')]);

    expect(clock.now()).toBe(begin + 2 * HOUR);
  });
});

describe('SessionsTestingModule.clock', () => {
  it('NST-26 runs a retry with backoff in one advance', async () => {
    const app = await create({ orchestrators: [flaky(1)], turns: backoff(30_000) });
    const chat = await app.conversation({ userId: 'ann' });

    const said = chat.say('hi');
    await app.clock.advance('29999ms');
    expect(await chat.turns()).toMatchObject([{ status: 'queued', failures: 1, error: { message: 'down' } }]);
    await app.clock.advance(1);

    expect(await chat.turns()).toMatchObject([{ status: 'awaiting-input', failures: 1 }]);
    expect(await said).toMatchObject({ reply: 'up', turnIndex: 0 });
  });

  it('NST-26 runs each retry at its own time', async () => {
    const times: number[] = [];
    const app = await create({
      orchestrators: [flaky(Infinity, () => times.push(app.clock.now()))],
      turns: backoff(30_000),
    });
    const chat = await app.conversation({ userId: 'ann' });
    const begin = app.clock.now();

    const failed = rejection(chat.say('hi'), TurnFailedError);
    await app.clock.advance('1d');

    expect(times.map((time) => time - begin)).toEqual([0, 30_000, 60_000]);
    expect(await chat.turns()).toMatchObject([
      { status: 'failed', failures: 3, settledAt: new Date(begin + 60_000).toISOString() },
    ]);
    expect(app.clock.now()).toBe(begin + 24 * HOUR);
    expect(await failed).toMatchObject({ failure: { message: 'down' } });
  });

  it('NST-26 runs the retries of several sessions in the order of their times', async () => {
    const order: string[] = [];
    const app = await create({
      orchestrators: [flaky(2, ({ input }) => order.push(input.text))],
      turns: backoff(10_000),
    });
    const say = async (text: string): Promise<void> => {
      const { sessionId } = await app.conversation({ userId: text });
      await app.get(TurnService).submit('flaky', text, { sessionId });
      await app.clock.advance('4s');
    };
    await say('ann');
    await say('bob');

    await app.clock.advance('1m');

    expect(order).toEqual(['ann', 'bob', 'ann', 'bob', 'ann', 'bob']);
  });

  it('NST-26 waits for slow handlers, and for turns that wait for a free worker', async () => {
    const app = await create({
      orchestrators: [flaky(1, () => delay(20))],
      turns: { concurrency: 1, ...backoff(30_000) },
    });
    const chats = await Promise.all(['ann', 'bob', 'eve'].map((userId) => app.conversation({ userId })));

    const said = Promise.all(chats.map((chat) => chat.say('hi')));
    await app.clock.advance('30s');

    for (const chat of chats) expect(await chat.turns()).toMatchObject([{ status: 'awaiting-input', failures: 1 }]);
    expect(await said).toHaveLength(3);
  });

  it('NST-26 waits until earlier submissions are stored before a move, even on a slow store', async () => {
    const clock = new TestClock();
    const store = memoryAdapter({ clock: clock.now });
    const slow = Object.assign(Object.create(store.turns) as typeof store.turns, {
      accept: async (turn: AcceptTurn) => delay(50).then(() => store.turns.accept(turn)),
    });
    const app = await create({ clock, adapter: { ...store, turns: slow }, orchestrators: [flaky(0)] });
    const chat = await app.conversation({ userId: 'ann' });
    const begin = clock.now();

    const said = chat.say('hi');
    await clock.advance('1h');

    await said;
    expect(await chat.turns()).toMatchObject([{ acceptedAt: new Date(begin).toISOString() }]);
  });

  it('NST-26 retries a failed turn immediately without a backoff option', async () => {
    const app = await create({ orchestrators: [flaky(2)], turns: { retry: { attempts: 3 } } });
    const chat = await app.conversation({ userId: 'ann' });

    expect(await chat.say('hi')).toMatchObject({ reply: 'up' });
  });

  it('NST-26 takes over the turn of a lost worker when the clock passes its lease', async () => {
    const app = await create({ orchestrators: [flaky(0)], turns: { leaseMs: 20_000 } });
    const chat = await app.conversation({ userId: 'ann' });
    await claimForALostWorker(app.get<SessionsAdapter>(SESSIONS_ADAPTER), chat, 20_000);

    await app.clock.advance('19999ms');
    expect(await chat.turns()).toMatchObject([{ status: 'running', failures: 0 }]);
    await app.clock.advance(1);

    expect(await chat.turns()).toMatchObject([{ status: 'awaiting-input', lost: 1, reply: { text: 'up' } }]);
  });

  it('NST-26 ends a wait when the clock passes its time-out', async () => {
    const app = await create({ orchestrators: [flaky(0)] });
    const chat = await app.conversation({ userId: 'ann' });
    const { turns: ledger } = app.get<SessionsAdapter>(SESSIONS_ADAPTER);
    const hold = await claimForALostWorker(app.get<SessionsAdapter>(SESSIONS_ADAPTER), chat, 20_000);
    const step = { kind: 'wait' as const, iteration: 0, intent: 'answer', parent: '', name: 'approval', key: 0 };
    await ledger.wait(hold, { signal: 'approval', step, timeoutMs: 24 * HOUR });

    await app.clock.advance('23h');
    expect(await chat.turns()).toMatchObject([{ status: 'waiting' }]);
    await app.clock.advance('1h');

    expect(await chat.turns()).toMatchObject([{ status: 'awaiting-input', failures: 0 }]);
  });

  it('NST-26 suspends, expires and deletes sessions by the clock on a sweep', async () => {
    const app = await create({
      orchestrators: [flaky(0)],
      ttlSeconds: 3600,
      sweep: { expireAfterSeconds: 7200, purgeAfterSeconds: 86_400 },
    });
    const chat = await app.conversation({ userId: 'ann' });
    await chat.say('hi');
    const after = async (by: string): Promise<string | undefined> => {
      await app.clock.advance(by);
      const unswept = (await chat.session())?.state;
      await app.sweep();
      return `${unswept} ${(await chat.session())?.state}`;
    };

    expect(await after('1h')).toBe('active active');
    expect(await after('1ms')).toBe('active suspended');
    expect(await after('1h')).toBe('suspended expired');
    expect(await after('1d')).toBe('expired expired');
    expect(await after('1ms')).toBe('expired undefined');
    expect(await chat.session()).toBeNull();
    expect([await chat.messages(), await chat.turns()]).toEqual([[], []]);
  });

  it('NST-26 suspends sessions on a manual sweep with sweep: false', async () => {
    const app = await create({ orchestrators: [flaky(0)], sweep: false });
    const chat = await app.conversation({ userId: 'ann' });
    await chat.say('hi');
    await app.clock.advance('2h');

    await app.sweep();

    expect(await chat.session()).toMatchObject({ state: 'suspended' });
  });

  it('NST-26 rejects a failed sweep', async () => {
    const clock = new TestClock();
    const store = memoryAdapter({ clock: clock.now });
    const suspendStale = () => Promise.reject(new Error('The store is down.'));
    const sessions = Object.assign(Object.create(store.sessions) as typeof store.sessions, { suspendStale });
    const app = await create({ clock, adapter: { ...store, sessions }, orchestrators: [flaky(0)] });

    await expect(app.sweep()).rejects.toThrow('The store is down.');
  });

  it('NST-26 runs no sweep by cron by default', async () => {
    const imports = [ScheduleModule.forRoot()];
    const cron = '*/10 * * * *';
    const [without, withCron] = [
      await create({ imports, sweep: { cron } }),
      await create({ imports, sweep: { cron, enabled: true } }),
    ];

    const jobs = [without, withCron].map((app) => [...app.get(SchedulerRegistry).getCronJobs().keys()]);

    expect(jobs).toEqual([[], ['agent-sessions:sweep']]);
  });

  it('NST-26 sweeps by cron if it is enabled', async () => {
    const app = await create({ orchestrators: [flaky(0)], sweep: { enabled: true, cron: '* * * * * *' } });
    const chat = await app.conversation({ userId: 'ann' });
    await chat.say('hi');
    await app.clock.advance('2h');

    await eventually(async () => (await chat.session())?.state === 'suspended');
  });

  it('NST-26 rejects with TurnNeedsTimeError when a turn waits for the clock', async () => {
    const app = await create({ orchestrators: [flaky(1)], turns: backoff(30_000) });
    const chat = await app.conversation({ userId: 'ann' });

    const [first, second] = await Promise.all([
      rejection(chat.say('hi'), TurnNeedsTimeError),
      rejection(chat.say('there'), TurnNeedsTimeError),
    ]);

    const [head, behind] = await chat.turns();
    expect(first).toMatchObject({ sessionId: chat.sessionId, turnId: head?.id, code: 'TURN_NEEDS_TIME' });
    expect(first.message).toBe(
      `Turn ${head?.id} has not settled: it failed (Error: down) and resumes in 30000 ms on the test's clock. ` +
        'Move the clock: await app.clock.advance(30000).',
    );
    expect(second.message).toContain(`Turn ${behind?.id} has not settled: turn ${head?.id} before it failed`);
    await app.clock.advance('1m');
    expect(await chat.turns()).toMatchObject([{ status: 'awaiting-input' }, { status: 'awaiting-input' }]);
  });

  it('NST-26 does not treat a slow handler as waiting, and moves the clock without it', async () => {
    const { open, pass } = gate();
    const slow = defineOrchestrator({ name: 'slow', intents: { wait: async () => pass().then(() => 'done') } });
    const app = await create({ orchestrators: [slow] });
    const chat = await app.conversation({ userId: 'ann' });
    const begin = app.clock.now();

    const said = chat.say('hi');
    await app.clock.advance('1h');
    expect(await chat.turns()).toMatchObject([{ status: 'running' }]);
    // The first move waited for it; further small moves must not wait again.
    for (let i = 0; i < 20; i += 1) await app.clock.advance('1m');
    open();

    expect(await said).toMatchObject({ reply: 'done' });
    expect(app.clock.now()).toBe(begin + 80 * MINUTE);
  });

  it('NST-26 lets a handler move the clock, like a slow handler', async () => {
    const slow = defineOrchestrator({
      name: 'slow',
      intents: {
        wait: async () => {
          await app.clock.advance('1h');
          return 'an hour later';
        },
      },
    });
    const app = await create({ orchestrators: [slow] });
    const chat = await app.conversation({ userId: 'ann' });
    const begin = steadyClock.now();

    expect(await chat.say('hi')).toMatchObject({ reply: 'an hour later' });
    expect(steadyClock.now() - begin).toBeLessThan(1500);
  });

  it('NST-26 ignores a closed application', async () => {
    const clock = new TestClock();
    const adapter = memoryAdapter({ clock: clock.now });
    const closed = await create({ clock, adapter, orchestrators: [flaky(0)] });
    const open = await create({ clock, adapter, orchestrators: [flaky(0)] });
    const chat = await open.conversation({ userId: 'ann' });
    await claimForALostWorker(adapter, chat, 20_000);
    await closed.close();

    await clock.advance('20s');

    expect(await chat.turns()).toMatchObject([{ status: 'awaiting-input' }]);
  });

  it('NST-26 finishes the work of all applications on one clock and store in a move', async () => {
    const clock = new TestClock();
    const adapter = memoryAdapter({ clock: clock.now });
    const apps = [1, 2].map(() => create({ clock, adapter, orchestrators: [flaky(1)], turns: backoff(30_000) }));
    const chats = await Promise.all(apps.map(async (app) => (await app).conversation({ userId: 'ann' })));

    const said = Promise.all(chats.map((chat) => chat.say('hi')));
    await clock.advance('30s');

    for (const chat of chats) expect(await chat.turns()).toMatchObject([{ status: 'awaiting-input' }]);
    expect(await said).toMatchObject([{ reply: 'up' }, { reply: 'up' }]);
  });
});

/** Returns an orchestrator that fails in its first attempts. */
function flaky(failures: number, seen: (turn: TurnContext) => unknown = () => {}) {
  return defineOrchestrator({
    name: 'flaky',
    intents: {
      answer: async (turn: TurnContext) => {
        await seen(turn);
        if (turn.attempt <= failures) throw new Error('down');
        return 'up';
      },
    },
  });
}

function backoff(delayMs: number) {
  return { retry: { attempts: 3, backoff: { type: 'fixed', delayMs } } } as const;
}

/** Starts a turn of another worker that never ends. */
async function claimForALostWorker({ turns }: SessionsAdapter, { sessionId }: Conversation, leaseMs: number) {
  const accepted = { id: `${sessionId}-turn`, sessionId, orchestrator: 'flaky', version: '1', attributes: {} };
  await turns.accept({ ...accepted, request: { input: { text: 'hi' } }, whenBusy: 'enqueue', maxQueued: 10 });
  const claimed = await turns.claim(sessionId, { holder: 'lost', leaseMs, maxLost: 3, windows: {} });
  if (!claimed) throw new Error('The turn could not be claimed.');
  return claimed.hold;
}
