import { TurnNotFoundError } from '../../ledger/turn.errors.js';
import { type TurnHold, type TurnWait } from '../../ledger/turn.store.js';
import { HOSTILE_NAMES } from './session-fixtures.js';
import { SHORT_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests of TurnLedger.wait and signal: a turn that awaits a signal (TRN-13). */
export function describeTurnsWait(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-13 suspends the turn until the signal, and the turn keeps its lane', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');

    const suspended = await wait(hold);

    expect(suspended).toEqual({ turn: { ...turn, status: 'waiting', waitingFor: { signal: 'approval' } } });
    expect(await lane.get(turn.id)).toEqual(suspended.turn);
    expect(await lane.claim()).toBeNull();
    expect(await lane.statuses()).toEqual(['first: waiting', 'second: queued']);
  });

  it('AIS-07 returns the signals that the attempt also waits for, until the turn resumes', async () => {
    const { hold, turn } = await lane.run('first');
    const others = [...HOSTILE_NAMES];
    const suspended = await wait(hold, { others });
    expect(suspended.turn.waitingFor).toEqual({ signal: 'approval', others });
    expect((await lane.get(turn.id))?.waitingFor).toEqual({ signal: 'approval', others });
    await lane.adapter.turns.signal(turn.id, others[1], 'early');
    expect(await lane.get(turn.id)).toMatchObject({ status: 'waiting' });
    const { turn: resumed } = await lane.adapter.turns.signal(turn.id, 'approval', 'yes');
    expect(resumed).not.toHaveProperty('waitingFor');
    await wait((await lane.take()).hold, { signal: 'another' });
    expect((await lane.get(turn.id))?.waitingFor).toEqual({ signal: 'another' });
  });

  it('TRN-13 returns when the wait lapses', async () => {
    const { hold, turn } = await lane.run('first');
    const suspended = await wait(hold, { timeoutMs: 10_000 });

    const { until = '' } = suspended.turn.waitingFor ?? {};
    expect(Date.parse(until) - Date.parse(turn.startedAt ?? '')).toBeGreaterThanOrEqual(10_000);
    expect(await lane.claim()).toBeNull();
  });

  it('TRN-13 resumes the turn on a signal with its payload as a stored step, and counts no attempt', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    await lane.adapter.turns.saveStep(hold, lane.step('before', 1));
    await wait(hold, { timeoutMs: 60_000 });

    const signalled = await lane.adapter.turns.signal(turn.id, 'approval', { by: 'Ann' });

    expect(signalled).toEqual({ turn: { ...turn, status: 'queued' }, accepted: true, notify: true });
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
    if (status === 'queued') expect(await early()).toMatchObject({ accepted: true, notify: false, turn: { status } });
    const { hold, turn } = await lane.take();
    if (status === 'running') expect(await early()).toMatchObject({ accepted: true, notify: false, turn: { status } });

    expect(await wait(hold)).toEqual({ turn, received: { payload: 'yes' } });

    expect(await lane.get(id)).toEqual(turn);
    await lane.adapter.turns.release(hold, 0);
    expect((await lane.take()).steps).toEqual([lane.step('approval', { received: true, payload: 'yes' })]);
  });

  it('TRN-13 keeps the first payload of a signal', async () => {
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
      notify: false,
      turn: { status: 'running' },
    });
  });

  it('TRN-13 does not resume the turn on a signal of another name, and keeps it for a later wait', async () => {
    const { hold, turn } = await lane.run('first');
    await wait(hold);

    expect(await lane.adapter.turns.signal(turn.id, 'payment', null)).toMatchObject({
      accepted: true,
      notify: false,
      turn: { status: 'waiting' },
    });
    expect(await lane.claim()).toBeNull();

    await lane.adapter.turns.signal(turn.id, 'approval', true);
    const resumed = await lane.take();
    const payment = await wait(resumed.hold, { signal: 'payment', step: lane.step('payment', null) });
    expect(payment.received).toEqual({ payload: null });
  });

  it('TRN-13 resumes a lapsed wait with the time-out as its step, and counts no attempt', async () => {
    const { hold } = await lane.run('first');
    await wait(hold, { timeoutMs: SHORT_MS });

    await lane.elapse(SHORT_MS);
    const resumed = await lane.take();

    expect(resumed.turn).toMatchObject({ status: 'running', failures: 0 });
    expect(resumed.turn).not.toHaveProperty('waitingFor');
    expect(resumed.steps).toEqual([lane.step('approval', { received: false })]);
  });

  it('TRN-13 ignores a signal after the time-out has resumed the turn', async () => {
    const { hold, turn } = await lane.run('first');
    await wait(hold, { timeoutMs: 0 });
    const resumed = await lane.take();

    expect(await lane.adapter.turns.signal(turn.id, 'approval', 'late')).toMatchObject({ notify: false });
    await lane.adapter.turns.release(resumed.hold, 0);

    expect((await lane.take()).steps).toEqual([lane.step('approval', { received: false })]);
  });

  it('TRN-13 accepts a signal at the time-out if no worker has claimed the turn yet', async () => {
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
    expect(await lane.adapter.turns.signal(turn.id, 'payment', 2)).toMatchObject({ accepted: true, notify: true });
  });

  it('TRN-13 rejects a signal to a missing turn', async () => {
    await expect(lane.adapter.turns.signal(context.id(), 'approval', true)).rejects.toBeInstanceOf(TurnNotFoundError);
  });

  it('TRN-06 ends a turn that was asked to stop instead of suspending it', async () => {
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
