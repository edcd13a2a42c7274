import { setTimeout as delay } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { createSessionStore, LaneService, memoryAdapter } from 'nestjs-agent-sessions';
import { type TurnLedger } from 'nestjs-agent-sessions/adapter';
import { mintId } from '../../lib/common/ids.js';
import { LaneNotifier } from '../../lib/turn/lane-notifier.js';
import { LaneReconciler } from '../../lib/turn/lane-reconciler.service.js';
import { StoreWatch } from '../../lib/turn/store-watch.js';
import { TurnRecovery } from '../../lib/turn/turn-recovery.js';
import { type TurnDependencies } from '../../lib/turn/turn-dependencies.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { steadyClock } from '../support/steady-clock.js';

beforeAll(() => {
  Logger.overrideLogger(false);
});

it('TRN-21 a slow queue does not keep the reconciler from looking again', async () => {
  const { ledger, lanes } = await forgottenLanes(100);
  const notified: string[] = [];
  const notify = async (sessionId: string): Promise<void> => {
    await delay(50);
    notified.push(sessionId);
  };
  const reconciler = new LaneReconciler({
    ledger,
    notifier: new LaneNotifier({ notify }),
    recovery: new TurnRecovery(),
  } as TurnDependencies);

  const startedAt = steadyClock.now();
  expect(await reconciler.notifyDue()).toBe(100);

  expect(steadyClock.now() - startedAt).toBeLessThan(1000);
  expect(notified.sort()).toEqual(lanes.sort());
});

it('TRN-21 a process whose queue does not answer leaves the lanes to others, until the queue answers again', async () => {
  const { ledger, lanes, elapse } = await forgottenLanes(3);
  let answers = false;
  const answer = async (): Promise<void> => {
    if (!answers) throw new Error('away');
  };
  const deaf = new LaneReconciler({
    ledger,
    notifier: new LaneNotifier({ notify: answer, ping: answer }),
    recovery: new TurnRecovery(),
  } as TurnDependencies);
  const notified: string[] = [];
  const notifier = new LaneNotifier({ notify: async (sessionId) => void notified.push(sessionId) });
  const other = new LaneReconciler({ ledger, notifier, recovery: new TurnRecovery() } as TurnDependencies);

  // It cannot know before it has tried.
  await deaf.notifyDue();
  for (let look = 0; look < 20; look += 1) {
    elapse(1000);
    expect(await deaf.notifyDue()).toBe(0);
  }
  await other.notifyDue();
  expect(notified.sort()).toEqual(lanes.sort());

  answers = true;
  elapse(60_000);
  expect(await deaf.notifyDue()).toBe(3);
});

it('TRN-21 a queue that answers but takes no notifications is told of once, and notified again', async () => {
  const { ledger, elapse } = await forgottenLanes(3);
  const told: string[] = [];
  Logger.overrideLogger({ log: () => undefined, warn: () => undefined, error: (text: string) => void told.push(text) });
  let isFull = true;
  const notify = async (): Promise<void> => {
    if (isFull) throw new Error('out of memory');
  };
  const notifier = new LaneNotifier({ notify, ping: async () => undefined });
  const reconciler = new LaneReconciler({ ledger, notifier, recovery: new TurnRecovery() } as TurnDependencies);
  try {
    for (const outage of [1, 2]) {
      isFull = true;
      for (let look = 0; look < 3; look += 1) {
        expect(await reconciler.notifyDue()).toBe(3);
        elapse(60_000);
      }
      expect(told).toHaveLength(outage);
      isFull = false;
      await reconciler.notifyDue();
      elapse(60_000);
    }
  } finally {
    Logger.overrideLogger(false);
  }
});

it('TRN-11 FIX-16 the reconciler notifies every lane that is due at the start, however many, and none as overdue', async () => {
  const { ledger, lanes, elapse } = await forgottenLanes(1200);
  const notified: string[] = [];
  const overdue: string[] = [];
  const notify = async (sessionId: string, _: number, isOverdue: boolean): Promise<void> => {
    (isOverdue ? overdue : notified).push(sessionId);
  };
  const notifier = new LaneNotifier({ notify });
  const reconciler = new LaneReconciler({
    ledger,
    notifier,
    recovery: new TurnRecovery(),
    settings: { reconcileMs: 3_600_000 },
    storeWatch: new StoreWatch({ ping: async () => undefined }),
  } as TurnDependencies);

  await reconciler.start();
  await reconciler.stop();

  expect(overdue).toEqual([]);
  expect(notified.sort()).toEqual(lanes.sort());
  elapse(60_000);
  await reconciler.notifyDue();
  expect(overdue).toHaveLength(500);
});

it('TRN-11 BOT-24 two processes in step: what one of them gives back each time comes to the other', async () => {
  jest.useFakeTimers();
  try {
    const { ledger, lanes } = await forgottenLanes(1, Date.now);
    jest.advanceTimersByTime(2000);
    const settings = { reconcileMs: 1000 };
    const starting = (notify: (sessionId: string) => Promise<void>): LaneReconciler =>
      new LaneReconciler({
        ledger,
        notifier: new LaneNotifier({ notify }),
        recovery: new TurnRecovery(),
        settings,
        storeWatch: new StoreWatch({ ping: async () => undefined }),
      } as TurnDependencies);
    const givesBack = starting(async (sessionId) => {
      const claimed = await ledger.claim(sessionId, claimRequest(mintId()));
      await ledger.release(claimed!.hold, settings.reconcileMs);
    });
    const notified: string[] = [];
    const waits = starting(async (sessionId) => void notified.push(sessionId));
    await givesBack.start();
    await waits.start();
    await jest.advanceTimersByTimeAsync(100_000);
    expect(notified).toContain(lanes[0]);
    await givesBack.stop();
    await waits.stop();
  } finally {
    jest.useRealTimers();
  }
});

it('TRN-11 a lane that is resumed is notified at once when its head is due; all lanes are left to the reconciler', async () => {
  const { ledger, lanes } = await forgottenLanes(2);
  const notified: string[] = [];
  const notifier = new LaneNotifier({ notify: async (sessionId) => void notified.push(sessionId) });
  const service = new LaneService({ ledger, notifier, foreignSessions: false } as TurnDependencies);
  const [sessionId, other] = lanes;
  await service.pause({ sessionId });
  await service.pause({ sessionId: other });
  expect(notified).toEqual([]);

  await service.resume({ sessionId });
  expect(notified).toEqual([sessionId]);
  await service.drain({ sessionId: other });
  expect(notified).toEqual([sessionId, other]);
  await service.clear({ sessionId });
  await service.resume({ sessionId });
  await service.resume({ all: true });
  expect(notified).toEqual([sessionId, other]);
});

it('TRN-11 all lanes are counted and cleared, however many there are', async () => {
  const { ledger } = await forgottenLanes(1200);
  const service = new LaneService({ ledger } as TurnDependencies);
  expect(await service.counts()).toMatchObject({ lanes: 1200, queued: 1200 });
  expect(await service.clear({ all: true })).toBe(1200);
  expect(await service.counts()).toMatchObject({ lanes: 0, queued: 0, queuedSince: null });
});

/** Lanes whose notifications were lost a while ago. */
async function forgottenLanes(
  count: number,
  clock?: () => number,
): Promise<{
  ledger: TurnLedger;
  lanes: string[];
  elapse: (ms: number) => void;
}> {
  let now = Date.now();
  const adapter = memoryAdapter({ clock: clock ?? (() => now) });
  const sessions = createSessionStore({ adapter: adapter.sessions });
  const lanes: string[] = [];
  for (let n = 0; n < count; n += 1) {
    const { id: sessionId } = await sessions.create({ userId: 'ann' });
    await adapter.turns.accept(turnRequest(`turn-${n}`, { sessionId }));
    lanes.push(sessionId);
  }
  const elapse = (ms: number): void => void (now += ms);
  elapse(1001);
  return { ledger: adapter.turns, lanes, elapse };
}
