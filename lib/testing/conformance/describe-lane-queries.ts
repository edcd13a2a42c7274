import { type Lane } from '../../ledger/lane.js';
import { create, lookalikeIds, TICK } from './session-fixtures.js';
import { DESK, LONG_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const ERROR = { name: 'Error', message: 'no' };

/** Tests of TurnLedger.lane and lanes (TRN-11). */
export function describeLaneQueries(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-11 shows a lane that is idle or unknown as empty', async () => {
    const { turns } = context.adapter;
    const unknown = context.id();
    for (const sessionId of [lane.sessionId, unknown]) {
      expect(await turns.lane(sessionId)).toEqual({ sessionId, mode: 'open', queued: 0 });
    }
    await lane.settle((await lane.run('first')).hold);
    await lane.control('draining');
    expect(await view()).toEqual({ sessionId: lane.sessionId, mode: 'draining', queued: 0 });
  });

  it('TRN-11 shows how many turns are queued, and since when', async () => {
    const first = await lane.queue('first');
    await lane.elapse(TICK);
    const second = await lane.queue('second');
    await lane.queue('third');
    expect(await view()).toEqual({
      sessionId: lane.sessionId,
      mode: 'open',
      queued: 3,
      queuedSince: first.acceptedAt,
      head: { id: first.id, orchestrator: DESK, status: 'queued', failures: 0, lost: 0, acceptedAt: first.acceptedAt },
    });

    const { hold } = await lane.take();
    expect(await view()).toMatchObject({ queued: 2, queuedSince: second.acceptedAt });
    await lane.adapter.turns.cancel(second.id, 'cancel');
    expect(await view()).toMatchObject({ queued: 1 });
    await lane.adapter.turns.clear(lane.sessionId);
    const alone = await view();
    expect(alone).toMatchObject({ queued: 0, head: { id: hold.turnId } });
    expect(alone).not.toHaveProperty('queuedSince');
  });

  it('TRN-11 shows the worker and lease of the head, even after the lease has lapsed', async () => {
    await lane.queue('first');
    const { turn } = await lane.take({ holder: 'host-7-abc/42', leaseMs: LONG_MS });
    const { acceptedAt, startedAt = '' } = turn;
    const running = { id: turn.id, orchestrator: DESK, status: 'running', failures: 0, lost: 0, acceptedAt, startedAt };
    const head = (await view()).head;
    expect(head).toEqual({ ...running, worker: 'host-7-abc', leaseUntil: expect.any(String) as string });
    expect(leaseMs(head)).toBeGreaterThanOrEqual(LONG_MS);

    const other = await TestLane.open(context);
    await other.queue('first');
    await other.lapse();
    const lapsed = (await view(other)).head;
    expect(lapsed).toMatchObject({ status: 'running', lost: 0 });
    expect((lapsed?.leaseUntil ?? '') < (await storeTime())).toBe(true);
  });

  it('TRN-11 shows which signal the head waits for, and a request to stop it', async () => {
    const { hold } = await lane.run('first');
    await lane.adapter.turns.cancel(hold.turnId, 'interrupt');
    expect((await view()).head).toMatchObject({ status: 'running', cancelMode: 'interrupt' });

    const failed = await TestLane.open(context);
    const again = await failed.run('first');
    const turn = await failed.adapter.turns.retry(again.hold, { error: ERROR, delayMs: LONG_MS });
    const retried = await view(failed);
    expect(retried).toMatchObject({ queued: 1, queuedSince: turn.acceptedAt });
    expect(retried.head).toMatchObject({ status: 'queued', failures: 1, dueAt: turn.dueAt, startedAt: turn.startedAt });
    for (const gone of ['worker', 'leaseUntil']) expect(retried.head).not.toHaveProperty(gone);

    const waiting = await TestLane.open(context);
    const suspended = await waiting.run('first');
    const wait = { signal: 'go', step: lane.step('go', null), timeoutMs: LONG_MS };
    const { waitingFor } = (await waiting.adapter.turns.wait(suspended.hold, wait)).turn;
    expect(await view(waiting)).toMatchObject({ queued: 0, head: { status: 'waiting', waitingFor } });
    expect((await view(waiting)).head).not.toHaveProperty('worker');
  });

  it('TRN-11 lists a lane while it has open turns', async () => {
    const listed = async (): Promise<boolean> => {
      // No other id lies between this one and the same id without its last character.
      const { lanes } = await lane.adapter.turns.lanes({ after: lane.sessionId.slice(0, -1), limit: 1 });
      if (lanes[0]?.sessionId !== lane.sessionId) return false;
      expect(lanes[0]).toEqual(await view());
      return true;
    };
    const { turns } = lane.adapter;
    expect(await listed()).toBe(false);

    const { hold } = await lane.run('first');
    expect(await listed()).toBe(true);
    await lane.queue('second');
    await lane.settle(hold);
    expect(await listed()).toBe(true);
    await turns.cancel((await lane.list())[1].id, 'cancel');
    expect(await listed()).toBe(false);

    const waiting = await lane.run('third');
    await turns.wait(waiting.hold, { signal: 'go', step: lane.step('go', null) });
    expect(await listed()).toBe(true);
    await lane.queue('fourth', { whenBusy: 'interrupt' });
    expect(await listed()).toBe(true);
    await lane.queue('fifth', { whenBusy: 'latest' });
    await lane.control('paused');
    expect(await listed()).toBe(true);
    await turns.clear(lane.sessionId);
    expect(await listed()).toBe(false);

    await lane.control('open');
    await lane.queue('poison');
    await lane.lapse();
    expect(await listed()).toBe(true);
    expect(await lane.claim({ maxLost: 1 })).toBeNull();
    expect(await listed()).toBe(false);

    const last = await lane.run('last');
    await context.sessions.expire(lane.sessionId);
    expect(await listed()).toBe(true);
    await turns.release(last.hold, 0);
    expect(await listed()).toBe(false);
  });

  it.each(['expire', 'delete', 'erase'] as const)('TRN-11 lists no lane of a session after %s', async (end) => {
    await lane.queue('first');
    await lane.queue('second');
    await context.sessions[end](lane.sessionId);

    const { lanes } = await lane.adapter.turns.lanes({ after: lane.sessionId.slice(0, -1), limit: 1 });
    expect(lanes.map(({ sessionId }) => sessionId)).not.toContain(lane.sessionId);
    expect(await view()).toEqual({ sessionId: lane.sessionId, mode: 'open', queued: 0 });
  });

  it('TRN-11 pages in the order of the ids, by code unit', async () => {
    const prefix = context.id();
    const ids = lookalikeIds(prefix);
    for (const id of [...ids].reverse()) {
      await create(context, { id });
      await lane.queue('first', { sessionId: id });
      await lane.queue('second', { sessionId: id });
    }

    for (const limit of [1, 7, ids.length + 1]) {
      const seen: string[] = [];
      let after = prefix.slice(0, -1);
      while (after.startsWith(prefix.slice(0, -1))) {
        const { lanes } = await context.adapter.turns.lanes({ after, limit });
        expect(lanes.length).toBeLessThanOrEqual(limit);
        seen.push(...lanes.map(({ sessionId }) => sessionId));
        after = seen.length < ids.length ? seen[seen.length - 1] : '';
      }
      expect(seen.slice(0, ids.length)).toEqual([...ids].sort());
    }
    const { lanes } = await context.adapter.turns.lanes({});
    expect(lanes.length).toBeLessThanOrEqual(50);
    expect(lanes.length).toBeGreaterThanOrEqual(Math.min(ids.length, 50));
  });

  function view(of = lane): Promise<Lane> {
    return of.adapter.turns.lane(of.sessionId);
  }

  /** Matches a time between the start of the attempt and the end of its lease. */
  function leaseMs(head: Lane['head']): number {
    return Date.parse(head?.leaseUntil ?? '') - Date.parse(head?.startedAt ?? '');
  }

  async function storeTime(): Promise<string> {
    await lane.elapse(TICK);
    return (await create(context)).createdAt;
  }
}
