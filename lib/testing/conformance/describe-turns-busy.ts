import { LaneFullError, SessionBusyError } from '../../ledger/turn.errors.js';
import { WHEN_BUSY } from '../../ledger/turn.js';
import { TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests how each `whenBusy` policy handles the turn that holds the lane, and the queued ones (TRN-06). */
export function describeTurnsBusy(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-06 accepts on an idle lane under every policy', async () => {
    for (const whenBusy of WHEN_BUSY) {
      expect(await lane.accept(whenBusy, { whenBusy })).toMatchObject({ notify: true, turn: { status: 'queued' } });
      expect(await lane.drain()).toEqual([whenBusy]);
    }
  });

  it('TRN-06 enqueue keeps the holder and the queued turns', async () => {
    await holderAndQueued();
    await lane.accept('new', { whenBusy: 'enqueue' });

    expect(await lane.statuses()).toEqual(['holder: running', 'queued: queued', 'new: queued']);
    expect((await lane.list())[0]).not.toHaveProperty('cancelMode');
  });

  it('TRN-06 reject reports that the holder is alive, and its start time', async () => {
    await lane.queue('holder');
    await lane.elapse(5);
    const { turn } = await lane.take();
    await lane.elapse(5);

    const refused = lane.accept('new', { whenBusy: 'reject' });

    await expect(refused).rejects.toBeInstanceOf(SessionBusyError);
    await expect(refused).rejects.toMatchObject({
      sessionId: lane.sessionId,
      turnId: turn.id,
      holderAlive: true,
      since: turn.startedAt,
    });
    expect(await lane.statuses()).toEqual(['holder: running']);
  });

  it('TRN-06 reject reports no live holder for a lapsed, a queued or a waiting turn', async () => {
    const reject = () => lane.accept('new', { whenBusy: 'reject' });
    const { id, acceptedAt } = await lane.queue('holder');
    await expect(reject()).rejects.toMatchObject({ turnId: id, holderAlive: false, since: acceptedAt });

    const { turn } = await lane.lapse();
    await expect(reject()).rejects.toMatchObject({ turnId: id, holderAlive: false, since: turn.startedAt });

    const { hold } = await lane.take();
    await lane.adapter.turns.wait(hold, { signal: 'approval', step: lane.step('approval', null) });
    await expect(reject()).rejects.toMatchObject({ turnId: id, holderAlive: false, since: turn.startedAt });
  });

  it.each([
    ['interrupt', 'interrupt'],
    ['rollback', 'rollback'],
    ['replace', 'interrupt'],
  ] as const)('TRN-06 %s asks the running turn to stop', async (whenBusy, cancelMode) => {
    const { hold, turn } = await lane.run('holder');
    await lane.accept('new', { whenBusy });

    expect(await lane.get(turn.id)).toMatchObject({ status: 'running', cancelMode });
    expect(await lane.adapter.turns.renew(hold, 1000)).toEqual({ cancelMode });
    expect(await lane.claim()).toBeNull();

    const settled = await lane.settle(hold, { status: 'cancelled' }, lane.claimRequest());
    expect(settled.turn).not.toHaveProperty('cancelMode');
    expect(settled).toMatchObject({
      turn: { status: 'cancelled' },
      next: { turn: { request: { input: { text: 'new' } } } },
    });
  });

  it('TRN-06 interrupt and rollback keep the queued turns, and queue the new turn behind them', async () => {
    for (const whenBusy of ['interrupt', 'rollback'] as const) {
      lane = await TestLane.open(context);
      const { hold } = await holderAndQueued();
      await lane.accept('new', { whenBusy });
      await lane.settle(hold, { status: 'cancelled' });

      expect(await lane.drain()).toEqual(['queued', 'new']);
    }
  });

  it.each(['latest', 'replace'] as const)('TRN-06 %s supersedes the queued turns', async (whenBusy) => {
    const { hold } = await holderAndQueued();
    await lane.queue('queued too');
    const { id } = await lane.queue('new', { whenBusy });

    expect(await lane.statuses()).toEqual([
      'holder: running',
      'queued: superseded',
      'queued too: superseded',
      'new: queued',
    ]);
    const [, superseded] = await lane.list();
    expect(superseded).toMatchObject({ supersededBy: id, settledAt: expect.any(String) as string });
    await lane.settle(hold);
    expect(await lane.drain()).toEqual(['new']);
  });

  it('TRN-06 latest keeps the holder', async () => {
    const { hold, turn } = await lane.run('holder');
    await lane.accept('new', { whenBusy: 'latest' });

    expect(await lane.get(turn.id)).not.toHaveProperty('cancelMode');
    expect(await lane.adapter.turns.renew(hold, 1000)).toEqual({});
  });

  it.each(['latest', 'replace'] as const)(
    'TRN-06 %s makes the new turn the head of a lane without a running turn',
    async (whenBusy) => {
      await lane.queue('queued');

      expect((await lane.accept('new', { whenBusy })).notify).toBe(true);
      expect(await lane.drain()).toEqual(['new']);
    },
  );

  it.each(['interrupt', 'replace'] as const)(
    'TRN-06 %s ends a waiting turn immediately and keeps the message of the user',
    async (whenBusy) => {
      const { turn } = await waiting();

      expect((await lane.accept('new', { whenBusy })).notify).toBe(true);

      expect(await lane.statuses()).toEqual(['holder: cancelled', 'new: queued']);
      expect(await lane.get(turn.id)).not.toHaveProperty('waitingFor');
      expect(await lane.messages()).toMatchObject([
        { role: 'user', content: 'holder', turnId: turn.id, orchestrator: turn.orchestrator },
      ]);
      expect(await lane.drain()).toEqual(['new']);
    },
  );

  it('TRN-06 rollback ends a waiting turn immediately and keeps no message', async () => {
    await waiting();
    await lane.queue('queued');

    expect((await lane.accept('new', { whenBusy: 'rollback' })).notify).toBe(true);

    expect(await lane.statuses()).toEqual(['holder: cancelled', 'queued: queued', 'new: queued']);
    expect(await lane.messages()).toEqual([]);
    expect(await lane.drain()).toEqual(['queued', 'new']);
  });

  it.each(['enqueue', 'latest'] as const)('TRN-06 %s keeps a waiting turn at the head', async (whenBusy) => {
    await waiting();

    expect((await lane.accept('new', { whenBusy })).notify).toBe(false);
    expect(await lane.statuses()).toEqual(['holder: waiting', 'new: queued']);
    expect(await lane.claim()).toBeNull();
  });

  it('TRN-06 keeps the first cancel mode of a running turn', async () => {
    const { turn } = await lane.run('holder');
    await lane.accept('first', { whenBusy: 'rollback' });
    await lane.accept('second', { whenBusy: 'interrupt' });
    await lane.adapter.turns.cancel(turn.id, 'cancel');

    expect(await lane.get(turn.id)).toMatchObject({ cancelMode: 'rollback' });
  });

  it('TRN-06 does not change the lane when it rejects the new turn', async () => {
    await holderAndQueued();
    const before = await lane.snapshot();

    for (const whenBusy of ['interrupt', 'rollback'] as const) {
      await expect(lane.accept('new', { whenBusy, maxQueued: 1 })).rejects.toBeInstanceOf(LaneFullError);
    }
    await expect(lane.accept('new', { whenBusy: 'replace', maxQueued: 0 })).rejects.toBeInstanceOf(LaneFullError);

    expect(await lane.snapshot()).toEqual(before);
  });

  it('TRN-07 accepts a turn that supersedes the queued turns of a full lane', async () => {
    await holderAndQueued();

    await expect(lane.accept('new', { whenBusy: 'latest', maxQueued: 1 })).resolves.toMatchObject({ duplicate: false });
  });

  async function holderAndQueued() {
    const claimed = await lane.run('holder');
    await lane.queue('queued');
    return claimed;
  }

  async function waiting() {
    const claimed = await lane.run('holder');
    await lane.adapter.turns.wait(claimed.hold, { signal: 'approval', step: lane.step('approval', null) });
    return claimed;
  }
}
