import { LONG_MS, SHORT_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** How long these tests wait for an offer: longer than the store's first few postponements. */
const PATIENCE_MS = 10_000;
const POLL_MS = 50;
/** Milliseconds for which `due` with `includeOffered` also returns lanes that were offered before. */
const OFFERED_MS = 5000;
/** A query that takes longer means that the machine was stalled. */
const LATE_MS = 5 * POLL_MS;

/** Tests of TurnLedger.due: the lanes that need a worker although their notification may have been lost. */
export function describeTurnsDue(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-01 offers a lane less and less often while no worker claims', async () => {
    await lane.queue('first');
    await lane.adapter.turns.release((await lane.take()).hold, 0);
    expect(await isDue()).toBe(true);
    const first = await timeUntilDue();
    const second = await timeUntilDue();
    expect(second.most).toBeGreaterThan(first.least);

    // A claim resets the postponement, even if its worker is lost.
    await lane.lapse();
    expect(await isDue()).toBe(true);
    expect((await timeUntilDue()).least).toBeLessThan(second.most);
  });

  it('TRN-15 offers the lane of a lost worker as soon as the lease has lapsed', async () => {
    await lane.queue('first');
    const { hold } = await lane.take({ leaseMs: LONG_MS });
    expect(await isDue()).toBe(false);
    await lane.adapter.turns.renew(hold, SHORT_MS);

    await lane.elapse(SHORT_MS);

    expect(await isDue()).toBe(true);
    expect(await isDue()).toBe(false);
  });

  it('TRN-08 offers a lane when its retry is due', async () => {
    const { hold } = await lane.run('first');
    const later = await TestLane.open(context);
    const error = { name: 'Error', message: 'no' };
    await lane.adapter.turns.retry(hold, { error, delayMs: SHORT_MS });
    await later.adapter.turns.retry((await later.run('first')).hold, { error, delayMs: LONG_MS });

    await lane.elapse(SHORT_MS);

    expect(await whichAreDue(lane, later)).toEqual([lane.sessionId]);
  });

  it('TRN-13 offers a lane when its wait lapses, and never when it has no time-out', async () => {
    const { hold } = await lane.run('first');
    await lane.adapter.turns.wait(hold, { signal: 'a', step: lane.step('a', null), timeoutMs: SHORT_MS });
    const patient = await TestLane.open(context);
    await patient.adapter.turns.wait((await patient.run('first')).hold, { signal: 'a', step: lane.step('a', null) });

    await lane.elapse(SHORT_MS);

    expect(await whichAreDue(lane, patient)).toEqual([lane.sessionId]);
  });

  it('TRN-14 offers a released lane after the requested delay', async () => {
    await lane.queue('first');
    await lane.adapter.turns.release((await lane.take()).hold, LONG_MS);
    expect(await isDue()).toBe(false);
    await lane.adapter.turns.release((await lane.take()).hold, SHORT_MS);
    await lane.elapse(SHORT_MS);
    expect(await isDue()).toBe(true);

    await lane.adapter.turns.release((await lane.take()).hold, 0);
    expect(await isDue()).toBe(true);
  });

  it('TRN-01 offers a lane after a lost notification, and no lane without work', async () => {
    await lane.run('first').then(({ hold }) => lane.settle(hold));
    const cancelled = await TestLane.open(context);
    await cancelled.adapter.turns.cancel((await cancelled.queue('first')).id, 'cancel');
    const expired = await TestLane.open(context);
    await expired.queue('first');
    await context.sessions.expire(expired.sessionId);
    const deleted = await TestLane.open(context);
    await deleted.queue('first');
    await context.sessions.delete(deleted.sessionId);
    const worked = await TestLane.open(context);
    await worked.queue('first');
    const withWork = worked.sessionId;

    const offered = new Set<string>();
    await within(PATIENCE_MS, async () => {
      for (const sessionId of await context.adapter.turns.due(10_000)) offered.add(sessionId);
      return offered.has(withWork);
    });

    for (const { sessionId } of [lane, cancelled, expired, deleted]) expect(offered.has(sessionId)).toBe(false);
  });

  it('TRN-01 offers as many lanes as requested, and the others the next time', async () => {
    const lanes = await Promise.all(Array.from({ length: 3 }, () => TestLane.open(context)));
    for (const each of lanes) {
      await each.queue('first');
      await each.adapter.turns.release((await each.take()).hold, 0);
    }

    const offered: string[] = [];
    for (let batch = await due(2); batch.length > 0; batch = await due(2)) {
      expect(batch.length).toBeLessThanOrEqual(2);
      offered.push(...batch);
    }

    expect(offered).toEqual(expect.arrayContaining(lanes.map(({ sessionId }) => sessionId)));
    expect(new Set(offered).size).toBe(offered.length);
  });

  it('FIX-16 offers postponed lanes, the longest waiting first', async () => {
    const lanes: TestLane[] = [];
    for (let n = 0; n < 3; n += 1) {
      const next = await TestLane.open(context);
      await next.queue('first');
      await next.adapter.turns.release((await next.take()).hold, SHORT_MS);
      await next.elapse(SHORT_MS);
      await within(PATIENCE_MS, async () => (await whichAreDue(next)).length === 1);
      lanes.unshift(next);
    }
    // The lane that waits longest has the longest postponement.
    const [, , longest] = lanes;
    await within(PATIENCE_MS, async () => (await whichAreDue(longest)).length === 1);
    const running = await TestLane.open(context);
    await running.run('first');

    expect(await offeredFirst(...lanes, running)).toEqual(lanes.reverse().map(({ sessionId }) => sessionId));
  });

  it('FIX-16 offers a lane that was released without a delay before postponed lanes', async () => {
    const waiting = await TestLane.open(context);
    await waiting.queue('first');
    await within(PATIENCE_MS, async () => (await whichAreDue(waiting)).length === 1);
    await lane.adapter.turns.release((await lane.run('first')).hold, 0);
    expect(await offeredFirst(lane, waiting)).toEqual([lane.sessionId, waiting.sessionId]);
  });

  it('FIX-16 withdraws the offers of a lane whose worker renews its lapsed lease', async () => {
    const { turns } = lane.adapter;
    const { hold } = await lane.run('first', { leaseMs: SHORT_MS });
    await lane.elapse(SHORT_MS);
    expect(await isDue()).toBe(true);
    const other = await TestLane.open(context);
    await other.run('first', { leaseMs: SHORT_MS });
    await other.elapse(SHORT_MS);

    // With the offer, the lane would be returned although its lease lasts.
    await turns.renew(hold, OFFERED_MS);
    expect(await offeredFirst(lane)).toEqual([]);

    // The next loss counts from the end of the new lease.
    await turns.renew(hold, SHORT_MS);
    await lane.elapse(SHORT_MS);
    expect(await offeredFirst(lane, other)).toEqual([other.sessionId, lane.sessionId]);
  });

  function due(limit: number): Promise<string[]> {
    return context.adapter.turns.due(limit);
  }

  /** @returns the ids of the sessions that the first query of a process returns, in order */
  async function offeredFirst(...lanes: TestLane[]): Promise<string[]> {
    const offered = await context.adapter.turns.due(10_000, true);
    return offered.filter((id) => lanes.some(({ sessionId }) => sessionId === id));
  }

  async function isDue(): Promise<boolean> {
    return (await whichAreDue(lane)).length === 1;
  }

  /** @returns the ids of the sessions that are offered now */
  async function whichAreDue(...lanes: TestLane[]): Promise<string[]> {
    const offered = new Set(await due(10_000));
    return lanes.map(({ sessionId }) => sessionId).filter((sessionId) => offered.has(sessionId));
  }

  function timeUntilDue(): Promise<Passed> {
    return within(PATIENCE_MS, isDue);
  }

  /** Lets time pass until the condition holds. */
  async function within(limitMs: number, condition: () => Promise<boolean>): Promise<Passed> {
    let passed: Passed = { least: 0, most: 0 };
    while (passed.least <= limitMs) {
      const lookedAt = performance.now();
      if (await condition()) return passed;
      await lane.elapse(POLL_MS);
      const tookMs = performance.now() - lookedAt;
      const mostMs = tookMs > LATE_MS ? tookMs : POLL_MS;
      passed = { least: passed.most + POLL_MS, most: passed.most + mostMs };
    }
    throw new Error(`The lane was not offered within ${limitMs} ms.`);
  }
}

/** The passed time in milliseconds, as a range: a stalled machine makes the exact time unknown. */
interface Passed {
  readonly least: number;
  readonly most: number;
}
