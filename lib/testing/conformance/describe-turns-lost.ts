import { type ClaimNotice, type ClaimRequest, type TurnHold } from '../../ledger/turn.store.js';
import { type ConformanceContext } from './target.js';
import { LONG_MS, SHORT_MS, TestLane } from './test-lane.js';

const ERROR = { name: 'TypeError', message: 'no answer', code: 'E_MODEL' };

/** Tests of attempts whose leases lapse: how they are counted, and which claims receive their turns (FIX-06). */
export function describeTurnsLost(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  /** Claims the turn and lets its lease lapse, the given number of times. */
  async function lose(times: number): Promise<void> {
    for (let lost = 0; lost < times; lost += 1) {
      await lane.take({ leaseMs: SHORT_MS, suspects: true });
      await lane.elapse(SHORT_MS);
    }
  }

  /** @returns the result of the claim, and the losses that it found */
  async function noticing(changes: Partial<ClaimRequest>) {
    const notices: ClaimNotice[] = [];
    const claimed = await lane.claim({ ...changes, onNotice: (notice) => void notices.push(notice) });
    return { claimed, notices };
  }

  it('FIX-06 TRN-08 counts a lost attempt separately from failures, and runs the turn again immediately', async () => {
    await lane.queue('first');
    const { turn } = await lane.lapse();

    const again = await lane.take();

    expect(again.turn).toEqual({ ...turn, lost: 1 });
    expect(await lane.get(turn.id)).toEqual(again.turn);
  });

  it('FIX-06 reports the lost attempt and its holder to the claim that finds it', async () => {
    await lane.queue('first');
    await lane.take({ leaseMs: SHORT_MS, holder: 'worker-1/7' });
    await lane.elapse(SHORT_MS);

    const { claimed, notices } = await noticing({});

    expect(notices).toEqual([{ type: 'lost', turn: claimed?.turn, lostSinceStep: 1, holder: 'worker-1/7' }]);
  });

  it('FIX-06 reports no loss for an ordinary turn', async () => {
    await lane.queue('first');

    expect(await noticing({ suspects: true })).toMatchObject({ claimed: { turn: { lost: 0 } }, notices: [] });
  });

  it('FIX-06 queues a turn that was lost twice, due after a pause', async () => {
    const { id, startedAt } = (await lane.run('first', { leaseMs: SHORT_MS })).turn;
    await lane.elapse(SHORT_MS);
    await lose(1);

    const { claimed, notices } = await noticing({ suspects: true, lossPauseMs: LONG_MS });

    expect(claimed).toBeNull();
    const turn = await lane.get(id);
    expect(notices).toEqual([{ type: 'lost', turn, lostSinceStep: 2, holder: expect.any(String) as string }]);
    expect(turn).toMatchObject({ status: 'queued', failures: 0, lost: 2, startedAt });
    expect(Date.parse(turn?.dueAt ?? '') - Date.parse(startedAt ?? '')).toBeGreaterThanOrEqual(LONG_MS);
    expect(await lane.claim({ suspects: true })).toBeNull();
    expect((await lane.adapter.turns.lane(lane.sessionId)).head).toMatchObject({ id, status: 'queued', lost: 2 });
  });

  it('FIX-06 doubles the pause with each further loss, up to the maximum', async () => {
    const { id } = await lane.queue('first');
    await lose(3);
    const pauseMs = 8 * LONG_MS;

    await lane.claim({ lossPauseMs: pauseMs, maxLossPauseMs: pauseMs + LONG_MS });

    const { dueAt, lost, acceptedAt } = (await lane.get(id))!;
    const pausedMs = Date.parse(dueAt ?? '') - Date.parse(acceptedAt);
    expect(lost).toBe(3);
    expect(pausedMs).toBeGreaterThanOrEqual(pauseMs + LONG_MS);
    expect(pausedMs).toBeLessThan(2 * pauseMs);
  });

  it('FIX-06 grants a turn that was lost twice only to a claim that accepts suspects', async () => {
    const { id } = await lane.queue('first');
    await lane.queue('second');
    await lose(2);

    const refused = await noticing({ maxLost: 3 });
    expect(refused.claimed).toBeNull();
    expect(refused.notices.map(({ type }) => type)).toEqual(['lost', 'suspect']);
    expect(await noticing({})).toEqual({ claimed: null, notices: [{ type: 'suspect' }] });
    expect(await lane.statuses()).toEqual(['first: queued', 'second: queued']);

    const { turn } = await lane.take({ suspects: true, maxLost: 3 });
    expect(turn).toMatchObject({ id, status: 'running', lost: 2 });
  });

  it('FIX-06 keeps a turn suspect after a release or a failure of its handler', async () => {
    const { id } = await lane.queue('first');
    await lose(2);
    const { turns } = lane.adapter;

    await turns.release((await lane.take({ suspects: true })).hold, 0);
    expect(await lane.claim()).toBeNull();
    await turns.retry((await lane.take({ suspects: true })).hold, { error: ERROR, delayMs: 0 });
    expect(await lane.claim()).toBeNull();

    expect((await lane.take({ suspects: true })).turn).toMatchObject({ id, lost: 2, failures: 1 });
  });

  it('FIX-06 offers the lane of a suspect again after a claim that accepts no suspects', async () => {
    await lane.queue('first');
    await lose(2);
    await lane.claim();

    await lane.elapse(5000);
    expect(await lane.adapter.turns.due(100_000)).toContain(lane.sessionId);
  });

  it('FIX-06 hands over no suspect when a settle is sent again', async () => {
    const first = await lane.run('first');
    await lane.queue('second');
    await lane.settle(first.hold);
    await lose(2);
    await lane.claim();

    const again = await lane.settle(first.hold, {}, lane.claimRequest());

    expect(again).toMatchObject({ next: null, notify: true });
  });

  it('FIX-06 BOT-34 fails a turn at the maximum number of lost attempts', async () => {
    const { id } = await lane.queue('poison');
    await lose(3);

    const { claimed, notices } = await noticing({ maxLost: 3, suspects: true });

    expect(claimed).toBeNull();
    const turn = await lane.get(id);
    expect(turn).toMatchObject({
      status: 'failed',
      failures: 0,
      lost: 3,
      error: { code: 'WORKER_LOST' },
      settledAt: expect.any(String) as string,
    });
    expect(notices).toEqual([{ type: 'lost', turn, lostSinceStep: 3, holder: expect.any(String) as string }]);
    expect(await lane.messages()).toEqual([]);
  });

  it('FIX-06 BOT-34 grants the turn behind a poison turn in the same claim', async () => {
    await lane.queue('poison');
    await lane.queue('second');
    await lane.lapse();

    const { claimed, notices } = await noticing({ maxLost: 1 });

    expect(claimed?.turn.request.input.text).toBe('second');
    expect(notices).toMatchObject([{ type: 'lost', turn: { status: 'failed', lost: 1 } }]);
    expect(await lane.statuses()).toEqual(['poison: failed', 'second: running']);
  });

  it('FIX-06 applies separate limits to failures and losses', async () => {
    const { id } = await lane.queue('first');
    await lane.adapter.turns.retry((await lane.take({ maxLost: 2 })).hold, { error: ERROR, delayMs: 0 });
    await lane.lapse();
    expect((await lane.take({ maxLost: 2, leaseMs: SHORT_MS })).turn).toMatchObject({
      failures: 1,
      lost: 1,
      error: ERROR,
    });
    await lane.elapse(SHORT_MS);

    expect(await lane.claim({ maxLost: 2 })).toBeNull();
    expect(await lane.get(id)).toMatchObject({
      status: 'failed',
      failures: 1,
      lost: 2,
      error: { code: 'WORKER_LOST' },
    });
  });

  describe('of a turn that progresses', () => {
    const MAX_LOST = 3;

    /** Loses an attempt that does the given work before its process dies. */
    async function loseAfter(work: (hold: TurnHold) => Promise<unknown>): Promise<void> {
      const { hold } = await lane.take({ suspects: true, maxLost: MAX_LOST });
      await work(hold);
      await lane.adapter.turns.renew(hold, SHORT_MS);
      await lane.elapse(SHORT_MS);
    }

    const nothing = (): Promise<void> => Promise.resolve();
    const step = (name: string) => (hold: TurnHold) => lane.adapter.turns.saveStep(hold, lane.step(name, 1));
    const wait = (hold: TurnHold, timeoutMs?: number) =>
      lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null), ...(timeoutMs ? { timeoutMs } : {}) });
    const signal = ({ turnId }: TurnHold) => lane.adapter.turns.signal(turnId, 'go', true);

    it.each([
      ['a step', step('new')],
      ['an iteration', (hold) => lane.adapter.turns.saveStep(hold, { ...lane.step('', 1), kind: 'iteration' })],
      ['the result of a wait whose signal was early', (hold) => signal(hold).then(() => wait(hold))],
      [
        'the result of a wait whose signal resumed it',
        async (hold) => {
          await wait(hold);
          await signal(hold);
          await lane.take({ suspects: true, leaseMs: SHORT_MS });
        },
        false,
      ],
      [
        'the timeout of a wait',
        async (hold) => {
          await wait(hold, SHORT_MS);
          await lane.elapse(SHORT_MS);
          await lane.take({ suspects: true, leaseMs: SHORT_MS });
        },
        false,
      ],
    ] as [what: string, work: (hold: TurnHold) => Promise<unknown>, holds?: boolean][])(
      'FIX-62 starts the count of losses without progress again after %s, and keeps the other one',
      async (_, work, holds = true) => {
        const { id } = await lane.queue('long');
        await loseAfter(step('known'));
        await loseAfter(nothing);
        if (holds) {
          await loseAfter(work);
        } else {
          await work((await lane.take({ suspects: true, maxLost: MAX_LOST })).hold);
          await lane.elapse(SHORT_MS);
        }

        const third = await noticing({ maxLost: MAX_LOST, suspects: true, leaseMs: SHORT_MS });
        expect(third.notices).toMatchObject([{ type: 'lost', lostSinceStep: 1, turn: { id, lost: 3 } }]);
        await lane.elapse(SHORT_MS);
        expect((await lane.take({ suspects: true, maxLost: MAX_LOST })).turn).toMatchObject({ lost: 4 });
      },
    );

    it('FIX-62 ignores a step that is stored already', async () => {
      const { id } = await lane.queue('poison');
      await loseAfter(step('same'));
      await loseAfter(step('same'));
      await loseAfter(step('same'));

      const { notices } = await noticing({ maxLost: MAX_LOST });

      expect(notices).toMatchObject([{ type: 'lost', lostSinceStep: 3, turn: { status: 'failed', lost: 3 } }]);
      expect(await lane.get(id)).toMatchObject({ status: 'failed', error: { code: 'WORKER_LOST' } });
    });

    it('FIX-62 fails a turn that progresses after ten times the maximum number of losses', async () => {
      const { id } = await lane.queue('endless');
      for (let n = 0; n < 20; n += 1) {
        const { hold } = await lane.take({ suspects: true, maxLost: 2 });
        await step(`step ${n}`)(hold);
        await lane.adapter.turns.renew(hold, 0);
        await lane.elapse(1);
      }

      const { notices } = await noticing({ maxLost: 2, suspects: true });

      expect(notices).toMatchObject([{ type: 'lost', lostSinceStep: 1, turn: { status: 'failed', lost: 20 } }]);
      expect(await lane.get(id)).toMatchObject({ status: 'failed', error: { code: 'WORKER_LOST' } });
    });
  });

  it('FIX-06 cancels a lost turn that was asked to stop instead of counting the loss', async () => {
    const { id } = await lane.queue('first');
    await lose(2);
    await lane.adapter.turns.cancel(id, 'cancel');

    expect(await noticing({})).toEqual({ claimed: null, notices: [] });
    expect(await lane.get(id)).toMatchObject({ status: 'cancelled', lost: 1 });
  });
}
