import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { SessionNotFoundError, type SessionsAdapter, StoreUnavailableError } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter, type ClaimedTurn, type TurnSettlement } from 'nestjs-agent-sessions/adapter';
import { eventually } from '../support/eventually.js';
import { openWithTurn, succeeds, unavailable } from '../support/faults.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { PrivateRedis } from '../support/private-redis.js';
import { describeRedis } from '../support/servers.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always'];
const SETTLEMENT: TurnSettlement = { status: 'completed', messages: [], keepCheckpoints: 'all' };

describeRedis('a Redis server that fails', () => {
  let redis: PrivateRedis;
  let store: SessionsAdapter;

  beforeEach(() => {
    Logger.overrideLogger(false);
  });

  afterEach(async () => {
    await store?.close?.();
    await redis.stop();
  });

  // With everysec, a slow disk can delay a write for two seconds.
  it.each(['always', 'no'])('NST-05 recovers every turn after SIGKILL, with appendfsync %s', async (appendfsync) => {
    await openOn('--appendonly', 'yes', '--appendfsync', appendfsync);
    const { hold } = await runningTurn();
    const accepted: string[] = [];
    const flood = Promise.all(
      Array.from({ length: 200 }, async () => {
        const { turn } = await store.turns.accept(turnRequest(randomUUID(), { maxQueued: 1000 }));
        accepted.push(turn.id);
      }),
    ).catch(() => {});
    await eventually(() => accepted.length > 20);
    await redis.kill();
    await flood;
    await expect(store.turns.get(hold.turnId)).rejects.toThrow(StoreUnavailableError);

    await redis.startAgain();
    await succeeds(() => store.ping());
    const kept = (await store.turns.list({ sessionId: 's', limit: 1000 })).map(({ id }) => id);
    expect(kept).toEqual(expect.arrayContaining(accepted));
    expect((await store.turns.settle(hold, SETTLEMENT, claimRequest('b'))).next).toMatchObject({
      turn: { position: 2 },
    });
  });

  it('NST-05 reports a missing session after a restart without data, and starts again', async () => {
    await openOn();
    const { hold } = await runningTurn();
    await redis.kill();
    await redis.startAgain();
    await succeeds(() => store.ping());

    expect(await store.sessions.fetchById('s')).toBeNull();
    await expect(store.turns.accept(turnRequest('other'))).rejects.toThrow(SessionNotFoundError);
    await expect(store.turns.settle(hold, SETTLEMENT)).rejects.toMatchObject({ code: 'TURN_FENCED' });

    const { hold: anew } = await runningTurn();
    expect(anew.fence).toBeGreaterThan(hold.fence);
    await expect(store.turns.settle(hold, SETTLEMENT)).rejects.toMatchObject({ code: 'TURN_FENCED' });
  });

  it('TRN-03 fences a worker of the lost seconds when the server restarts from its last snapshot', async () => {
    await openOn('--save', '3600 1');
    await create();
    await store.turns.accept(turnRequest('first'));
    await redis.client.save();
    const { hold } = (await store.turns.claim('s', claimRequest('lost'))) as ClaimedTurn;
    await redis.kill();
    await redis.startAgain();
    await succeeds(() => store.ping());

    const { hold: current } = (await store.turns.claim('s', claimRequest('other'))) as ClaimedTurn;
    expect(current.turnId).toBe(hold.turnId);
    await expect(store.turns.settle(hold, SETTLEMENT)).rejects.toMatchObject({ code: 'TURN_FENCED' });
    expect(await store.turns.settle(current, SETTLEMENT)).toMatchObject({ turn: { status: 'completed' } });
  });

  it('NST-05 loads its scripts again when the server lost them', async () => {
    await openOn();
    const { hold } = await runningTurn();
    await redis.client.script('FLUSH');

    expect(await store.turns.settle(hold, SETTLEMENT)).toMatchObject({ turn: { status: 'completed' } });
    expect(await store.turns.list({ sessionId: 's' })).toHaveLength(1);
    await redis.client.config('RESETSTAT');
    await store.turns.list({ sessionId: 's' });
    expect(await redis.calls()).not.toContain('eval');
  });

  it('NST-05 with full memory: writes nothing, reads, deletes, and continues', async () => {
    await openOn();
    const { hold, turn } = await runningTurn();
    await store.conversations.append('old', [{ id: 'm', role: 'user', content: 'x'.repeat(1_000_000) }]);
    await store.state.set(ADDRESS, 'kept', { ttlMs: 60_000 });
    const before = await redis.client.dbsize();
    await redis.client.config('SET', 'maxmemory', '1');

    const sessions = store.sessions as AtomicSessionStoreAdapter;
    const refused: Record<string, () => Promise<unknown>> = {
      create: () => sessions.create(draft('more'), RULES),
      accept: () => store.turns.accept(turnRequest('second')),
      claim: () => store.turns.claim('s', claimRequest('b')),
      settle: () => store.turns.settle(hold, SETTLEMENT),
      append: () => store.conversations.append('s', [{ id: 'n', role: 'user', content: '' }]),
      set: () => store.state.set(ADDRESS, 1),
      appendDocument: () => store.state.append(ADDRESS, { id: 'a', entries: [1] }),
    };
    for (const call of Object.values(refused)) {
      await expect(call()).rejects.toThrow(/failed: OOM/);
      await expect(call()).rejects.toMatchObject(unavailable(false));
    }
    expect(await redis.client.dbsize()).toBe(before);

    expect(await store.turns.get(turn.id)).toMatchObject({ status: 'running' });
    expect(await sessions.fetchMany({ userId: 'ann' })).toHaveLength(1);
    expect(await store.conversations.window('old', 1)).toHaveLength(1);
    // Workers keep their turns, and sweeps still work.
    expect(await store.turns.renew(hold, 600_000)).toEqual({});
    const lease = await store.leases.acquire('sweep', 'me', 60_000);
    expect(lease && (await store.leases.renew(lease, 60_000))).toBe(true);
    expect(await sessions.suspendStale(60_000, 10)).toEqual([]);
    expect(await sessions.expireStale({ idleMs: 60_000 }, 10)).toEqual([]);
    expect(await sessions.purgeExpired(60_000, 10)).toEqual([]);
    expect(await store.turns.purgeSettled(60_000, 10)).toBe(0);
    expect(await store.state.deleteExpired(10)).toBe(0);
    expect(await store.state.get(ADDRESS, { ttlMs: 600_000 })).toMatchObject({ value: 'kept' });
    expect(await store.state.evictIdle('n', 0, 10)).toBe(1);
    expect(await store.checkpoints.prune('desk', 's', 1)).toBe(0);
    await sessions.erase('old');
    expect(await store.conversations.window('old', 1)).toEqual([]);

    await redis.client.config('SET', 'maxmemory', '0');
    expect(await store.turns.settle(hold, SETTLEMENT)).toMatchObject({ turn: { status: 'completed' } });
    expect(await refused.accept()).toMatchObject({ turn: { position: 2 }, duplicate: false });
  });

  it('NST-05 rejects writes while the server is a replica, and continues when it is the primary again', async () => {
    await openOn();
    const { hold } = await runningTurn();
    // A replica of an address without a server, so that its data remains.
    await redis.client.call('REPLICAOF', '127.0.0.1', '1');

    await expect(store.turns.settle(hold, SETTLEMENT)).rejects.toThrow(/READONLY/);
    await succeeds(() => store.ping());
    await expect(store.turns.accept(turnRequest('second'))).rejects.toMatchObject(unavailable(false));
    await redis.client.call('REPLICAOF', 'NO', 'ONE');
    await succeeds(() => store.ping());
    expect(await store.turns.settle(hold, SETTLEMENT)).toMatchObject({ turn: { status: 'completed' } });
  });

  it('NST-05 reconnects after READONLY, to the current primary', async () => {
    const successor = await PrivateRedis.start();
    redis = await PrivateRedis.start('--repl-diskless-sync-delay', '0');
    const name = await TcpProxy.start(redis.url);
    store = redis.store({ url: name.url });
    await store.init?.();
    await create();
    await successor.client.call('REPLICAOF', '127.0.0.1', String(redis.port));
    await eventually(async () => (await successor.client.dbsize()) > 0);

    await successor.client.call('REPLICAOF', 'NO', 'ONE');
    await redis.client.call('REPLICAOF', '127.0.0.1', String(successor.port));
    name.leadTo(successor.url);
    await expect(store.turns.accept(turnRequest('first'))).rejects.toThrow(/READONLY/);
    await succeeds(() => store.turns.accept(turnRequest('first')));

    expect(await successor.client.exists('{agent-sessions}:turn:first')).toBe(1);
    await store.close?.();
    await name.stop();
    await successor.stop();
  });

  it('NST-05 fails while a foreign script blocks the server, and continues when it is killed', async () => {
    await openOn('--busy-reply-threshold', '50');
    const { hold } = await runningTurn();
    const other = redis.client.duplicate();
    const endless = other.eval('while true do end', 0).catch((error: Error) => error.message);
    await succeeds(() => expect(redis.client.ping()).rejects.toThrow('BUSY'));

    await expect(store.turns.settle(hold, SETTLEMENT)).rejects.toThrow(/failed: BUSY/);
    await expect(store.turns.settle(hold, SETTLEMENT)).rejects.toMatchObject(unavailable(false));
    await expect(store.turns.get(hold.turnId)).rejects.toThrow(StoreUnavailableError);
    await redis.client.script('KILL');
    expect(await endless).toMatch(/killed/);
    expect(await store.turns.settle(hold, SETTLEMENT)).toMatchObject({ turn: { status: 'completed' } });
    other.disconnect();
  });

  it('NST-05 waits for a server that loads its data, within the operation time-out', async () => {
    redis = await PrivateRedis.start('--save', '3600 1');
    store = redis.store({ operationTimeoutMs: 300 });
    await openWithTurn(store, 's');
    await redis.client.eval(`for i = 1, 20000 do redis.call('SET', 'k' .. i, 'x') end`, 0);
    await redis.client.save();
    await redis.kill();
    // Microseconds per key.
    await redis.startAgain('--key-load-delay', '500', '--loading-process-events-interval-bytes', '1024');

    await expect(redis.store({ operationTimeoutMs: 300 }).init?.()).rejects.toMatchObject(unavailable(false));
    await expect(store.turns.list({ sessionId: 's' })).rejects.toMatchObject(unavailable(false));
    const other = redis.client.duplicate({ enableReadyCheck: false });
    await other.config('SET', 'key-load-delay', '0');
    other.disconnect();
    await succeeds(async () => expect(await store.turns.list({ sessionId: 's' })).toHaveLength(1));
  });

  it('NST-05 reports a foreign key of another type under a key of the store', async () => {
    await openOn();
    await create();
    await redis.client.set('{agent-sessions}:lane:s', 'not ours');

    const call = store.turns.accept(turnRequest('first'));
    await expect(call).rejects.toThrow(StoreUnavailableError);
    await expect(call).rejects.toThrow(/WRONGTYPE/);
    expect(await store.turns.get('first')).toBeNull();
  });

  it('TRN-10 receives notifications again when the server is back', async () => {
    await openOn(...DURABLE);
    const { turn } = await runningTurn();
    await redis.kill();
    await redis.startAgain();
    const heard: string[] = [];
    store.changes.subscribe((id) => heard.push(id));

    await succeeds(async () => {
      await store.turns.cancel(turn.id, 'cancel');
      expect(heard).toContain(turn.id);
    });
  });

  async function openOn(...settings: string[]): Promise<void> {
    redis = await PrivateRedis.start(...settings);
    store = redis.store();
    await store.init?.();
  }

  async function create(): Promise<void> {
    await (store.sessions as AtomicSessionStoreAdapter).create(draft('s'), RULES);
  }

  /** Returns the statuses of the turns of session `s`. */
  async function runningTurn(): Promise<ClaimedTurn> {
    await create();
    await store.turns.accept(turnRequest('first'));
    return (await store.turns.claim('s', claimRequest('a'))) as ClaimedTurn;
  }
});

const ADDRESS = { namespace: 'n', scope: '', sessionId: 's', key: 'k' };
const RULES = { policy: 'share', maxSurfaces: 1 } as const;

function draft(id: string) {
  return { id, userId: 'ann', attachedSurfaces: [], metadata: {} };
}
