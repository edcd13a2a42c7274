import { DESK, LONG_MS, SHORT_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** More turns than earlier tests settle. */
const PLENTY = 1_000_000;

/** Tests that settled turns are purged after a retention time, and the data that they wrote remains (NST-06). */
export function describeTurnsPurge(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
    // Removes the turns that other tests have settled.
    await context.elapse(SHORT_MS);
    await purge(0);
  });

  const purge = (olderThanMs: number, limit = PLENTY): Promise<number> =>
    context.adapter.turns.purgeSettled(olderThanMs, limit);

  it('NST-06 deletes turns that settled long enough ago, whatever their status, and no open ones', async () => {
    const completed = await lane.run('completed');
    await lane.settle(completed.hold, { status: 'completed' });
    const failed = await lane.run('failed');
    await lane.settle(failed.hold, { status: 'failed', error: { name: 'Error', message: 'no' } });
    const cancelled = await lane.queue('cancelled');
    await context.adapter.turns.cancel(cancelled.id, 'cancel');
    await lane.run('running');
    const superseded = await lane.queue('superseded');
    await lane.queue('queued', { whenBusy: 'latest' });
    await context.elapse(SHORT_MS);

    expect(await purge(LONG_MS)).toBe(0);
    expect(await purge(0)).toBe(4);
    expect(await purge(0)).toBe(0);

    expect(await lane.statuses()).toEqual(['running: running', 'queued: queued']);
    for (const { id } of [completed.turn, failed.turn, cancelled, superseded]) expect(await lane.get(id)).toBeNull();
  });

  it('NST-06 keeps a turn that waits for a signal, however long it waits', async () => {
    const { hold } = await lane.run('waiting');
    await context.adapter.turns.wait(hold, { signal: 'go', step: { ...lane.step('wait', 0) } });
    await context.elapse(SHORT_MS);

    expect(await purge(0)).toBe(0);
    expect(await lane.statuses()).toEqual(['waiting: waiting']);
  });

  it('NST-06 keeps the data that the turns wrote, and their lane continues', async () => {
    const { hold, turn } = await lane.run('hello');
    await lane.settle(hold, lane.settlement(turn, 0));
    const messages = await lane.messages();
    const checkpoint = await context.adapter.checkpoints.load(DESK, lane.sessionId);
    await context.elapse(SHORT_MS);
    expect(await purge(0)).toBe(1);

    expect(await lane.messages()).toEqual(messages);
    expect(await context.adapter.checkpoints.load(DESK, lane.sessionId)).toEqual(checkpoint);
    const next = await lane.run('next', { windows: { [DESK]: 10 } });
    expect(next).toMatchObject({ turn: { position: 2 }, history: messages, checkpoint });
    await lane.settle(next.hold, lane.settlement(next.turn, 1));
    expect(await lane.messages()).toHaveLength(4);
  });

  it('NST-06 deletes steps, signals and idempotency keys with their turn', async () => {
    const keyed = { idempotency: { key: 'key', hash: 'hash', ttlMs: LONG_MS } };
    const { id } = await lane.queue('old', keyed);
    const { hold } = await lane.take();
    await context.adapter.turns.saveStep(hold, lane.step('look', 'old'));
    await context.adapter.turns.signal(id, 'go', 'old');
    await lane.settle(hold);
    await context.elapse(SHORT_MS);
    await purge(0);

    // Reuses the id and key, to see that nothing of the old turn remains.
    expect(await lane.accept('new', { ...keyed, id })).toMatchObject({ duplicate: false, turn: { id, position: 2 } });
    const again = await lane.take();
    expect(again.steps).toEqual([]);
    expect(await context.adapter.turns.saveStep(again.hold, lane.step('look', 'new'))).toMatchObject({ value: 'new' });
    expect(await context.adapter.turns.signal(id, 'go', 'new')).toMatchObject({ accepted: true });
  });

  it('NST-06 keeps an idempotency key that a newer turn uses', async () => {
    const keyed = (ttlMs: number) => ({ idempotency: { key: 'key', hash: 'hash', ttlMs } });
    await lane.queue('old', keyed(LONG_MS));
    await lane.settle((await lane.take()).hold);
    await context.elapse(SHORT_MS);
    const { id } = await lane.queue('new', keyed(0));

    expect(await purge(0)).toBe(1);
    expect(await lane.accept('again', keyed(LONG_MS))).toMatchObject({ duplicate: true, turn: { id } });
  });

  it('NST-06 deletes the oldest first, at most as many as requested', async () => {
    for (let n = 1; n <= 5; n += 1) {
      await lane.settle((await lane.run(`turn ${n}`)).hold);
      await context.elapse(2);
    }
    await context.elapse(SHORT_MS);

    expect(await purge(0, 2)).toBe(2);
    expect(await lane.statuses()).toEqual([
      'turn 3: awaiting-input',
      'turn 4: awaiting-input',
      'turn 5: awaiting-input',
    ]);
    expect(await purge(0, 3)).toBe(3);
    expect(await lane.list()).toEqual([]);
  });

  it('NST-06 counts every turn once when several purges run concurrently', async () => {
    for (let n = 0; n < 12; n += 1) await lane.settle((await lane.run(`turn ${n}`)).hold);
    await context.elapse(SHORT_MS);

    const removed = await Promise.all(context.clients.map(({ turns }) => turns.purgeSettled(0, 5)));

    const left = (await lane.list()).length;
    expect(removed.reduce((sum, count) => sum + count, 0)).toBe(12 - left);
    expect(await purge(0)).toBe(left);
  });

  it('NST-06 fences a settle that is sent again after its turn was purged, and writes nothing', async () => {
    const { hold, turn } = await lane.run('hello');
    await lane.settle(hold, lane.settlement(turn, 0));
    await context.elapse(SHORT_MS);
    await purge(0);

    await expect(lane.settle(hold, lane.settlement(turn, 0))).rejects.toMatchObject({ code: 'TURN_FENCED' });
    expect(await lane.messages()).toHaveLength(2);
  });
}
