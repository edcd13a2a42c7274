import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { type SessionsAdapter, type SessionState } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter, type ClaimedTurn } from 'nestjs-agent-sessions/adapter';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { clockGoesOn, eventually } from '../support/eventually.js';
import { PrivateRedis } from '../support/private-redis.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { RedisMonitor } from '../support/redis-monitor.js';
import { describeRedis } from '../support/servers.js';
import { useEverything } from '../support/use-everything.js';

const NAME = { namespace: 'n', scope: 'c', key: 'k' };
const RULES = { policy: 'share', maxSurfaces: 16 } as const;
const SETTLEMENT = { status: 'awaiting-input', messages: [], keepCheckpoints: 'all' } as const;

describeRedis('requests of the Redis store', () => {
  let redis: PrivateRedis;
  let monitor: RedisMonitor;
  let store: SessionsAdapter;
  let sessions: AtomicSessionStoreAdapter;

  beforeEach(async () => {
    Logger.overrideLogger(false);
    redis = await PrivateRedis.start();
    store = redis.store();
    sessions = store.sessions as AtomicSessionStoreAdapter;
    await store.init?.();
    monitor = await RedisMonitor.start(redis);
  });

  afterEach(async () => {
    monitor.stop();
    await store.close?.();
    await redis.stop();
  });

  it('PRF-05 every operation is one call of a loaded script', async () => {
    const calls: string[] = [];
    const { byClients } = await monitor.during(() => useEverything(recordingAdapter(store, calls)));

    expect(calls.length).toBeGreaterThan(50);
    // Redis expires these itself.
    const sent = calls.filter((call) => call !== 'events.deleteExpired');
    expect(byClients.map(([command]) => command)).toEqual(sent.map(() => 'evalsha'));
    expect(new Set(byClients.map(([, , keys, key]) => `${keys} ${key}`))).toEqual(new Set(['1 {agent-sessions}:']));
  });

  it('PRF-05 accept, claim with all its data, and settle with the next turn take one each', async () => {
    await create('s');
    const { byClients } = await monitor.during(async () => {
      await store.turns.accept(turnRequest('first'));
      await store.turns.accept(turnRequest('second'));
      const needs = { windows: { desk: 10 }, documents: { desk: [NAME] } };
      const claimed = await store.turns.claim('s', claimRequest('a', needs));
      const settled = await store.turns.settle(
        (claimed as ClaimedTurn).hold,
        {
          status: 'awaiting-input',
          messages: [{ id: randomUUID(), role: 'assistant', content: 'hi' }],
          checkpoint: CHECKPOINT,
          keepCheckpoints: 10,
          stateChanges: [{ name: NAME, append: { id: 'a', entries: ['late'], initial: 'early' } }],
        },
        claimRequest('b', needs),
      );
      expect(settled.next).toMatchObject({
        turn: { id: 'second' },
        session: { id: 's' },
        checkpoint: { turnIndex: 0 },
        history: [{ content: 'hi' }],
        documents: [{ value: 'early', batches: [{ entries: ['late'] }] }],
      });
    });

    expect(byClients).toHaveLength(4);
  });

  it.each([
    ['changed', (since: string) => sessions.mergeMetadata('s', { since }, 1000)],
    ['written past its version', (since: string) => sessions.update('s', { metadata: { since } })],
  ])('SES-15 a settle returns the current session, also if it was %s while the turn ran', async (_, change) => {
    await create('s');
    const ids = ['first', 'second', 'third', 'fourth'];
    for (const id of ids) await store.turns.accept(turnRequest(id));
    let claimed = await store.turns.claim('s', claimRequest('first'));
    for (const id of ids.slice(1)) {
      if (id !== 'second') await change(id);
      const settled = await store.turns.settle((claimed as ClaimedTurn).hold, SETTLEMENT, claimRequest(id));

      expect(settled.sessionChange?.session).toEqual(await sessions.fetchById('s'));
      expect(settled.next?.session).toEqual(settled.sessionChange?.session);
      claimed = settled.next;
    }
    expect(claimed?.session?.metadata).toMatchObject({ since: 'fourth' });
  });

  it('PRF-05 a settle does not read known data of its turn and session again', async () => {
    await create('s');
    for (const id of ['first', 'second', 'third']) await store.turns.accept(turnRequest(id));
    const first = (await store.turns.claim('s', claimRequest('first'))) as ClaimedTurn;
    const second = (await store.turns.settle(first.hold, SETTLEMENT, claimRequest('second'))).next as ClaimedTurn;
    // Activity in the same millisecond changes nothing.
    await clockGoesOn();
    const { byScripts } = await monitor.during(async () => {
      const settled = await store.turns.settle(second.hold, SETTLEMENT, claimRequest('third'));
      expect(settled.sessionChange).toMatchObject({ previousState: 'active', changed: true });
      expect(settled.sessionChange?.session).toEqual(await sessions.fetchById('s'));
      expect(settled.next?.session).toEqual(settled.sessionChange?.session);
      expect(settled.turn).toEqual(await store.turns.get('second'));
    });
    const whole = byScripts.filter(([command]) => command === 'hgetall').map(([, name]) => name.split(':')[1]);

    // The script of the settle, and those of the two reads.
    expect(whole).toEqual(['lane', 'session', 'turn']);
  });

  it('PRF-09 reads the sessions of a user in pages, also if most of them have ended', async () => {
    const many = 500;
    const insert = (n: number, state: SessionState): Promise<void> => {
      const at = new Date(Date.now() - n * 60_000).toISOString();
      const times = { createdAt: at, lastActivityAt: at, stateChangedAt: at };
      return sessions.insert({
        id: `s-${n}`,
        userId: 'ann',
        state,
        ...times,
        attachedSurfaces: [],
        metadata: {},
        version: 1,
      });
    };
    await Promise.all(Array.from({ length: many }, (_, n) => insert(n, 'expired')));
    await insert(many, 'suspended');
    const { byScripts } = await monitor.during(async () => {
      const found = await sessions.fetchMany({ userId: 'ann', workspaceId: null, state: 'suspended', limit: 1 });
      expect(found.map(({ id }) => id)).toEqual([`s-${many}`]);
    });

    // One member, and then a hundred at a time.
    expect(byScripts.filter(([command]) => command === 'zrange')).toHaveLength(1 + many / 100);
  });

  it('TRN-08 a continued lane is offered when its own lease ends, not when an earlier one would have ended', async () => {
    await create('s');
    for (const id of ['first', 'second']) await store.turns.accept(turnRequest(id));
    const first = (await store.turns.claim('s', claimRequest('first', { leaseMs: 100 }))) as ClaimedTurn;
    const { next } = await store.turns.settle(first.hold, SETTLEMENT, claimRequest('second', { leaseMs: 3000 }));
    const until = Date.parse((await store.turns.lane('s')).head?.leaseUntil ?? '');
    const offered: string[] = [];
    // A due query finds that the lane is running, and postpones it.
    await eventually(async () => {
      offered.push(...(await store.turns.due(10)));
      return Number(await redis.client.zscore('{agent-sessions}:due', 's')) === until;
    });
    expect(offered).toEqual([]);

    await eventually(async () => (await store.turns.due(10)).includes('s'));
    expect(Date.now()).toBeGreaterThanOrEqual(until);
    expect(next?.turn.id).toBe('second');
  });

  it('TRN-08 a continued lane with a shorter lease is offered when that lease ends', async () => {
    await create('s');
    for (const id of ['first', 'second']) await store.turns.accept(turnRequest(id));
    const first = (await store.turns.claim('s', claimRequest('first', { leaseMs: 600_000 }))) as ClaimedTurn;
    await store.turns.settle(first.hold, SETTLEMENT, claimRequest('second', { leaseMs: 100 }));

    await eventually(async () => (await store.turns.due(10)).includes('s'));
  });

  it('PRF-05 a turn without documents reads none', async () => {
    await create('s');
    await store.state.set({ ...NAME, sessionId: 's' }, 1);
    const { byScripts } = await monitor.during(async () => {
      await store.turns.accept(turnRequest('first'));
      const request = claimRequest('a', { documents: { other: [NAME] } });
      const { hold } = (await store.turns.claim('s', request)) as ClaimedTurn;
      await store.turns.settle(hold, { status: 'completed', messages: [], keepCheckpoints: 'all' }, request);
    });

    expect(byScripts.length).toBeGreaterThan(10);
    expect(byScripts.filter((command) => /document|idle|expiring/.test(command.join(' ')))).toEqual([]);
  });

  it('PRF-05 loads every script once, at the start', async () => {
    const other = redis.store();
    const { byClients } = await monitor.during(async () => {
      await other.init?.();
      await useEverything(other);
      await other.close?.();
    });
    const loaded = byClients.filter(([command]) => command === 'script').map(([, , text]) => text);

    expect(loaded.length).toBeGreaterThan(40);
    expect(new Set(loaded).size).toBe(loaded.length);
    // The eval is the check of the user's permissions.
    expect(byClients.filter(([command]) => command === 'eval')).toHaveLength(1);
  });

  it('PRF-09 never scans keys', async () => {
    const { byScripts, byClients } = await monitor.during(() => useEverything(store));

    const used = new Set([...byScripts, ...byClients].map(([command]) => command));
    expect(used).toContain('zrange');
    expect([...used].filter((command) => /^(keys|.*scan|randomkey|dbsize|sort|flush.*)$/.test(command))).toEqual([]);
  });

  it('PRF-12 an idle lane has no queue', async () => {
    await create('s');
    await store.turns.accept(turnRequest('first'));
    await store.turns.accept(turnRequest('second'));
    expect(await names()).toEqual(expect.arrayContaining(['due', 'lanes', 'queue:s']));
    await store.turns.cancel('second', 'cancel');
    expect(await names()).not.toContain('queue:s');
    const claimed = await store.turns.claim('s', claimRequest('a'));
    await store.turns.settle((claimed as ClaimedTurn).hold, {
      status: 'completed',
      messages: [],
      keepCheckpoints: 'all',
    });

    const kinds = new Set((await names()).map((name) => name.split(':')[0]));
    expect([...kinds].sort()).toEqual([
      'lane',
      'live',
      'session',
      'settled',
      'slot',
      'state',
      'surface',
      'turn',
      'turns',
      'user',
    ]);
  });

  it('SES-15 a deleted session leaves no keys, an erased one only its tombstone', async () => {
    await useEverything(store);
    // Remains of `s` would be hidden among other sessions of the same user.
    await store.sessions.delete('s');
    await store.sessions.delete('expired');

    expect(await names()).toEqual(['lease:sweep', 'tombstone:erased']);
  });

  it('SES-15 a session that is deleted during use leaves no keys', async () => {
    await create('s');
    const before = await names();
    await create('other');
    const claimed = await busy('other');
    await store.sessions.delete('other');

    expect(await names()).toEqual(before);
    await expect(
      store.turns.settle(claimed.hold, { status: 'completed', messages: [], keepCheckpoints: 'all' }),
    ).rejects.toMatchObject({ code: 'TURN_FENCED' });
    expect(await names()).toEqual(before);
  });

  it('NST-06 a purged turn leaves no keys', async () => {
    await create('s');
    await sessions.touch('s');
    const before = await names();
    await store.turns.accept(turnRequest('first', { idempotency: { key: 'k', hash: 'h', ttlMs: 1000 } }));
    const { hold } = (await store.turns.claim('s', claimRequest('a'))) as ClaimedTurn;
    const step = { kind: 'step' as const, iteration: 0, intent: 'answer', parent: '', name: 'step', key: 0 };
    await store.turns.saveStep(hold, { ...step, value: 1 });
    await store.turns.signal('first', 'early', 1);
    await store.turns.settle(hold, { status: 'completed', messages: [], keepCheckpoints: 'all' });
    await eventually(async () => (await store.turns.purgeSettled(0, 10)) === 1);

    expect(await names()).toEqual([...before, 'lane:s'].sort());
  });

  it.each([
    ['deleteExpired', 1, () => store.state.deleteExpired(10)],
    ['evictIdle', 0, () => store.state.evictIdle('n', 0, 10)],
  ] as const)(
    'ORC-12 a state document expires in Redis itself, and %s cleans its index entries',
    async (_, count, clean) => {
      const address = { ...NAME, sessionId: 's' };
      await store.state.append(address, { id: 'a', entries: [1], initial: 0, ttlMs: 30 });
      expect(await names()).toContain('idle:n');
      await eventually(async () => !(await names()).some((name) => name.startsWith('document:')));

      expect(await store.state.get(address)).toBeNull();
      expect(await clean()).toBe(count);
      expect(await names()).toEqual([]);
    },
  );

  it('ORC-12 a document that replaces an expired one is not cleaned with it', async () => {
    const address = { ...NAME, sessionId: 's' };
    await store.state.set(address, 'before', { ttlMs: 30 });
    await eventually(async () => (await store.state.get(address)) === null);
    await store.state.append(address, { id: 'a', entries: [], initial: 'after' });

    expect(await store.state.deleteExpired(10)).toBe(0);
    expect(await store.state.get(address)).toMatchObject({ value: 'after' });
  });

  it('ORC-13 evictIdle keeps the requested documents when more have expired than it cleans at once', async () => {
    const keys = ['a', 'b', 'c', 'd'];
    for (const key of keys) await store.state.set({ ...NAME, sessionId: 's', key }, key);
    // The state after Redis expired them, each read just before its expiry.
    const expired = Array.from({ length: 10_100 }, (_, n) => [Date.now() + 1000, `n\u001fc\u001fs\u001fexpired-${n}`]);
    await redis.client.zadd('{agent-sessions}:idle:n', ...expired.flat());
    await redis.client.zadd('{agent-sessions}:expiring', ...expired.flatMap(([, document]) => [1, document]));

    expect(await store.state.evictIdle('n', 2, 10)).toBe(2);
    const left = await Promise.all(keys.map((key) => store.state.get({ ...NAME, sessionId: 's', key })));
    expect(left.filter((document) => document !== null)).toHaveLength(2);
    expect(await store.state.evictIdle('n', 2, 10)).toBe(0);
    expect(await store.state.deleteExpired(1)).toBe(0);
  });

  it('STA-23 evictIdle removes live documents even if more of other namespaces have expired than it cleans at once', async () => {
    await store.state.set({ ...NAME, sessionId: 's' }, 1);
    const expired = Array.from({ length: 10_100 }, (_, n) => [1, `other\u001fc\u001fs\u001fexpired-${n}`]);
    await redis.client.zadd('{agent-sessions}:expiring', ...expired.flat());

    expect(await store.state.evictIdle('n', 0, 10)).toBe(1);
    expect(await store.state.get({ ...NAME, sessionId: 's' })).toBeNull();
    expect(await store.state.evictIdle('n', 0, 10)).toBe(0);
  });

  it('STA-23 a reset leaves no keys of the cleared data, also without a turn', async () => {
    await store.state.set({ ...NAME, sessionId: 's' }, 1, { ttlMs: 60_000 });
    await store.state.set({ ...NAME, sessionId: 's', key: 'l' }, 1);
    await store.conversations.append('s', [{ id: 'm', role: 'user', content: 'hi' }]);
    const log = { head: { ...NAME, key: 'head' }, value: 0, ifVersion: 0 };
    await store.state.reset({ sessionId: 's', namespaces: ['n', 'other'], epoch: 'e', log });

    expect(await names()).toEqual([]);
  });

  it('STA-23 an epoch is stored for running turns, and removed with the session', async () => {
    await create('s');
    await store.turns.accept(turnRequest('first'));
    await store.turns.claim('s', claimRequest('a'));
    const before = await names();
    await store.state.reset({ sessionId: 's', namespaces: ['n'], epoch: 'e' });
    expect(await names()).toEqual(before);
    await store.sessions.delete('s');

    expect(await names()).toEqual([]);
  });

  it('ORC-05 removes folded and overwritten batches', async () => {
    const address = { ...NAME, sessionId: 's' };
    const fields = () => redis.client.hlen('{agent-sessions}:document:n\u001fc\u001fs\u001fk');
    await store.state.set(address, 'value');
    const before = await fields();
    for (const id of ['a', 'b', 'c']) await store.state.append(address, { id, entries: [id] });
    expect(await fields()).toBe(before + 3);

    await store.state.append(address, { id: 'd', entries: [], fold: { through: 'b', value: 'folded' } });
    expect(await fields()).toBe(before + 1);
    await store.state.set(address, 'over');
    expect(await fields()).toBe(before);
  });

  it('ORC-12 a deleted or evicted document leaves no keys', async () => {
    const address = { ...NAME, sessionId: 's' };
    for (const gone of [() => store.state.delete(address), () => store.state.evictIdle('n', 0, 10)]) {
      await store.state.append(address, { id: 'a', entries: [1], initial: 0, ttlMs: 60_000 });
      await gone();
      expect(await names()).toEqual([]);
    }
  });

  async function create(id: string): Promise<void> {
    await sessions.create({ id, userId: 'ann', attachedSurfaces: ['web'], metadata: { a: 1 } }, RULES);
  }

  /** Creates turns in every state, with all their data. */
  async function busy(sessionId: string): Promise<ClaimedTurn> {
    const turn = (changes: object = {}) => turnRequest(randomUUID(), { sessionId, ...changes });
    await store.turns.accept(turn({ idempotency: { key: 'k', hash: 'h', ttlMs: 1000 } }));
    await store.turns.accept(turn());
    await store.turns.accept(turn());
    const step = { kind: 'step' as const, iteration: 0, intent: 'answer', parent: '', name: 'step', key: 0 };
    const first = (await store.turns.claim(sessionId, claimRequest('a'))) as ClaimedTurn;
    await store.turns.saveStep(first.hold, { ...step, value: 1 });
    await store.turns.signal(first.turn.id, 'early', 1);
    await store.turns.settle(first.hold, {
      status: 'awaiting-input',
      messages: [{ id: randomUUID(), role: 'assistant', content: 'hi' }],
      checkpoint: { ...CHECKPOINT, sessionId },
      keepCheckpoints: 10,
    });
    await store.state.set({ ...NAME, sessionId }, 1, { ttlMs: 60_000 });
    await store.state.append({ ...NAME, sessionId, key: 'l' }, { id: 'a', entries: [1], initial: 0 });
    return (await store.turns.claim(sessionId, claimRequest('b'))) as ClaimedTurn;
  }

  /** Returns the keys without the prefix. */
  async function names(): Promise<string[]> {
    return (await redis.client.keys('*')).map((name) => name.replace('{agent-sessions}:', '')).sort();
  }
});

const CHECKPOINT = {
  orchestrator: 'desk',
  sessionId: 's',
  turnIndex: 0,
  state: {},
  lastRoute: [],
  signature: 'signature',
  version: '1',
  summarizedThrough: 0,
};
