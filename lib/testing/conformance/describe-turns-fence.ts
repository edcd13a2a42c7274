import { TurnFencedError } from '../../ledger/turn.errors.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { DESK, LONG_MS, NOTES, SHORT_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests that lease and fence allow one running turn per session, and stop workers that lost their turn (TRN-03). */
export function describeTurnsFence(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-03 rejects a second running turn of a session', async () => {
    await lane.run('first');
    await lane.queue('second');

    expect(await lane.claim()).toBeNull();
    expect(await lane.statuses()).toEqual(['first: running', 'second: queued']);
  });

  it('TRN-03 grants the turn to one of many workers that claim concurrently', async () => {
    await lane.queue('first');
    await lane.queue('second');

    const claims = await Promise.all(Array.from({ length: 20 }, () => lane.claim()));

    expect(claims.filter((claimed) => claimed !== null)).toHaveLength(1);
    expect(await lane.statuses()).toEqual(['first: running', 'second: queued']);
  });

  it('TRN-03 grants a lapsed turn to one of many workers that claim concurrently', async () => {
    await lane.queue('first');
    const { hold } = await lane.lapse();

    const claims = await Promise.all(Array.from({ length: 20 }, () => lane.claim()));

    const fences = claims.flatMap((claimed) => claimed?.hold.fence ?? []);
    expect(fences).toHaveLength(1);
    expect(fences[0]).toBeGreaterThan(hold.fence);
  });

  it('TRN-03 gives every claim a higher fence than the one before', async () => {
    const fences: number[] = [];
    const note = ({ hold }: { hold: TurnHold }): TurnHold => {
      fences.push(hold.fence);
      return hold;
    };
    await lane.queue('first');
    await lane.queue('second');
    await lane.adapter.turns.release(note(await lane.take()), 0);
    await lane.adapter.turns.retry(note(await lane.take()), { error: { name: 'Error', message: 'no' }, delayMs: 0 });
    note(await lane.lapse());
    const suspended = note(await lane.take());
    await lane.adapter.turns.wait(suspended, { signal: 'go', step: lane.step('go', null), timeoutMs: 0 });
    const { next } = await lane.settle(note(await lane.take()), {}, lane.claimRequest());
    if (next) note(next);

    expect(fences).toHaveLength(6);
    for (const [i, fence] of fences.entries()) expect(fence).toBeGreaterThan(fences[i - 1] ?? 0);
  });

  it('TRN-03 answers a claim that is sent twice with the same hold', async () => {
    await lane.queue('first');
    const request = lane.claimRequest();

    const first = await context.adapter.turns.claim(lane.sessionId, request);
    const second = await context.adapter.turns.claim(lane.sessionId, request);

    expect(first).not.toBeNull();
    expect(second).toEqual(first);
    expect(await lane.claim()).toBeNull();
  });

  it('TRN-03 grants other workers no claim until the lease lapses', async () => {
    await lane.queue('first');
    const { hold } = await lane.take({ leaseMs: LONG_MS });
    expect(await lane.claim()).toBeNull();

    await lane.adapter.turns.renew(hold, SHORT_MS);
    await lane.elapse(SHORT_MS);
    const later = (await lane.take()).hold;
    expect(later.turnId).toBe(hold.turnId);
    expect(later.fence).toBeGreaterThan(hold.fence);
  });

  it('TRN-03 grants other workers no claim while the lease is renewed', async () => {
    await lane.queue('first');
    const { hold } = await lane.take({ leaseMs: SHORT_MS });
    expect(await lane.adapter.turns.renew(hold, LONG_MS)).toEqual({});

    await lane.elapse(SHORT_MS);
    expect(await lane.claim()).toBeNull();
  });

  it('TRN-03 lets a late worker continue if no other worker has claimed its turn', async () => {
    await lane.queue('first');
    const { hold } = await lane.lapse();

    expect(await lane.adapter.turns.renew(hold, LONG_MS)).toEqual({});
    expect(await lane.claim()).toBeNull();
    expect((await lane.settle(hold)).turn.status).toBe('awaiting-input');
  });

  describe.each(['taken over', 'taken over and settled', 'released', 'waiting', 'cancelled while it waits'] as const)(
    'a worker whose turn is %s',
    (fate) => {
      let zombie: TurnHold;

      beforeEach(async () => {
        await lane.queue('first');
        await lane.queue('second');
        zombie = await lostHold(fate);
      });

      it.each(Object.keys(writes) as (keyof typeof writes)[])(
        'TRN-03 is fenced when it sends %s, and changes nothing',
        async (write) => {
          const before = await lane.snapshot();

          const refused = writes[write](lane, zombie);

          await expect(refused).rejects.toBeInstanceOf(TurnFencedError);
          await expect(refused).rejects.toMatchObject({ ...zombie });
          expect(await lane.snapshot()).toEqual(before);
        },
      );
    },
  );

  it('TRN-03 lets the new worker continue after an older one was fenced', async () => {
    await lane.queue('first');
    const zombie = (await lane.lapse()).hold;
    const { hold, turn } = await lane.take();
    for (const write of Object.values(writes)) await expect(write(lane, zombie)).rejects.toThrow();

    const { turn: settled } = await lane.settle(hold, lane.settlement(turn, 0));
    expect(settled).toMatchObject({ status: 'awaiting-input', turnIndex: 0 });
    expect(await lane.messages()).toHaveLength(2);
    expect(await context.adapter.turns.claim(lane.sessionId, lane.claimRequest())).toBeNull();
  });

  it('TRN-03 stores no steps of an older worker', async () => {
    await lane.queue('first');
    const zombie = (await lane.lapse()).hold;
    const { hold } = await lane.take();
    await expect(lane.adapter.turns.saveStep(zombie, lane.step('charge', 'old'))).rejects.toThrow(TurnFencedError);

    expect(await lane.adapter.turns.saveStep(hold, lane.step('charge', 'new'))).toEqual(lane.step('charge', 'new'));
  });

  it('TRN-03 rejects an older worker on a lane that was deleted and created again', async () => {
    const id = context.id();
    await lane.queue('first', { id });
    const { hold: old } = await lane.take();
    await context.sessions.delete(lane.sessionId);
    await lane.elapse(5);
    await lane.createSession();
    await lane.queue('first again', { id });
    const { hold } = await lane.take();
    const before = await lane.snapshot();

    expect(hold.fence).toBeGreaterThan(old.fence);
    for (const write of Object.values(writes)) await expect(write(lane, old)).rejects.toThrow(TurnFencedError);
    expect(await lane.snapshot()).toEqual(before);
  });

  /** Returns the hold of a worker that ran the head of the lane and lost it. */
  async function lostHold(fate: string): Promise<TurnHold> {
    const { turns } = context.adapter;
    if (fate.startsWith('taken over')) {
      const { hold } = await lane.lapse();
      const successor = await lane.take();
      if (fate.endsWith('settled')) await lane.settle(successor.hold, lane.settlement(successor.turn, 0));
      return hold;
    }
    const { hold } = await lane.take();
    if (fate === 'released') {
      await turns.release(hold, 0);
      return hold;
    }
    await turns.wait(hold, { signal: 'approval', step: lane.step('approval', null) });
    if (fate.startsWith('cancelled')) await turns.cancel(hold.turnId, 'cancel');
    return hold;
  }
}

/** All writes of a worker for a turn. */
const writes = {
  renew: (lane: TestLane, hold: TurnHold) => lane.adapter.turns.renew(hold, LONG_MS),
  settle: async (lane: TestLane, hold: TurnHold) =>
    lane.settle(hold, {
      status: 'completed',
      reply: { text: 'too late' },
      messages: [{ id: 'late', role: 'assistant', content: 'too late' }],
      checkpoint: lane.checkpoint((await lane.adapter.checkpoints.history(DESK, lane.sessionId)).length),
      keepCheckpoints: 1,
      stateChanges: [{ name: NOTES, append: { id: 'late', entries: ['too late'], initial: {} } }],
    }),
  retry: (lane: TestLane, hold: TurnHold) =>
    lane.adapter.turns.retry(hold, { error: { name: 'Error', message: 'too late' }, delayMs: LONG_MS }),
  release: (lane: TestLane, hold: TurnHold) => lane.adapter.turns.release(hold, LONG_MS),
  wait: (lane: TestLane, hold: TurnHold) =>
    lane.adapter.turns.wait(hold, { signal: 'late', step: lane.step('late', null) }),
  saveAwaited: (lane: TestLane, hold: TurnHold) =>
    lane.adapter.turns.saveAwaited(hold, [{ sessionId: 'late', turnId: 'late' }]),
  saveStep: (lane: TestLane, hold: TurnHold) => lane.adapter.turns.saveStep(hold, lane.step('late', 'too late')),
} as const;
