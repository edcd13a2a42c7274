import { join } from 'node:path';
import {
  type AtomicSessionStoreAdapter,
  type CheckpointStore,
  SessionStore,
  type TurnHold,
} from 'nestjs-agent-sessions';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { type OpenFile, openFile } from '../support/sqlite-file.js';
import { temporaryFolder } from '../support/stores.js';

/**
 * How SQLite would find the rows of every statement that the store prepares: by index, whatever else the tables hold
 * (PRF-06 to PRF-09). Taken from the statements that really ran, so that a new one cannot be forgotten.
 */
describe('query plans of the SQLite store', () => {
  let store: OpenFile;
  const prepared = new Set<string>();

  beforeAll(async () => {
    store = await openFile(join(temporaryFolder(), 'sessions.db'));
    const { connection } = store;
    const prepare = connection.prepare.bind(connection);
    connection.prepare = (sql: string) => {
      prepared.add(sql);
      return prepare(sql);
    };
    await useEverything(store);
    connection.prepare = prepare;
  });

  afterAll(() => store.close());

  it('PRF-07 no statement reads a whole table', () => {
    const scans = [...prepared].filter((sql) => plan(sql).some((step) => /^SCAN (?!CONSTANT ROW)/.test(step)));

    expect(prepared.size).toBeGreaterThan(50);
    expect(scans).toEqual([]);
  });

  it.each([
    [
      'the head of a lane',
      /FROM turn WHERE .* settled_at IS NULL ORDER BY position LIMIT 1/,
      'turn_open (session_id=?)',
    ],
    [
      'the open turns of a lane',
      /FROM turn WHERE .* settled_at IS NULL ORDER BY position$/,
      'turn_open (session_id=?)',
    ],
    [
      'turns by open statuses',
      /FROM turn WHERE .* status IN .* settled_at IS NULL/,
      'turn_open (session_id=? AND position>?)',
    ],
    ['an idempotency key', /idempotency_key = \?/, 'turn_key (session_id=? AND idempotency_key=?)'],
    ['lanes that are due', /FROM lane WHERE attention_at/, 'lane_attention (attention_at>? AND attention_at<?)'],
    [
      'the latest checkpoint',
      /FROM checkpoint .* turn_index < \? ORDER BY/,
      '(orchestrator=? AND session_id=? AND turn_index<?)',
    ],
    ['the end of a log', /MAX\(position\)/, 'message_1 (session_id=?)'],
    ['a window of messages', /FROM message .* position > \? ORDER BY/, 'message_1 (session_id=? AND position>?)'],
    ['stale sessions', /FROM session WHERE state = 'active'/, 'session_state (state=? AND last_activity_at<?)'],
    ['sessions of a surface', /FROM session WHERE id IN/, 'SEARCH session_surface USING PRIMARY KEY (surface_id=?)'],
    ['sessions of a user', /FROM session WHERE user_id = \? ORDER BY/, 'session_user (user_id=?)'],
    [
      'a later page of them',
      /FROM session WHERE user_id = \? AND last_activity_at <= \?/,
      'session_user (user_id=? AND last_activity_at<?)',
    ],
    ['expired documents', /DELETE FROM document WHERE rowid IN/, 'document_expiry (expires_at>? AND expires_at<?)'],
  ])('PRF-06 finds %s by the index that is made for it', (_, statement, index) => {
    const found = [...prepared].filter((sql) => statement.test(named(sql)));

    expect(found).not.toEqual([]);
    for (const sql of found) expect(named(plan(sql).join('; '))).toContain(index);
  });

  it('PRF-06 sorts nothing that an index has in order', () => {
    const sorted = [...prepared].filter((sql) => plan(sql).includes('USE TEMP B-TREE FOR ORDER BY'));

    // Those of one surface: they come out of its own index.
    expect(sorted.map(named)).toEqual([expect.stringMatching(/FROM session WHERE id IN/)]);
  });

  function plan(sql: string): string[] {
    if (!/^(SELECT|UPDATE|DELETE)/.test(sql)) return [];
    const parameters = Array<null>(sql.split('?').length - 1).fill(null);
    const steps = store.connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[];
    return steps.map(({ detail }) => detail);
  }
});

/** A statement or a plan in one line, without the prefix of the tables. */
function named(sql: string): string {
  return sql.replaceAll(/"?agent_(\w+)"?/g, '$1').replaceAll(/\s+/g, ' ');
}

/** Every operation of every port at least once. */
async function useEverything({ ports }: OpenFile): Promise<void> {
  const sessions = ports.sessions as AtomicSessionStoreAdapter;
  for (const sessionId of ['s', 'expired', 'deleted', 'erased']) {
    await new SessionStore(sessions).create({ id: sessionId, userId: 'ann', initialSurfaceId: 'web' });
    await ports.turns.accept(turnRequest(`of-${sessionId}`, { sessionId }));
  }
  await useSessions(sessions);
  await useTurns(ports);
  await useCheckpoints(ports.checkpoints);
  await ports.conversations.append('s', [{ id: 'm', role: 'user', content: 'hello' }]);
  await ports.conversations.window('s', 1);
  await ports.conversations.page('s');
  const address = { namespace: 'n', scope: 'c', sessionId: 's', key: 'k' };
  await ports.state.set(address, 1, { ttlMs: 1000 });
  await ports.state.set(address, 2);
  await ports.state.get(address);
  await ports.state.extend(address, 1000);
  await ports.state.delete(address);
  await ports.state.deleteExpired(10);
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
  await sessions.fetchMany({ state: 'active' });
  await sessions.count({ userId: 'ann' });
  await sessions.suspendStale(0, 10);
  await sessions.expire('expired');
  await sessions.delete('deleted');
  await sessions.erase('erased');
}

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

async function useTurns({ turns }: OpenFile['ports']): Promise<void> {
  const take = async (): Promise<TurnHold> => {
    const claimed = await turns.claim('s', claimRequest('a', { windows: { desk: 10 } }));
    if (!claimed) throw new Error('Nothing was claimed.');
    return claimed.hold;
  };
  const step = { iteration: 0, intent: 'answer', name: 'step', occurrence: 0 };
  const hold = await take();
  await turns.renew(hold, 1000);
  await turns.saveStep(hold, { ...step, value: 1 });
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
    },
    claimRequest('b', { windows: { desk: 10 } }),
  );
  await turns.accept(turnRequest('latest', { whenBusy: 'latest' }));
  await turns.accept(turnRequest('replacing', { whenBusy: 'replace' }));
  await turns.cancel('replacing', 'cancel');
  await turns.cancel('keyed', 'cancel');
  await turns.due(10);
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
