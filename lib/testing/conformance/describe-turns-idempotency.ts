import { IdempotencyConflictError } from '../../ledger/turn.errors.js';
import { type AcceptTurn } from '../../ledger/turn.store.js';
import { LONG_MS, SHORT_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests that an idempotency key of a session stands for one turn (TRN-05). */
export function describeTurnsIdempotency(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-05 returns the same turn for the same key and body, whatever its status', async () => {
    const { id } = await lane.queue('pay', keyed());

    expect(await lane.accept('pay', keyed())).toMatchObject({ turn: { id, status: 'queued' }, duplicate: true });
    const { hold } = await lane.take();
    expect(await lane.accept('pay', keyed())).toMatchObject({ turn: { id, status: 'running' }, duplicate: true });
    await lane.settle(hold, { reply: { text: 'paid' } });
    expect(await lane.accept('pay', keyed())).toEqual({
      turn: expect.objectContaining({ id, status: 'awaiting-input', reply: { text: 'paid' } }) as unknown,
      duplicate: true,
      notify: false,
    });
    expect(await lane.list()).toHaveLength(1);
  });

  it('TRN-05 returns the key with its turn', async () => {
    expect(await lane.queue('pay', keyed())).toMatchObject({ idempotencyKey: 'key' });
    expect(await lane.queue('chat')).not.toHaveProperty('idempotencyKey');
  });

  it('TRN-05 rejects the same key with another body, and stores nothing', async () => {
    const { id } = await lane.queue('pay 10', keyed({ hash: 'ten' }));

    const refused = lane.accept('pay 20', keyed({ hash: 'twenty' }));

    await expect(refused).rejects.toBeInstanceOf(IdempotencyConflictError);
    await expect(refused).rejects.toMatchObject({ sessionId: lane.sessionId, turnId: id });
    expect(await lane.statuses()).toEqual(['pay 10: queued']);
  });

  it('TRN-05 returns one turn to many concurrent calls', async () => {
    const accepted = await Promise.all(Array.from({ length: 10 }, () => lane.accept('pay', keyed())));

    expect(new Set(accepted.map(({ turn }) => turn.id)).size).toBe(1);
    expect(accepted.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect(await lane.list()).toHaveLength(1);
  });

  it('TRN-05 scopes a key to its session', async () => {
    const other = await TestLane.open(context);
    const here = await lane.queue('pay', keyed());
    const there = await other.accept('pay', keyed({ hash: 'another' }));

    expect(there.duplicate).toBe(false);
    expect(there.turn.id).not.toBe(here.id);
  });

  it('TRN-05 checks the key before policy and limits', async () => {
    await lane.run('holder');
    const { id } = await lane.queue('pay', keyed());

    for (const whenBusy of ['reject', 'interrupt', 'rollback', 'latest', 'replace'] as const) {
      expect(await lane.accept('pay', { ...keyed(), whenBusy })).toMatchObject({ turn: { id, status: 'queued' } });
    }
    expect(await lane.accept('pay', { ...keyed(), maxQueued: 1 })).toMatchObject({ turn: { id } });
    expect(await lane.statuses()).toEqual(['holder: running', 'pay: queued']);
    expect((await lane.list())[0]).not.toHaveProperty('cancelMode');
  });

  it('TRN-05 checks the key before the state of the session', async () => {
    const { id } = await lane.queue('pay', keyed());
    await context.sessions.expire(lane.sessionId);

    expect(await lane.accept('pay', keyed())).toMatchObject({ turn: { id, status: 'cancelled' }, duplicate: true });
  });

  it('TRN-05 forgets a key some time after its turn settled', async () => {
    const first = await lane.queue('pay', keyed({ ttlMs: SHORT_MS }));
    await lane.elapse(SHORT_MS);
    expect(await lane.accept('pay', keyed({ ttlMs: SHORT_MS }))).toMatchObject({ turn: { id: first.id } });

    await lane.settle((await lane.take()).hold);
    expect(await lane.accept('pay', keyed())).toMatchObject({ turn: { id: first.id }, duplicate: true });
    await lane.elapse(SHORT_MS);
    const second = await lane.accept('pay', keyed({ ttlMs: SHORT_MS, hash: 'another' }));

    expect(second).toMatchObject({ duplicate: false, turn: { position: 2, status: 'queued' } });
    expect(await lane.get(first.id)).toMatchObject({ status: 'awaiting-input' });
    // The key now belongs to the second turn.
    const again = await lane.accept('pay', keyed({ hash: 'another' }));
    expect(again).toMatchObject({ duplicate: true, turn: { id: second.turn.id } });
  });
}

function keyed({ hash = 'hash', ttlMs = LONG_MS } = {}): Pick<AcceptTurn, 'idempotency'> {
  return { idempotency: { key: 'key', hash, ttlMs } };
}
