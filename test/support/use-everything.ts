import { setTimeout } from 'node:timers/promises';
import { type CheckpointStore, type SessionsAdapter, SessionStore } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter, type TurnHold } from 'nestjs-agent-sessions/adapter';
import { claimRequest, turnRequest } from './ledger-requests.js';

type Ports = Pick<
  SessionsAdapter,
  'sessions' | 'turns' | 'events' | 'checkpoints' | 'conversations' | 'state' | 'leases'
>;

/** Calls every operation of every port at least once. */
export async function useEverything(ports: Ports): Promise<void> {
  const sessions = ports.sessions as AtomicSessionStoreAdapter;
  for (const sessionId of ['s', 'expired', 'deleted', 'erased']) {
    await new SessionStore(sessions).create({ id: sessionId, userId: 'ann', initialSurfaceId: 'web' });
    await ports.turns.accept(turnRequest(`of-${sessionId}`, { sessionId }));
    // Sessions of the same millisecond are listed in any order.
    await setTimeout(2);
  }
  await useSessions(sessions);
  await useTurns(ports);
  await useCheckpoints(ports.checkpoints);
  await ports.conversations.append('s', [{ id: 'm', role: 'user', content: 'hello' }]);
  await ports.conversations.window('s', 1);
  await ports.conversations.page('s');
  await ports.conversations.sessions('r', 10);
  const address = { namespace: 'n', scope: 'c', sessionId: 's', key: 'k' };
  await ports.state.set(address, 1, { ttlMs: 1000 });
  await ports.state.set(address, 2);
  await ports.state.get(address);
  await ports.state.get(address, { ttlMs: 1000 });
  await ports.state.append(address, { id: 'b', entries: [1] });
  await ports.state.append(address, { id: 'c', entries: [2], fold: { through: 'b', value: 3 } });
  await ports.state.list({ namespace: 'n', sessionId: 's', limit: 10 });
  await ports.state.list({ namespace: 'n', sessionId: 's', scope: 'c', after: address, limit: 10 });
  await ports.state.count({ namespace: 'n', sessionId: 's' });
  const log = { head: { namespace: 'log', scope: '', key: 'head' }, value: 0, ifVersion: 0 };
  await ports.state.reset({ sessionId: 's', namespaces: ['n'], epoch: 'a' });
  await ports.state.reset({ sessionId: 's', namespaces: ['log', 'n'], epoch: 'b', log });
  await ports.state.delete(address);
  await ports.state.deleteExpired(10);
  await ports.state.evictIdle('n', 1, 10);
  const lease = await ports.leases.acquire('sweep', 'me', 1000);
  if (lease) await ports.leases.renew(lease, 1000);
  if (lease) await ports.leases.release(lease);
}

async function useSessions(sessions: AtomicSessionStoreAdapter): Promise<void> {
  const store = new SessionStore(sessions);
  await sessions.touch('s');
  await store.attachSurface('s', 'phone');
  await store.detachSurface('s', 'phone');
  await store.updateMetadata('s', { plan: 'pro' });
  await sessions.fetchById('s');
  const { nextCursor } = await store.page({ userId: 'ann', limit: 1 });
  await store.page({ userId: 'ann', limit: 1, ...(nextCursor ? { cursor: nextCursor } : {}) });
  await sessions.fetchMany({ surfaceId: 'web' });
  await sessions.fetchMany({ userId: 'ann', state: ['active', 'suspended'], surfaceId: 'web' });
  await sessions.fetchMany({ surfaceId: 'web', state: 'active' });
  await sessions.fetchMany({ userId: 'ann', state: 'active' });
  await sessions.fetchMany({ state: 'active' });
  await sessions.fetchMany({});
  await sessions.fetchMany({ workspaceId: 'acme' });
  await sessions.fetchMany({ userId: 'ann', workspaceId: 'acme' });
  await sessions.count({ userId: 'ann' });
  await sessions.suspendStale(0, 10);
  await sessions.expireStale({ idleMs: 86_400_000, maxMs: 86_400_000 }, 10);
  await sessions.purgeExpired(86_400_000, 10);
  await sessions.expire('expired');
  await sessions.revoke('expired');
  await sessions.delete('deleted');
  await sessions.erase('erased');
}

const PLAN = { namespace: 'n', scope: 'c', key: 'plan' };

const CHECKPOINT = {
  orchestrator: 'desk',
  sessionId: 's',
  turnIndex: 0,
  state: {},
  lastRoute: [],
  signature: '',
  version: '1',
  summarizedThrough: 0,
};

async function useTurns({ turns, events }: Ports): Promise<void> {
  const take = async (): Promise<TurnHold> => {
    const claimed = await turns.claim('s', claimRequest('a', { windows: { desk: 10 } }));
    if (!claimed) throw new Error('Nothing was claimed.');
    return claimed.hold;
  };
  const step = { kind: 'step' as const, iteration: 0, intent: 'answer', parent: '', name: 'step', key: 0 };
  const hold = await take();
  await turns.renew(hold, 1000);
  await turns.saveStep(hold, { ...step, value: 1 });
  const restart = { type: 'attempt', data: null };
  await events.append(hold, { number: 1, events: [restart], restart }, 0);
  await events.read(hold.turnId, 0, 10);
  await events.last(hold.turnId);
  await turns.wait(hold, { signal: 'go', step: { ...step, name: 'go' } });
  await turns.signal(hold.turnId, 'go', 1);
  await turns.retry(await take(), { error: { name: 'Error', message: '' }, delayMs: 0 });
  await turns.release(await take(), 0);
  await turns.accept(turnRequest('keyed', { idempotency: { key: 'k', hash: 'h', ttlMs: 1000 } }));
  await turns.settle(
    await take(),
    {
      status: 'awaiting-input',
      messages: [{ id: 'answer', role: 'assistant', content: 'hi' }],
      checkpoint: CHECKPOINT,
      keepCheckpoints: 1,
      stateChanges: [{ name: PLAN, append: { id: 'd', entries: [1], initial: 0 } }],
    },
    claimRequest('b', { windows: { desk: 10 }, documents: { desk: [PLAN] } }),
  );
  await turns.accept(turnRequest('latest', { whenBusy: 'latest' }));
  await turns.accept(turnRequest('replacing', { whenBusy: 'replace' }));
  await turns.cancel('replacing', 'cancel');
  await turns.cancel('keyed', 'cancel');
  await turns.accept(turnRequest('held'));
  for (const sessionId of ['s', null]) {
    for (const mode of ['paused', 'draining', 'open'] as const) await turns.control({ sessionId, mode });
  }
  await turns.lane('s');
  await turns.lanes({ limit: 1 });
  await turns.clear('s');
  await turns.due(10);
  await events.deleteExpired(10);
  await turns.purgeSettled(0, 10);
  await turns.get('keyed');
  await turns.list({ sessionId: 's' });
  await turns.list({ sessionId: 's', status: ['queued', 'running'] });
  await turns.list({ sessionId: 's', status: ['queued', 'completed'] });
}

async function useCheckpoints(checkpoints: CheckpointStore): Promise<void> {
  await checkpoints.append({ ...CHECKPOINT, orchestrator: 'other' }, 1);
  await checkpoints.load('desk', 's');
  await checkpoints.load('desk', 's', 0);
  await checkpoints.history('desk', 's');
  await checkpoints.list('desk', { prefix: 's' });
  await checkpoints.prune('desk', 's', 1);
  await checkpoints.delete('desk', 's');
}
