import { join } from 'node:path';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter, type SurfaceRules } from 'nestjs-agent-sessions/adapter';
import { unavailable } from '../support/faults.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { sqliteAdapter, temporaryFolder } from '../support/stores.js';

const hold = { sessionId: 's', turnId: 't', fence: 1 };
const step = { kind: 'step' as const, iteration: 0, intent: 'answer', parent: '', name: 'step', key: 0 };
const address = { namespace: 'n', scope: 'c', sessionId: 's', key: 'k' };
const lease = { name: 'l', holder: 'h', fence: 1 };
const sessionsOf = (store: SessionsAdapter) => store.sessions as AtomicSessionStoreAdapter;

const DRAFT = { id: 's', userId: 'u', attachedSurfaces: [], metadata: {} };
const RULES: SurfaceRules = { policy: 'move', maxSurfaces: 1 };

const event = { type: 'delta', data: null };
const batch = { number: 1, events: [event], restart: event };

/** Every method of every port. */
const CALLS: Record<string, (store: SessionsAdapter) => Promise<unknown>> = {
  ping: (store) => store.ping(),
  'sessions.create': (store) => sessionsOf(store).create(DRAFT, RULES),
  'sessions.createOrAdopt': (store) => sessionsOf(store).createOrAdopt(DRAFT, RULES, 1),
  'sessions.expireStale': (store) => sessionsOf(store).expireStale({ idleMs: 1 }, 1),
  'sessions.purgeExpired': (store) => sessionsOf(store).purgeExpired(1, 1),
  'sessions.fetchById': ({ sessions }) => sessions.fetchById('s'),
  'sessions.fetchMany': ({ sessions }) => sessions.fetchMany({}),
  'sessions.update': ({ sessions }) => sessions.update('s', {}),
  'sessions.delete': ({ sessions }) => sessions.delete('s'),
  'sessions.touch': (store) => sessionsOf(store).touch('s'),
  'sessions.attachSurface': (store) => sessionsOf(store).attachSurface('s', 'web', RULES),
  'sessions.detachSurface': (store) => sessionsOf(store).detachSurface('s', 'web'),
  'sessions.mergeMetadata': (store) => sessionsOf(store).mergeMetadata('s', {}, 1),
  'sessions.expire': (store) => sessionsOf(store).expire('s'),
  'sessions.revoke': (store) => sessionsOf(store).revoke('s'),
  'sessions.suspendStale': (store) => sessionsOf(store).suspendStale(1, 1),
  'sessions.count': (store) => sessionsOf(store).count({}),
  'sessions.erase': (store) => sessionsOf(store).erase('s'),
  'turns.accept': ({ turns }) => turns.accept(turnRequest('t')),
  'turns.claim': ({ turns }) => turns.claim('s', claimRequest('a')),
  'turns.renew': ({ turns }) => turns.renew(hold, 1),
  'turns.settle': ({ turns }) => turns.settle(hold, { status: 'failed', messages: [], keepCheckpoints: 1 }),
  'turns.retry': ({ turns }) => turns.retry(hold, { error: { name: 'Error', message: '' }, delayMs: 0 }),
  'turns.release': ({ turns }) => turns.release(hold, 0),
  'turns.wait': ({ turns }) => turns.wait(hold, { signal: 'go', step }),
  'turns.signal': ({ turns }) => turns.signal('t', 'go', 1),
  'turns.cancel': ({ turns }) => turns.cancel('t', 'cancel'),
  'turns.saveStep': ({ turns }) => turns.saveStep(hold, { ...step, value: 1 }),
  'turns.get': ({ turns }) => turns.get('t'),
  'turns.list': ({ turns }) => turns.list({ sessionId: 's' }),
  'turns.due': ({ turns }) => turns.due(1),
  'turns.purgeSettled': ({ turns }) => turns.purgeSettled(1, 1),
  'events.append': ({ events }) => events.append(hold, batch, 1),
  'events.read': ({ events }) => events.read('t', 0, 1),
  'events.last': ({ events }) => events.last('t'),
  'events.deleteExpired': ({ events }) => events.deleteExpired(1),
  'checkpoints.load': ({ checkpoints }) => checkpoints.load('o', 's'),
  'checkpoints.history': ({ checkpoints }) => checkpoints.history('o', 's'),
  'checkpoints.list': ({ checkpoints }) => checkpoints.list('o'),
  'checkpoints.prune': ({ checkpoints }) => checkpoints.prune('o', 's', 1),
  'checkpoints.delete': ({ checkpoints }) => checkpoints.delete('o', 's'),
  'conversations.append': ({ conversations }) => conversations.append('s', [{ id: 'm', role: 'user', content: '' }]),
  'conversations.window': ({ conversations }) => conversations.window('s', 1),
  'conversations.page': ({ conversations }) => conversations.page('s'),
  'state.get': ({ state }) => state.get(address),
  'state.set': ({ state }) => state.set(address, 1),
  'state.append': ({ state }) => state.append(address, { id: 'b', entries: [1] }),
  'state.evictIdle': ({ state }) => state.evictIdle('n', 1, 1),
  'state.delete': ({ state }) => state.delete(address),
  'state.deleteExpired': ({ state }) => state.deleteExpired(1),
  'leases.acquire': ({ leases }) => leases.acquire('l', 'h', 1),
  'leases.renew': ({ leases }) => leases.renew(lease, 1),
  'leases.release': ({ leases }) => leases.release(lease),
};

describe('a SQLite store that is not open', () => {
  const never = sqliteAdapter();
  const closed = sqliteAdapter();

  beforeAll(async () => {
    await closed.init?.();
    await closed.close?.();
  });

  it.each(Object.entries(CALLS))(
    'NST-05 %s is rejected as unavailable before init and after close',
    async (_, call) => {
      await expect(call(never)).rejects.toMatchObject(unavailable(false));
      await expect(call(closed)).rejects.toMatchObject(unavailable(false));
    },
  );

  it('NST-05 closes twice without an error, and opens again', async () => {
    const file = join(temporaryFolder(), 'sessions.db');
    const store = sqliteAdapter(file);
    await store.close?.();
    await store.init?.();
    await store.close?.();
    await store.close?.();
    await store.init?.();

    await expect(store.ping()).resolves.toBeUndefined();
    await store.close?.();
  });
});
