import { TurnNotFoundError } from '../../ledger/turn.errors.js';
import { LONG_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests of TurnLedger.cancel, and of turns that were asked to stop. */
export function describeTurnsCancel(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-09 cancels a queued turn immediately', async () => {
    await lane.run('first');
    const second = await lane.queue('second');
    await lane.elapse(5);

    const { turn, notify } = await lane.adapter.turns.cancel(second.id, 'cancel');

    expect(turn).toEqual({ ...second, status: 'cancelled', settledAt: expect.any(String) as string });
    expect((turn.settledAt ?? '') > turn.acceptedAt).toBe(true);
    expect(notify).toBe(false);
    expect(await lane.get(second.id)).toEqual(turn);
  });

  it('FIX-46 TRN-06 keeps no message of an interrupted turn that was accepted unlogged', async () => {
    const request = { input: { text: 'unlogged' }, unlogged: true };
    const waiting = await lane.queue('', { request });
    await lane.adapter.turns.wait((await lane.take()).hold, { signal: 'go', step: lane.step('go', null) });
    await lane.adapter.turns.cancel(waiting.id, 'interrupt');
    const replaced = await lane.queue('', { request });
    await lane.lapse();
    await lane.queue('logged', { whenBusy: 'replace' });
    const { hold } = await lane.take();
    await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null) });
    await lane.adapter.turns.cancel(hold.turnId, 'interrupt');

    expect((await lane.get(waiting.id))?.request).toEqual(request);
    expect(await lane.get(replaced.id)).toMatchObject({ status: 'cancelled' });
    expect(await lane.messages()).toMatchObject([{ content: 'logged' }]);
  });

  it('TRN-09 keeps the order of the other turns', async () => {
    await lane.queue('first');
    const second = await lane.queue('second');
    await lane.queue('third');
    await lane.adapter.turns.cancel(second.id, 'cancel');

    expect(await lane.drain()).toEqual(['first', 'third']);
  });

  it('TRN-09 asks to notify when the head is cancelled and the next turn is due', async () => {
    const head = await lane.queue('first');
    const last = await lane.queue('second');

    expect(await lane.adapter.turns.cancel(head.id, 'cancel')).toMatchObject({ notify: true });
    expect(await lane.adapter.turns.cancel(last.id, 'cancel')).toMatchObject({ notify: false });
    expect(await lane.claim()).toBeNull();
  });

  it('TRN-09 cancels a turn that waits for its retry, and the lane continues immediately', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    await lane.adapter.turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: LONG_MS });

    const cancelled = await lane.adapter.turns.cancel(turn.id, 'cancel');

    expect(cancelled).toMatchObject({ notify: true, turn: { status: 'cancelled' } });
    expect(cancelled.turn).not.toHaveProperty('dueAt');
    expect(await lane.drain()).toEqual(['second']);
  });

  it('TRN-09 cancels a waiting turn immediately, and the lane continues', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    await lane.adapter.turns.wait(hold, { signal: 'approval', step: lane.step('approval', null) });

    const cancelled = await lane.adapter.turns.cancel(turn.id, 'cancel');

    expect(cancelled).toMatchObject({ notify: true, turn: { status: 'cancelled' } });
    expect(cancelled.turn).not.toHaveProperty('waitingFor');
    expect(await lane.messages()).toEqual([]);
    expect(await lane.drain()).toEqual(['second']);
  });

  it('TRN-09 marks a running turn, and its worker settles it', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');

    const marked = await lane.adapter.turns.cancel(turn.id, 'cancel');

    expect(marked).toEqual({ turn: { ...turn, cancelMode: 'cancel' }, notify: false });
    expect(await lane.claim()).toBeNull();
    expect(await lane.adapter.turns.renew(hold, LONG_MS)).toEqual({ cancelMode: 'cancel' });
    const settled = await lane.settle(hold, { status: 'cancelled' });
    expect(settled).toMatchObject({ turn: { status: 'cancelled' }, notify: true });
    expect(settled.turn).not.toHaveProperty('cancelMode');
  });

  it('TRN-09 allows a result to settle if the worker finished before it saw the mark', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.adapter.turns.cancel(turn.id, 'cancel');

    const settled = await lane.settle(hold, lane.settlement(turn, 0));
    expect(settled.turn).toMatchObject({ status: 'awaiting-input', turnIndex: 0 });
    expect(settled.turn).not.toHaveProperty('cancelMode');
  });

  it('TRN-09 keeps the first mark', async () => {
    const { turn } = await lane.run('first');
    await lane.adapter.turns.cancel(turn.id, 'interrupt');

    expect(await lane.adapter.turns.cancel(turn.id, 'rollback')).toMatchObject({ turn: { cancelMode: 'interrupt' } });
  });

  it.each([
    ['cancel', []],
    ['rollback', []],
    ['interrupt', ['first']],
  ] as const)('TRN-09 ends a turn (%s) whose worker is lost instead of running it again', async (mode, kept) => {
    await lane.queue('first');
    await lane.queue('second');
    const { turn } = await lane.lapse();
    await lane.adapter.turns.cancel(turn.id, mode);

    const claimed = await lane.take();

    expect(claimed.turn.request.input.text).toBe('second');
    expect(await lane.statuses()).toEqual(['first: cancelled', 'second: running']);
    expect((await lane.messages()).map(({ content }) => content)).toEqual(kept);
  });

  describe('with messages to keep', () => {
    const keep = [
      {
        id: 'kept-1',
        role: 'assistant' as const,
        content: [{ type: 'text', text: 'Half an\u0000 answer \ud800 ü "\\' }],
      },
      { id: 'kept-2', role: 'tool' as const, content: 'ok', toolCallId: 'a', name: 'find', metadata: { n: [1, null] } },
    ];
    const kept = [{ role: 'user', content: 'first' }, ...keep];

    it('AIS-07 keeps those of a turn that awaits a signal', async () => {
      const { hold, turn } = await lane.run('first');
      await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null) });
      await lane.adapter.turns.cancel(turn.id, 'interrupt', keep);
      expect(await lane.messages()).toMatchObject(kept);
      expect(await lane.get(turn.id)).not.toHaveProperty('keep');
    });

    it('AIS-07 keeps those of a turn that is queued for its retry', async () => {
      const { hold, turn } = await lane.run('first');
      await lane.adapter.turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: LONG_MS });
      await lane.adapter.turns.cancel(turn.id, 'interrupt', keep);
      expect(await lane.messages()).toMatchObject(kept);
    });

    it('AIS-07 keeps those of a running turn whose worker is lost', async () => {
      await lane.queue('first');
      const { turn } = await lane.lapse();
      const { turn: marked } = await lane.adapter.turns.cancel(turn.id, 'interrupt', keep);
      expect(marked).toMatchObject({ status: 'running', cancelMode: 'interrupt', keep });
      expect(await lane.claim()).toBeNull();
      expect(await lane.statuses()).toEqual(['first: cancelled']);
      expect(await lane.messages()).toMatchObject(kept);
    });

    it('AIS-07 keeps those of a running turn that returns to its lane', async () => {
      const { hold, turn } = await lane.run('first');
      await lane.adapter.turns.cancel(turn.id, 'interrupt', keep);
      await lane.adapter.turns.release(hold, 0);
      expect(await lane.messages()).toMatchObject(kept);
    });

    it('AIS-07 keeps none if an earlier request to stop kept nothing', async () => {
      const { hold, turn } = await lane.run('first');
      await lane.adapter.turns.cancel(turn.id, 'cancel');
      const { turn: marked } = await lane.adapter.turns.cancel(turn.id, 'interrupt', keep);
      expect(marked).not.toHaveProperty('keep');
      await lane.adapter.turns.release(hold, 0);
      expect(await lane.messages()).toEqual([]);
    });

    it('AIS-07 keeps none of a turn that has not begun', async () => {
      await lane.queue('first');
      const second = await lane.queue('second');
      await lane.adapter.turns.cancel(second.id, 'interrupt', keep);
      expect(await lane.messages()).toEqual([]);
      expect(await lane.statuses()).toEqual(['first: queued', 'second: cancelled']);
    });

    it('AIS-07 gives them to the worker, which settles the turn with its own messages', async () => {
      const { hold, turn } = await lane.run('first');
      await lane.adapter.turns.cancel(turn.id, 'interrupt', keep);
      expect(await lane.get(turn.id)).toMatchObject({ keep });
      const { turn: settled } = await lane.settle(hold, { status: 'cancelled' });
      expect(settled).not.toHaveProperty('keep');
      expect(await lane.get(turn.id)).not.toHaveProperty('keep');
    });
  });

  it('BOT-25 keeps no message of an interrupted command', async () => {
    const request = { input: { text: '' }, command: { type: 'undo' } as const };
    const waiting = await lane.queue('', { request });
    await lane.adapter.turns.wait((await lane.take()).hold, { signal: 'go', step: lane.step('go', null) });
    await lane.adapter.turns.cancel(waiting.id, 'interrupt');
    await lane.queue('', { request });
    const { turn } = await lane.lapse();
    await lane.adapter.turns.cancel(turn.id, 'interrupt');

    expect(await lane.claim()).toBeNull();
    expect(await lane.statuses()).toEqual([': cancelled', ': cancelled']);
    expect(await lane.messages()).toEqual([]);
    expect((await lane.get(turn.id))?.request).toEqual(request);
  });

  it.each(['retry', 'release'] as const)('TRN-09 ends a turn that was asked to stop at its %s', async (method) => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    await lane.adapter.turns.cancel(turn.id, 'cancel');

    const back =
      method === 'retry'
        ? await lane.adapter.turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: LONG_MS })
        : await lane.adapter.turns.release(hold, LONG_MS);

    expect(back).toMatchObject({ id: turn.id, status: 'cancelled', settledAt: expect.any(String) as string });
    expect(await lane.drain()).toEqual(['second']);
  });

  it('TRN-09 rejects a cancel of a missing turn', async () => {
    await expect(lane.adapter.turns.cancel(context.id(), 'cancel')).rejects.toBeInstanceOf(TurnNotFoundError);
  });
}
