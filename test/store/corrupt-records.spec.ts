import { setTimeout as delay } from 'node:timers/promises';
import { createSessionStore, type Session, SessionRecords, type SessionsAdapter } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { adapterOf } from '../support/connections.js';
import { corruptRecord, type BrokenRecord } from '../support/corrupt-record.js';
import { turnRequest } from '../support/ledger-requests.js';
import { PostgresRival } from '../support/postgres-rival.js';
import { STORES } from '../support/stores.js';

/** A string that is not valid JSON. */
const BROKEN = '{broken';

describe.each(STORES)('corrupt records on $name', ({ open, place }) => {
  let adapter: SessionsAdapter;
  let corrupt: (record: BrokenRecord) => Promise<void>;
  let elapse: NonNullable<ConformanceTarget['elapse']>;

  beforeEach(async () => {
    const options = place?.();
    const target: ConformanceTarget = options ? { adapter: adapterOf(options) } : open();
    ({ adapter } = target);
    await adapter.init?.();
    elapse = target.elapse ?? ((ms) => delay(ms));
    corrupt = (record) => (isPostgres(options) ? inPostgres(options, record) : corruptRecord(adapter, record, options));
  });

  afterEach(() => adapter.close?.());

  it('FIX-53 rejects a corrupt session with its id; lists skip it, revokeAll and sweeps continue past it', async () => {
    const sessions = createSessionStore({ adapter: adapter.sessions });
    const atomic = adapter.sessions as AtomicSessionStoreAdapter;
    const created: Session[] = [];
    for (let n = 0; n < 4; n += 1) {
      created.push(await sessions.create({ userId: 'ann', metadata: { plan: 'pro' } }));
      await sessions.touch(created[n].id);
      await elapse(2);
    }
    const [oldest, second, third, last] = created.map(({ id }) => id);
    for (const id of [oldest, third]) await corrupt({ kind: 'session', id });

    const error = { code: 'CORRUPT_RECORD', kind: 'session', recordId: third };
    await expect(sessions.get(third)).rejects.toMatchObject(error);
    const ids = (found: readonly Session[]): string[] => found.map(({ id }) => id);
    expect(ids(await sessions.find({ userId: 'ann', limit: 2 }))).toEqual([last, second]);
    const page = await sessions.page({ userId: 'ann', limit: 1 });
    const next = await sessions.page({ userId: 'ann', limit: 1, cursor: page.nextCursor });
    expect(ids([...page.sessions, ...next.sessions])).toEqual([last, second]);

    await elapse(2);
    const suspended = [...(await atomic.suspendStale(1, 1)), ...(await atomic.suspendStale(1, 10))];
    expect(ids(suspended).sort()).toEqual([last, second].sort());
    expect(ids(await sessions.revokeAll('ann')).sort()).toEqual([last, second].sort());
    await sessions.sweepExpired(1);
    await elapse(2);
    await sessions.purgeExpired(1);
    expect(await sessions.find({ userId: 'ann' })).toEqual([]);
  });

  it('NST-25 rejects the export and the erase of a user with a corrupt session, after the others', async () => {
    const sessions = createSessionStore({ adapter: adapter.sessions });
    const [corrupted, other] = [await sessions.create({ userId: 'eve' }), await sessions.create({ userId: 'eve' })];
    await corrupt({ kind: 'session', id: corrupted.id });
    const records = new SessionRecords(sessions, adapter);

    const exported: string[] = [];
    const read = async (): Promise<void> => {
      for await (const record of records.export({ userId: 'eve', allWorkspaces: true }))
        exported.push(record.sessionId);
    };
    await expect(read()).rejects.toThrow('SessionRecords.export: 1 sessions of the user cannot be read.');
    expect(exported).toEqual([other.id]);

    const erase = records.erase({ userId: 'eve', allWorkspaces: true });
    await expect(erase).rejects.toMatchObject({ code: 'CORRUPT_RECORD', recordId: '' });
    await expect(erase).rejects.toThrow('1 sessions are erased, but 1 sessions of the user cannot be read.');
    expect(await sessions.get(other.id)).toBeNull();
    expect(await records.erase({ sessionId: corrupted.id })).toEqual({ sessions: 1 });
    expect(await records.erase({ userId: 'eve', allWorkspaces: true })).toEqual({ sessions: 0 });
  });

  it('FIX-53 rejects a corrupt turn with its id; lists skip it', async () => {
    const { id: sessionId } = await createSessionStore({ adapter: adapter.sessions }).create({ userId: 'ann' });
    for (const id of ['t1', 't2', 't3']) await adapter.turns.accept(turnRequest(id, { sessionId }));
    await corrupt({ kind: 'turn', id: 't2' });

    await expect(adapter.turns.get('t2')).rejects.toMatchObject({
      code: 'CORRUPT_RECORD',
      kind: 'turn',
      recordId: 't2',
    });
    const found = await adapter.turns.list({ sessionId, limit: 2 });
    expect(found.map(({ id }) => id)).toEqual(['t1', 't3']);
  });

  it('FIX-53 rejects a corrupt document with its key; lists skip it', async () => {
    const { id: sessionId } = await createSessionStore({ adapter: adapter.sessions }).create({ userId: 'ann' });
    const at = (key: string) => ({ namespace: 'notes', scope: 'session', sessionId, key }) as const;
    for (const key of ['a', 'b', 'c']) await adapter.state.set(at(key), { key });
    await corrupt({ kind: 'document', ...at('b') });

    await expect(adapter.state.get(at('b'))).rejects.toMatchObject({
      code: 'CORRUPT_RECORD',
      kind: 'document',
      recordId: 'b',
    });
    const { key: _, ...selection } = at('b');
    const found = await adapter.state.list({ ...selection, limit: 2 });
    expect(found.map(({ key }) => key)).toEqual(['a', 'c']);
  });
});

interface PostgresOptions {
  readonly dataSource: { readonly url: string };
  readonly tablePrefix: string;
}

function isPostgres(options: unknown): options is PostgresOptions {
  return (options as { readonly dataSource?: { readonly type?: string } } | undefined)?.dataSource?.type === 'postgres';
}

/** Breaks a record with another client, because queries of the store can only read. */
async function inPostgres({ dataSource, tablePrefix }: PostgresOptions, record: BrokenRecord): Promise<void> {
  const client = await PostgresRival.open(dataSource.url, tablePrefix);
  if (record.kind === 'document') {
    const { namespace, scope, sessionId, key } = record;
    const where = 'namespace = $2 AND scope = $3 AND session_id = $4 AND key = $5';
    const values = [BROKEN, namespace, scope, sessionId, key];
    await client.query(`UPDATE ${tablePrefix}document SET value = $1 WHERE ${where}`, values);
  } else {
    const column = record.kind === 'session' ? 'metadata' : 'request';
    await client.query(`UPDATE ${tablePrefix}${record.kind} SET ${column} = $1 WHERE id = $2`, [BROKEN, record.id]);
  }
  await client.close();
}
