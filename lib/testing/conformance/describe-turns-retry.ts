import { LONG_MS, SHORT_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const ERROR = { name: 'TypeError', message: 'no answer', code: 'E_MODEL' };

/** Tests of TurnLedger.retry and release (TRN-02, TRN-08). Lost attempts have separate tests. */
export function describeTurnsRetry(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-08 queues a failed attempt again with its error, due after the delay', async () => {
    const { hold, turn } = await lane.run('hello');

    const retried = await lane.adapter.turns.retry(hold, { error: ERROR, delayMs: LONG_MS });

    expect(retried).toEqual({
      ...turn,
      status: 'queued',
      failures: 1,
      error: ERROR,
      dueAt: expect.any(String) as string,
    });
    expect(Date.parse(retried.dueAt ?? '') - Date.parse(turn.startedAt ?? '')).toBeGreaterThanOrEqual(LONG_MS);
    expect(await lane.get(turn.id)).toEqual(retried);
    expect(await lane.claim()).toBeNull();
  });

  it('TRN-08 starts the next attempt when it is due', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    await lane.adapter.turns.retry(hold, { error: ERROR, delayMs: SHORT_MS });

    await lane.elapse(SHORT_MS);
    const again = await lane.take();

    expect(again.turn).toMatchObject({ id: turn.id, failures: 1, startedAt: turn.startedAt });
    expect(again.turn).not.toHaveProperty('dueAt');
  });

  it('TRN-02 keeps the lane waiting for the retry', async () => {
    const { hold } = await lane.run('first');
    await lane.queue('second');
    await lane.adapter.turns.retry(hold, { error: ERROR, delayMs: LONG_MS });

    expect(await lane.claim()).toBeNull();
    expect(await lane.statuses()).toEqual(['first: queued', 'second: queued']);
  });

  it('TRN-02 runs a retried turn before turns that are accepted later', async () => {
    const { hold } = await lane.run('first');
    await lane.queue('second');
    await lane.adapter.turns.retry(hold, { error: ERROR, delayMs: SHORT_MS });
    expect((await lane.accept('third')).notify).toBe(false);

    await lane.elapse(SHORT_MS);
    expect(await lane.drain()).toEqual(['first', 'second', 'third']);
  });

  it('TRN-02 keeps the order through releases, lapses and retries in sequence', async () => {
    for (const text of ['first', 'second', 'third']) await lane.queue(text);
    const order: string[] = [];
    for (let turns = 0; turns < 3; turns += 1) {
      await lane.adapter.turns.release((await lane.take()).hold, 0);
      await lane.lapse();
      await lane.adapter.turns.retry((await lane.take()).hold, { error: ERROR, delayMs: 0 });
      const { hold, turn } = await lane.take();
      order.push(`${turn.request.input.text} after ${turn.failures} failure, ${turn.lost} loss`);
      await lane.settle(hold);
    }

    expect(order).toEqual(['first', 'second', 'third'].map((text) => `${text} after 1 failure, 1 loss`));
  });

  it('TRN-08 counts no attempt for a release, and lets any worker claim the turn immediately', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');

    const released = await lane.adapter.turns.release(hold, LONG_MS);

    expect(released).toEqual({ ...turn, status: 'queued' });
    expect(await lane.get(turn.id)).toEqual(released);
    expect((await lane.take()).turn).toMatchObject({ id: turn.id, failures: 0, startedAt: turn.startedAt });
  });

  it('TRN-08 never fails a turn because of releases', async () => {
    await lane.queue('first');
    for (let releases = 0; releases < 5; releases += 1) {
      await lane.adapter.turns.release((await lane.take()).hold, 0);
    }

    expect((await lane.take()).turn.failures).toBe(0);
  });
}
