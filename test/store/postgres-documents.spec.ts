import { randomUUID } from 'node:crypto';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type SettledTurn, type StateAddress, type StateName, type TurnHold } from 'nestjs-agent-sessions/adapter';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { PostgresRival } from '../support/postgres-rival.js';
import { describePostgres } from '../support/servers.js';

/** Document writes while another uncommitted transaction holds their locks. */
describePostgres('concurrent documents in the PostgreSQL store', () => {
  const url = process.env.TEST_POSTGRES_URL ?? '';
  const tablePrefix = `d${randomUUID().slice(0, 8)}_`;
  let store: SessionsAdapter;
  let other: PostgresRival;

  beforeAll(async () => {
    const dataSource = { type: 'postgres', url, poolSize: 4 } as const;
    store = typeormAdapter({ dataSource, tablePrefix, migrationsRun: true, operationTimeoutMs: 15_000 });
    await store.init?.();
    other = await PostgresRival.open(url, tablePrefix);
  });

  beforeEach(() => other.begin());
  afterEach(() => other.end('ROLLBACK'));

  afterAll(async () => {
    await other.close();
    await store.close?.();
  });

  it.each([
    ['COMMIT', 2],
    ['ROLLBACK', 1],
  ])('ORC-04 a create of a document waits for a concurrent create: %s', async (end, batches) => {
    const address = someAddress();
    await other.call('append_document', { ...argsOf(address), id: 'theirs', entries: '["theirs"]', initial: '0' });
    const mine = store.state.append(address, { id: 'mine', entries: ['mine'], initial: 0 });
    await other.isWaitedFor();
    await other.end(end);

    expect(await mine).toMatchObject({ value: 0 });
    expect((await mine)?.batches.at(-1)).toMatchObject({ id: 'mine', entries: ['mine'] });
    expect((await mine)?.batches).toHaveLength(batches);
  });

  it('ORC-12 an append creates a document again that expires while it waits for it', async () => {
    const address = someAddress();
    await store.state.set(address, 'old', { ttlMs: 500 });
    await lock(address);
    const appended = store.state.append(address, { id: 'mine', entries: ['mine'], initial: 'new' });
    await other.isWaitedFor();
    await eventually(async () => (await store.state.get(address)) === null);
    await other.end('COMMIT');

    expect(await appended).toMatchObject({ value: 'new' });
  });

  it('ORC-13 an eviction skips a document that is being written, and evicts no other in its place', async () => {
    const namespace = randomUUID();
    const [idle, ...others] = ['a', 'b', 'c'].map((key) => ({ ...someAddress(), namespace, key }));
    for (const address of [idle, ...others]) await store.state.set(address, address.key);
    await lock(idle);

    expect(await store.state.evictIdle(namespace, 2, 10)).toBe(0);
    await other.end('COMMIT');
    expect(await store.state.evictIdle(namespace, 2, 10)).toBe(1);
    expect(await store.state.get(idle)).toBeNull();
    for (const address of others) expect(await store.state.get(address)).toMatchObject({ value: address.key });
  });

  it('ORC-13 an eviction skips a document that is being evicted, and evicts no other in its place', async () => {
    const namespace = randomUUID();
    const addresses = ['a', 'b', 'c'].map((key) => ({ ...someAddress(), namespace, key }));
    for (const address of addresses) await store.state.set(address, address.key);
    await other.call('evict_idle_documents', { namespace, keep: 2, max_documents: 10 });

    expect(await store.state.evictIdle(namespace, 2, 10)).toBe(0);
    await other.end('COMMIT');
    expect(await store.state.evictIdle(namespace, 2, 10)).toBe(0);
    expect(await store.state.get(addresses[0])).toBeNull();
  });

  it('ORC-30 a settlement has one time, not earlier than a concurrent create of its document', async () => {
    const address = someAddress();
    const hold = await take(address.sessionId);
    const theirs = { id: 'theirs', entries: '["theirs"]', initial: '0' };
    await other.call('append_document', { ...argsOf({ ...address, key: 'another' }), ...theirs });
    const settled = settle(hold, address);
    await other.isWaitedFor();
    await other.query('SELECT pg_sleep(0.01)');
    const made = await other.call<Written>('append_document', { ...argsOf(address), ...theirs });
    await other.end('COMMIT');

    await expectOneTime(await settled, address, made);
  });

  it('ORC-30 a settlement has one time, not earlier than a concurrent access to its document', async () => {
    const address = someAddress();
    const hold = await take(address.sessionId);
    await store.state.set(address, 0);
    await other.call('access_document', argsOf(address));
    const settled = settle(hold, address);
    await other.isWaitedFor();
    await other.query('SELECT pg_sleep(0.01)');
    const accessed = await other.call<Written>('access_document', argsOf(address));
    await other.end('COMMIT');

    await expectOneTime(await settled, address, accessed);
  });

  it('ORC-30 a settlement creates a document that is removed while it waits', async () => {
    const address = someAddress();
    const hold = await take(address.sessionId);
    await store.state.set(address, 0);
    await other.call('delete_document', argsOf(address));
    const settled = settle(hold, address);
    await other.isWaitedFor();
    await other.end('COMMIT');

    await settled;
    expect(await store.state.get(address)).toMatchObject({ value: 'new', batches: [{ id: 'mine' }] });
  });

  async function take(sessionId: string): Promise<TurnHold> {
    await store.turns.accept(turnRequest(randomUUID(), { sessionId, foreignSession: true }));
    const claimed = await store.turns.claim(sessionId, claimRequest('me'));
    if (!claimed) throw new Error('Nothing was claimed.');
    return claimed.hold;
  }

  function settle(hold: TurnHold, name: StateName): Promise<SettledTurn> {
    const append = { id: 'mine', entries: ['mine'], initial: 'new' };
    const stateChanges = [{ name, append }];
    return store.turns.settle(hold, { status: 'awaiting-input', messages: [], keepCheckpoints: 1, stateChanges });
  }

  async function expectOneTime({ turn }: SettledTurn, address: StateAddress, theirs: Written): Promise<void> {
    const { settledAt = '' } = turn;
    const document = await store.state.get(address);
    expect(document).toMatchObject({ value: 0, accessedAt: settledAt });
    expect(document?.batches.at(-1)).toMatchObject({ id: 'mine', at: settledAt });
    expect(Date.parse(settledAt)).toBeGreaterThanOrEqual(theirs.accessed_at);
  }

  async function lock({ namespace, key }: StateAddress): Promise<void> {
    const row = `SELECT FROM "${tablePrefix}document" WHERE namespace = $1 AND key = $2 FOR UPDATE`;
    expect(await other.query(row, [namespace, key])).toHaveLength(1);
  }
});

interface Written {
  readonly accessed_at: number;
}

function someAddress(): StateAddress {
  return { namespace: randomUUID(), scope: '', sessionId: randomUUID(), key: 'k' };
}

function argsOf({ namespace, scope, sessionId, key }: StateAddress): Record<string, unknown> {
  return { namespace, scope, session_id: sessionId, key };
}
