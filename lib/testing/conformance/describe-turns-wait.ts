import { TurnNotFoundError } from '../../ledger/turn.errors.js';
import { type TurnHold, type TurnWait } from '../../ledger/turn.store.js';
import { SHORT_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** TurnLedger.wait and signal: a turn that is parked until somebody answers (TRN-13). */
export function describeTurnsWait(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-13 parks the turn, and the lane stays its own', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');

    const parked = await wait(hold);

    expect(parked).toEqual({ turn: { ...turn, status: 'waiting', waitingFor: { signal: 'approval' } } });
    expect(await lane.get(turn.id)).toEqual(parked.turn);
    expect(await lane.claim()).toBeNull();
    expect(await lane.statuses()).toEqual(['first: waiting', 'second: queued']);
  });

  it('TRN-13 says when the wait lapses', async () => {
    const { hold, turn } = await lane.run('first');
    const parked = await wait(hold, { timeoutMs: 10_000 });

    const { until = '' } = parked.turn.waitingFor ?? {};
    expect(Date.parse(until) - Date.parse(turn.startedAt ?? '')).toBeGreaterThanOrEqual(10_000);
    expect(await lane.claim()).toBeNull();
  });

  it('TRN-13 a signal resumes the turn with its payload as a stored step, and costs no attempt', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    await lane.adapter.turns.saveStep(hold, lane.step('before', 1));
    await wait(hold, { timeoutMs: 60_000 });

    const signalled = await lane.adapter.turns.signal(turn.id, 'approval', { by: 'Ann' });

    expect(signalled).toEqual({ turn: { ...turn, status: 'queued' }, accepted: true, ring: true });
    const resumed = await lane.take();
    expect(resumed.turn).toEqual(turn);
    expect(resumed.steps).toHaveLength(2);
    expect(resumed.steps).toEqual(
      expect.arrayContaining([
        lane.step('before', 1),
        lane.step('approval', { received: true, payload: { by: 'Ann' } }),
      ]),
    );
    await lane.settle(resumed.hold);
    expect(await lane.drain()).toEqual(['second']);
  });

  it.each(['queued', 'running'])('TRN-13 keeps a signal that comes while the turn is still %s', async (status) => {
    const { id } = await lane.queue('first');
    const early = () => lane.adapter.turns.signal(id, 'approval', 'yes');
    if (status === 'queued') expect(await early()).toMatchObject({ accepted: true, ring: false, turn: { status } });
    const { hold, turn } = await lane.take();
    if (status === 'running') expect(await early()).toMatchObject({ accepted: true, ring: false, turn: { status } });

    expect(await wait(hold)).toEqual({ turn, received: { payload: 'yes' } });

    expect(await lane.get(id)).toEqual(turn);
    await lane.adapter.turns.release(hold, 0);
    expect((await lane.take()).steps).toEqual([lane.step('approval', { received: true, payload: 'yes' })]);
  });

  it('TRN-13 the first payload of a signal wins', async () => {
    const { hold, turn } = await lane.run('first');
    await wait(hold);

    const signals = await Promise.all(
      Array.from({ length: 10 }, (_, index) => lane.adapter.turns.signal(turn.id, 'approval', index)),
    );

    const winner = signals.findIndex(({ accepted }) => accepted);
    expect(signals.filter(({ accepted }) => accepted)).toHaveLength(1);
    expect((await lane.take()).steps).toEqual([lane.step('approval', { received: true, payload: winner })]);
    expect(await lane.adapter.turns.signal(turn.id, 'approval', 'again')).toMatchObject({
      accepted: false,
      ring: false,
      turn: { status: 'running' },
    });
  });

  it('TRN-13 a signal of another name does not resume the turn, and is kept for a later wait', async () => {
    const { hold, turn } = await lane.run('first');
    await wait(hold);

    expect(await lane.adapter.turns.signal(turn.id, 'payment', null)).toMatchObject({
      accepted: true,
      ring: false,
      turn: { status: 'waiting' },
    });
    expect(await lane.claim()).toBeNull();

    await lane.adapter.turns.signal(turn.id, 'approval', true);
    const resumed = await lane.take();
    const payment = await wait(resumed.hold, { signal: 'payment', step: lane.step('payment', null) });
    expect(payment.received).toEqual({ payload: null });
  });

  it('TRN-13 a wait that lapses goes on with the time-out as its step, and costs no attempt', async () => {
    const { hold } = await lane.run('first');
    await wait(hold, { timeoutMs: SHORT_MS });

    await lane.elapse(SHORT_MS);
    const resumed = await lane.take();

    expect(resumed.turn).toMatchObject({ status: 'running', failures: 0 });
    expect(resumed.turn).not.toHaveProperty('waitingFor');
    expect(resumed.steps).toEqual([lane.step('approval', { received: false })]);
  });

  it('TRN-13 a signal that comes after the time-out does not change what the wait gave', async () => {
    const { hold, turn } = await lane.run('first');
    await wait(hold, { timeoutMs: 0 });
    const resumed = await lane.take();

    expect(await lane.adapter.turns.signal(turn.id, 'approval', 'late')).toMatchObject({ ring: false });
    await lane.adapter.turns.release(resumed.hold, 0);

    expect((await lane.take()).steps).toEqual([lane.step('approval', { received: false })]);
  });

  it('TRN-13 a signal that comes at the time-out, before anybody claims, counts', async () => {
    const { hold, turn } = await lane.run('first');
    await wait(hold, { timeoutMs: 0 });

    await lane.adapter.turns.signal(turn.id, 'approval', 'in time');

    expect((await lane.take()).steps).toEqual([lane.step('approval', { received: true, payload: 'in time' })]);
  });

  it('TRN-13 waits for another signal after the first one', async () => {
    const { hold, turn } = await lane.run('first');
    await wait(hold);
    await lane.adapter.turns.signal(turn.id, 'approval', 1);
    await wait((await lane.take()).hold, { signal: 'payment', step: lane.step('payment', null) });

    expect(await lane.get(turn.id)).toMatchObject({ status: 'waiting', waitingFor: { signal: 'payment' } });
    expect(await lane.adapter.turns.signal(turn.id, 'payment', 2)).toMatchObject({ accepted: true, ring: true });
  });

  it('TRN-13 refuses a signal to a turn that is not there', async () => {
    await expect(lane.adapter.turns.signal(context.id(), 'approval', true)).rejects.toBeInstanceOf(TurnNotFoundError);
  });

  it('TRN-06 a turn that was asked to stop does not wait: it ends', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second', { whenBusy: 'interrupt' });

    expect(await wait(hold)).toMatchObject({ turn: { id: turn.id, status: 'cancelled' } });

    expect(await lane.statuses()).toEqual(['first: cancelled', 'second: queued']);
    expect(await lane.messages()).toMatchObject([{ role: 'user', content: 'first', turnId: turn.id }]);
    expect(await lane.drain()).toEqual(['second']);
  });

  async function wait(hold: TurnHold, changes: Partial<TurnWait> = {}) {
    return lane.adapter.turns.wait(hold, { signal: 'approval', step: lane.step('approval', null), ...changes });
  }
}
