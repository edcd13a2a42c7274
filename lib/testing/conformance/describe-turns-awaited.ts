import { type ConformanceContext } from './target.js';
import { LONG_MS, TestLane } from './test-lane.js';

/** Tests of the turns that a running turn awaits (FIX-04). */
export function describeTurnsAwaited(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  const child = { sessionId: 'child', turnId: 'child-turn' };
  const other = { sessionId: 'other', turnId: 'other-turn' };

  it('FIX-04 returns the awaited turns that were saved last', async () => {
    const { turns } = lane.adapter;
    const { hold } = await lane.run('first');
    expect(await turns.awaited(lane.sessionId)).toEqual([]);
    await turns.saveAwaited(hold, [child]);
    expect(await turns.awaited(lane.sessionId)).toEqual([child]);
    await turns.saveAwaited(hold, [child, other]);
    expect(await turns.awaited(lane.sessionId)).toEqual([child, other]);
    await turns.renew(hold, LONG_MS);
    expect(await turns.awaited(lane.sessionId)).toEqual([child, other]);
    await turns.saveAwaited(hold, []);
    expect(await turns.awaited(lane.sessionId)).toEqual([]);
  });

  it('FIX-04 returns nothing for a session without a running turn', async () => {
    const { turns } = lane.adapter;
    expect(await turns.awaited(context.id())).toEqual([]);
    await lane.queue('first');
    expect(await turns.awaited(lane.sessionId)).toEqual([]);
  });

  it.each(['settled', 'retried', 'released', 'awaiting a signal'])(
    'FIX-04 forgets the awaited turns once the turn is %s',
    async (fate) => {
      const { turns } = lane.adapter;
      const { hold, turn } = await lane.run('first');
      await turns.saveAwaited(hold, [child]);
      if (fate === 'settled') await lane.settle(hold, lane.settlement(turn, 0));
      if (fate === 'retried') await turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: 0 });
      if (fate === 'released') await turns.release(hold, 0);
      if (fate === 'awaiting a signal')
        await turns.wait(hold, { signal: 'go', step: lane.step('go', null), timeoutMs: 0 });
      expect(await turns.awaited(lane.sessionId)).toEqual([]);

      if (fate === 'settled') await lane.queue('second');
      const next = await lane.take();
      expect(await turns.awaited(lane.sessionId)).toEqual([]);
      await turns.saveAwaited(next.hold, [other]);
      expect(await turns.awaited(lane.sessionId)).toEqual([other]);
    },
  );

  it('FIX-04 forgets the awaited turns of a lost worker when another worker has the turn', async () => {
    const { turns } = lane.adapter;
    await lane.queue('first');
    const { hold } = await lane.lapse();
    await turns.saveAwaited(hold, [child]);
    await lane.take();
    expect(await turns.awaited(lane.sessionId)).toEqual([]);
  });
}
