import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import {
  type AtomicSessionStoreAdapter,
  type ClaimedTurn,
  encodeCursor,
  type TurnSettlement,
} from 'nestjs-agent-sessions/adapter';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { PrivateRedis } from '../support/private-redis.js';
import { type Command, RedisMonitor } from '../support/redis-monitor.js';
import { describeRedis } from '../support/servers.js';

const MANY = 20_000;
/** Number of users. Each has one session in every state, and a second active one. */
const USERS = MANY / 5;
/** Number of turns, checkpoints and messages of one session. */
const DEEP = 1000;
/** Number of documents of one namespace. */
const DOCUMENTS = MANY / 20;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = Date.now();
const STATES = ['created', 'active', 'suspended', 'expired', 'active'] as const;
const NAME = { namespace: 'n', scope: 'c', key: 'k' };
/** The number of documents: one per turn of a deep session. */
const SHELF = { namespace: 'm', sessionId: 'shelf' };
const APPEND = { id: 'a', entries: [1], ttlMs: HOUR };
const RULES = { policy: 'move', maxSurfaces: 16 } as const;

/** A description, the maximum number of touched items, and the operation. */
type Operations = [string, number, () => Promise<unknown>][];

/**
 * Costs of scripts among twenty thousand sessions: each command, and each field and member that it reads. Times
 * and bytes follow from that.
 */
describeRedis('costs of operations in Redis', () => {
  let redis: PrivateRedis;
  let client: Redis;
  let monitor: RedisMonitor;
  let store: SessionsAdapter;
  let sessions: AtomicSessionStoreAdapter;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    redis = await PrivateRedis.start();
    client = new Redis(redis.url, { enableAutoPipelining: true });
    store = redisAdapter({ client });
    sessions = store.sessions as AtomicSessionStoreAdapter;
    await store.init?.();
    await fill();
    monitor = await RedisMonitor.start(redis);
  }, 120_000);

  afterAll(async () => {
    monitor.stop();
    await store.close?.();
    client.disconnect();
    await redis.stop();
  });

  it.each<Operations[number]>([
    ['a session', 14, () => sessions.fetchById('p-7')],
    ['the sessions of a user', 75, () => sessions.fetchMany({ userId: 'user-7' })],
    ['sessions of a user in states', 60, () => sessions.fetchMany({ userId: 'user-7', state: ['active', 'created'] })],
    ['the number of sessions of a user', 2, () => sessions.count({ userId: 'user-7' })],
    ['the number of sessions in a state', 2, () => sessions.count({ state: 'active' })],
    ['sessions with a surface', 18, () => sessions.fetchMany({ surfaceId: 'phone-7' })],
    ['sessions of a user with a surface', 80, () => sessions.fetchMany({ userId: 'user-7', surfaceId: 'app' })],
    ['the latest sessions in a state', 720, () => sessions.fetchMany({ state: 'active' })],
    ['a later page of them', 1500, async () => sessions.fetchMany({ state: 'active', cursor: await laterPage() })],
    ['a turn', 16, () => store.turns.get('turn-20')],
    ['a lane', 22, () => store.turns.lane('p-20')],
    ['a page of lanes', 220, () => store.turns.lanes({ after: 'p-1', limit: 10 })],
    ['the turns of a session', 20, () => store.turns.list({ sessionId: 'p-20' })],
    ['the latest checkpoint', 4, () => store.checkpoints.load('desk', 'deep')],
    ['a window of messages', 14, () => store.conversations.window('deep', 10)],
    ['a document', 10, () => store.state.get({ ...NAME, sessionId: 'p-20' })],
    ['a page of documents', 62, () => store.state.list({ ...SHELF, limit: 5 })],
    ['a later page of them', 62, () => store.state.list({ ...SHELF, after: { scope: 'c', key: 'k500' }, limit: 5 })],
    ['the number of documents of a scope', 6, () => store.state.count({ ...SHELF, scope: 'single' })],
    ['sessions with messages', 12, () => store.conversations.sessions('p-1', 10)],
    ['sessions with checkpoints', 102, () => store.checkpoints.list('desk', { prefix: 'p-1' })],
  ])('PRF-09 finds by index %s', expectFew);

  it.each<Operations[number]>([
    ['create', 10, () => sessions.create(draft({}), RULES)],
    ['create that takes a surface', 75, () => sessions.create(draft({ id: 'b', attachedSurfaces: ['app'] }), RULES)],
    ['createOrAdopt', 12, () => sessions.createOrAdopt(draft({ id: 'c', userId: 'user-900' }), RULES, HOUR)],
    ['touch', 20, () => sessions.touch('p-4008')],
    ['attachSurface', 35, () => sessions.attachSurface('p-4007', 'phone-7', RULES)],
    ['expire', 22, () => sessions.expire('p-4009')],
    ['revoke', 23, () => sessions.revoke('p-4012')],
    ['delete', 20, () => sessions.delete('p-4010')],
    ['erase', 20, () => sessions.erase('p-4011')],
    ['suspendStale of ten', 170, () => sessions.suspendStale(HOUR, 10)],
    ['expireStale of ten', 220, () => sessions.expireStale({ idleMs: HOUR, maxMs: HOUR }, 10)],
    ['purgeExpired of ten', 165, () => sessions.purgeExpired(HOUR, 10)],
    ['purgeSettled of ten', 80, () => store.turns.purgeSettled(0, 10)],
    ['due', 85, () => store.turns.due(10)],
    ['appending to a document', 16, () => store.state.append({ ...NAME, sessionId: 'p-40' }, APPEND)],
    ['a read that is an access', 16, () => store.state.get({ ...NAME, sessionId: 'p-60' }, { ttlMs: HOUR })],
    ['a reset', 16, () => store.state.reset({ sessionId: 'p-80', namespaces: ['n'], epoch: 'e' })],
    ['evictIdle with little to keep', 65, () => store.state.evictIdle('n', 10, 10)],
    ['evictIdle with much to keep', 12, () => store.state.evictIdle('n', DOCUMENTS - 11, 10)],
    ['evictIdle with nothing to do', 2, () => store.state.evictIdle('n', DOCUMENTS, 10)],
  ])('PRF-07 does not cost more because of other sessions: %s', expectFew);

  it('PRF-06 turn 1,000 of a session costs as much as turn 10', async () => {
    const early = await turnOf('p-4021', 10);
    const late = await turnOf('deep', DEEP);

    expect(early).toBeGreaterThan(100);
    expect(late).toBeLessThanOrEqual(early * 1.02);
  });

  it('STA-23 the cost of a reset is proportional to the cleared data, beyond the limit of one command', async () => {
    const many = 12_000;
    await shelve('many', many);
    const reset = (): Promise<unknown> => store.state.reset({ sessionId: 'many', namespaces: ['n', 'm'], epoch: 'e' });

    // Per document: a read of two fields, and a removal. Also lists of names.
    expect(await costOf(reset)).toBeLessThan(4.1 * many);
    expect(await costOf(reset)).toBeLessThan(10);
  });

  it('TRN-08 an accept costs the same for the first and the last of a thousand turns', async () => {
    const accept = (): Promise<unknown> =>
      store.turns.accept(turnRequest(randomUUID(), { sessionId: 'p-4030', maxQueued: 2000 }));
    const first = await costOf(accept);
    await Promise.all(Array.from({ length: DEEP }, accept));

    // The lane and its head exist now.
    expect(await costOf(accept)).toBeLessThan(first + 50);
  });

  async function expectFew(_: string, most: number, operation: () => Promise<unknown>): Promise<void> {
    const cost = await costOf(operation);
    expect(cost).toBeGreaterThan(0);
    expect(cost).toBeLessThanOrEqual(most);
  }

  /** Accepts, claims and settles a turn, with a checkpoint, two messages and a window of twenty. */
  async function turnOf(sessionId: string, turnIndex: number): Promise<number> {
    const first = turnIndex === 10 ? 0 : turnIndex;
    for (let index = first; index < turnIndex; index += 1) await runTurn(sessionId, index);
    return costOf(() => runTurn(sessionId, turnIndex));
  }

  async function runTurn(sessionId: string, turnIndex: number): Promise<void> {
    await store.turns.accept(turnRequest(randomUUID(), { sessionId }));
    const request = claimRequest(randomUUID(), { windows: { desk: 20 } });
    const { hold } = (await store.turns.claim(sessionId, request)) as ClaimedTurn;
    await store.turns.settle(hold, settlement(sessionId, turnIndex), request);
  }

  async function costOf(operation: () => Promise<unknown>): Promise<number> {
    const { byScripts } = await monitor.during(operation);
    let cost = 0;
    for (const command of byScripts) cost += await countOf(command);
    return cost;
  }

  /** Repeats the reads, because the monitor does not see answers. */
  async function countOf([name, ...args]: Command): Promise<number> {
    if (!READS.has(name)) return 1;
    const answer = (await redis.client.call(name, ...args)) as object;
    return 1 + Object.keys(answer).length;
  }

  async function laterPage(): Promise<string> {
    const active = await sessions.fetchMany({ state: 'active', limit: 50 });
    return encodeCursor(active[active.length - 1]);
  }

  async function fill(): Promise<void> {
    const numbers = Array.from({ length: MANY }, (_, n) => n);
    for (let from = 0; from < MANY; from += 1000) await Promise.all(numbers.slice(from, from + 1000).map(addSession));
    for (const id of ['deep', 'p-4021']) await sessions.touch(id === 'deep' ? await addDeep() : id);
    for (let index = 0; index < DEEP; index += 1) await runTurn('deep', index);
    await shelve(SHELF.sessionId, DEEP);
    await store.state.set({ ...SHELF, scope: 'single', key: 'k' }, 1);
  }

  async function shelve(sessionId: string, count: number): Promise<void> {
    for (let from = 0; from < count; from += 1000) {
      const keys = Array.from({ length: Math.min(1000, count - from) }, (_, n) => `k${from + n}`);
      await Promise.all(keys.map((key) => store.state.set({ ...SHELF, sessionId, scope: 'c', key }, 1)));
    }
  }

  async function addDeep(): Promise<string> {
    await sessions.create(draft({ id: 'deep', userId: 'deep' }), RULES);
    return 'deep';
  }

  /** Higher numbers are older. */
  async function addSession(n: number): Promise<void> {
    const sessionId = `p-${n}`;
    const at = new Date(START - n * MINUTE).toISOString();
    await sessions.insert({
      id: sessionId,
      userId: `user-${n % USERS}`,
      workspaceId: 'space',
      state: STATES[Math.floor(n / USERS)],
      createdAt: at,
      lastActivityAt: at,
      stateChangedAt: at,
      attachedSurfaces: ['app', `phone-${n}`],
      metadata: { n },
      version: 1,
    });
    if (n % 20 !== 0) return;
    await store.checkpoints.append({ ...CHECKPOINT, sessionId, turnIndex: 0 }, 'all');
    await store.conversations.append(sessionId, [{ id: 'm', role: 'user', content: 'hi' }]);
    await store.state.set({ ...NAME, sessionId }, 1, { ttlMs: HOUR });
    await store.turns.accept(turnRequest(`turn-${n}`, { sessionId, foreignSession: true }));
    if (n % 40 === 0) await store.turns.cancel(`turn-${n}`, 'cancel');
  }

  function draft(changes: object) {
    return { id: 'new', userId: 'user-7', workspaceId: 'space', attachedSurfaces: [], metadata: {}, ...changes };
  }

  function settlement(sessionId: string, turnIndex: number): TurnSettlement {
    return {
      status: 'awaiting-input',
      messages: ['user', 'assistant'].map((role) => ({ id: randomUUID(), role: role as 'user', content: 'hi' })),
      checkpoint: { ...CHECKPOINT, sessionId, turnIndex },
      keepCheckpoints: 10,
    };
  }
});

const READS: ReadonlySet<string> = new Set(['hgetall', 'hmget', 'smembers', 'lrange', 'zrange']);

const CHECKPOINT = {
  orchestrator: 'desk',
  state: {},
  lastRoute: [],
  signature: 'signature',
  version: '1',
  summarizedThrough: 0,
};
