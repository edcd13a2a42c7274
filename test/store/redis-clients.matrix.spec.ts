import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { redisAdapter, type RedisClient } from 'nestjs-agent-sessions/redis';
import { eventually } from '../support/eventually.js';
import { openWithTurn, succeeds, unavailable } from '../support/faults.js';
import { turnRequest } from '../support/ledger-requests.js';
import { PrivateRedis } from '../support/private-redis.js';
import { describeRedis } from '../support/servers.js';
import { steadyClock } from '../support/steady-clock.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { useEverything } from '../support/use-everything.js';

const BOUND_MS = 400;
/** Milliseconds long enough for a busy machine, but limited. */
const SOON_MS = 10 * BOUND_MS;

describeRedis("the application's client of Redis", () => {
  let redis: PrivateRedis;
  let client: RedisClient;
  let store: SessionsAdapter;

  beforeEach(async () => {
    Logger.overrideLogger(false);
    redis = await PrivateRedis.start();
  });

  afterEach(async () => {
    await store.close?.();
    client.disconnect();
    await redis.stop();
  });

  it.each<[string, object, string]>([
    ['with default options', {}, '{agent-sessions}:'],
    ['that connects on its first command', { lazyConnect: true }, '{agent-sessions}:'],
    ["with unlimited retries, like BullMQ's", { maxRetriesPerRequest: null }, '{agent-sessions}:'],
    ['without an offline queue', { enableOfflineQueue: false, lazyConnect: true }, '{agent-sessions}:'],
    ['with its own prefix', { keyPrefix: 'shop:' }, 'shop:{agent-sessions}:'],
    ['with automatic pipelines', { enableAutoPipelining: true }, '{agent-sessions}:'],
  ])('NST-05 %s supports all operations, and stays open', async (_, options, base) => {
    client = new Redis(redis.url, options);
    if (options && 'enableOfflineQueue' in options) await client.connect();
    store = redisAdapter({ client });
    await store.init?.();
    await hearsOfOthers(store, redisAdapter({ client }));
    const names = await redis.client.keys('*');
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter((name) => !name.startsWith(base))).toEqual([]);
    await store.close?.();
    expect(await client.ping()).toBe('PONG');
    await eventually(async () => ((await redis.client.client('LIST')) as string).trim().split('\n').length === 2);
  });

  it('NST-05 uses only its database', async () => {
    client = new Redis(redis.url, { db: 1 });
    store = redisAdapter({ client });
    await openWithTurn(store, 's');
    expect(await redis.client.dbsize()).toBe(0);
    expect(await client.dbsize()).toBeGreaterThan(0);
  });

  it('NST-05 of a cluster supports all operations, also pipelined with other commands', async () => {
    await redis.stop();
    redis = await PrivateRedis.startCluster();
    client = new Cluster([redis.url], { enableAutoPipelining: true });
    store = redisAdapter({ client });
    await store.init?.();
    const [, own] = await Promise.all([hearsOfOthers(store, redisAdapter({ client })), client.set('own', 'value')]);

    expect(own).toBe('OK');
    await store.close?.();
    expect(await client.get('own')).toBe('value');
  });

  it('NST-05 with unlimited retries is limited by the operation time-out, at the start and later', async () => {
    const proxy = await TcpProxy.start(redis.url);
    client = new Redis(proxy.url, { maxRetriesPerRequest: null });
    client.on('error', () => {});
    store = redisAdapter({ client, operationTimeoutMs: BOUND_MS });
    proxy.holdAnswers();
    await soon(expect(store.init?.()).rejects.toMatchObject(unavailable(false)));
    proxy.restore();
    const { turn } = await openWithTurn(store, 's');

    proxy.holdAnswers();
    await soon(expect(store.turns.accept(turnRequest('second'))).rejects.toMatchObject(unavailable(true)));
    await soon(expect(store.turns.get(turn.id)).rejects.toMatchObject(unavailable(false)));
    proxy.restore();
    const again = await succeeds(() => store.turns.accept(turnRequest('second')));
    expect(again).toMatchObject({ duplicate: true });

    proxy.cut();
    await soon(expect(store.ping()).rejects.toMatchObject(unavailable(false)));
    await soon(expect(store.turns.accept(turnRequest('third'))).rejects.toMatchObject(unavailable(false)));
    proxy.restore();
    await succeeds(() => store.turns.accept(turnRequest('third')));
    await proxy.stop();
  });
});

describeRedis('a client of the store on a silent Redis', () => {
  let proxy: TcpProxy;
  let store: SessionsAdapter;
  let sessionId: string;

  beforeEach(async () => {
    Logger.overrideLogger(false);
    sessionId = randomUUID();
    proxy = await TcpProxy.start(process.env.TEST_REDIS_URL ?? '');
    store = redisAdapter({ url: proxy.url, operationTimeoutMs: BOUND_MS });
  });

  afterEach(async () => {
    proxy.restore();
    await store.close?.();
    await proxy.stop();
  });

  it.each([
    ['from the beginning', undefined],
    ['at CONFIG', /config/i],
    ['at SCRIPT', /script/i],
    ['at SUBSCRIBE', /subscribe/i],
  ])('NST-05 fails the start in time when the server becomes silent %s', async (_, from) => {
    proxy.holdAnswers(from);
    await soon(expect(store.init?.()).rejects.toMatchObject(unavailable(false)));

    proxy.restore();
    // A busy machine may need more than one attempt.
    await succeeds(async () => store.init?.());
  });

  it('NST-05 fails commands without an answer in time, and reconnects', async () => {
    const { turn } = await openWithTurn(store, sessionId);
    const [silent] = proxy.connections();
    proxy.freeze();
    const accept = (): Promise<unknown> => store.turns.accept(turnRequest('second', { sessionId }));
    await soon(expect(accept()).rejects.toMatchObject(unavailable(true)));

    await succeeds(accept, SOON_MS);
    expect(await succeeds(() => store.turns.get(turn.id))).toMatchObject({ status: 'running' });
    await eventually(() => silent.destroyed);
  });

  it('STA-03 does not repeat an append when the connection breaks before the answer', async () => {
    await openWithTurn(store, sessionId);
    const control = redisAdapter({ url: process.env.TEST_REDIS_URL ?? '' });
    await control.init?.();
    proxy.swallowAnswers();
    const lost = store.conversations.append(sessionId, [{ id: 'm', role: 'user', content: 'hi' }]);
    void lost.catch(() => {});
    await eventually(async () => (await control.conversations.page(sessionId)).length === 1);
    proxy.cut();
    proxy.restore();

    await expect(lost).rejects.toMatchObject(unavailable(true));
    expect(await succeeds(() => store.conversations.page(sessionId))).toHaveLength(1);
    await control.close?.();
  });

  it('TRN-10 receives notifications again after its connections became silent without breaking', async () => {
    const { turn } = await openWithTurn(store, sessionId);
    const other = redisAdapter({ url: process.env.TEST_REDIS_URL ?? '' });
    await other.init?.();
    const heard: string[] = [];
    store.changes.subscribe((turnId) => heard.push(turnId));
    proxy.freeze();

    await succeeds(async () => {
      await other.turns.cancel(turn.id, 'cancel');
      expect(heard).toContain(turn.id);
    });
    await other.close?.();
  });

  it('NST-05 closes while it is about to listen again', async () => {
    await openWithTurn(store, sessionId);
    const { withheld } = proxy;
    proxy.cut();
    proxy.restore();
    proxy.swallowAnswers(/subscribe/i);
    await eventually(() => proxy.withheld > withheld);
    // An unhandled rejection would fail this test.
    await store.close?.();
    await eventually(() => proxy.connections().length === 0);
  });

  it('NST-05 closes in time', async () => {
    await openWithTurn(store, sessionId);
    proxy.holdAnswers();
    const lost = store.ping();
    void lost.catch(() => {});
    await soon(store.close?.());
    await expect(lost).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });
});

/** Runs every operation on another store, and checks that the first one is notified. */
async function hearsOfOthers(store: SessionsAdapter, other: SessionsAdapter): Promise<void> {
  const heard: string[] = [];
  store.changes.subscribe((turnId) => heard.push(turnId));
  await other.init?.();
  await useEverything(other);
  await eventually(() => heard.includes('keyed'));
  await other.close?.();
}

async function soon(work: Promise<unknown> | undefined): Promise<void> {
  const startedAt = steadyClock.now();
  await work;
  expect(steadyClock.now() - startedAt).toBeLessThan(SOON_MS);
}
