import fc from 'fast-check';
import { type SessionsAdapter, StoreUnavailableError } from 'nestjs-agent-sessions';
import {
  adapterOverTables,
  type AtomicSessionStoreAdapter,
  compareKeys,
  type KeyRange,
  type TableDatabase,
} from 'nestjs-agent-sessions/adapter';
import { MemoryTables } from '../../lib/store/memory/memory-tables.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';

describe('adapterOverTables', () => {
  it('NST-26 commits each operation once when the database retries it', async () => {
    const tables = new MemoryTables(Date.now);
    const adapter = await withSession(adapterOverTables(runningTwice(tables)));
    const changed: string[] = [];
    adapter.changes.subscribe((turnId) => changed.push(turnId));

    await adapter.turns.accept(turnRequest('t1'));
    const { hold } = (await adapter.turns.claim('s', claimRequest('a')))!;
    await adapter.turns.settle(hold, {
      status: 'completed',
      messages: [{ id: 'm1', role: 'user', content: 'hello' }],
      keepCheckpoints: 'all',
    });

    expect(await adapter.turns.list({ sessionId: 's' })).toMatchObject([
      { id: 't1', position: 1, status: 'completed' },
    ]);
    expect(await adapter.conversations.page('s')).toMatchObject([{ id: 'm1', position: 1 }]);
    expect(changed).toEqual(['t1']);
  });

  it('NST-26 rejects with the error of the database, and emits no change', async () => {
    const tables = new MemoryTables(Date.now);
    const adapter = await withSession(adapterOverTables(tables));
    await adapter.turns.accept(turnRequest('t1'));
    const failure = new StoreUnavailableError('The disk is full.', { maybeApplied: false });
    const broken = adapterOverTables({ read: (work) => tables.read(work), write: () => Promise.reject(failure) });
    const changed: string[] = [];
    broken.changes.subscribe((turnId) => changed.push(turnId));

    await expect(broken.turns.cancel('t1', 'cancel')).rejects.toBe(failure);
    expect(changed).toEqual([]);
  });

  it('NST-26 has defaults for members that are not ports', async () => {
    const adapter = adapterOverTables(new MemoryTables(Date.now));
    await expect(adapter.ping()).resolves.toBeUndefined();
    expect(adapter).toMatchObject({ shared: false });
    for (const member of ['init', 'beginWork', 'close', 'system']) expect(adapter).not.toHaveProperty(member);
  });

  it('NST-26 ends the leases and offers of the previous process once it holds the lock', async () => {
    let now = 1_000_000;
    const tables = new MemoryTables(() => now);
    const first = await withSession(adapterOverTables(tables));
    await first.turns.accept(turnRequest('running'));
    const { hold } = (await first.turns.claim('s', claimRequest('a')))!;
    await withSession(first, 'offered');
    await first.turns.accept(turnRequest('queued', { sessionId: 'offered' }));
    now += 2000;
    expect(await first.turns.due(9)).toEqual(['offered']);

    let isLocked = false;
    const second = adapterOverTables(tables, { beginWork: async () => void (isLocked = true) });
    await second.beginWork?.();
    expect(isLocked).toBe(true);
    expect(await second.turns.due(9)).toEqual(['s', 'offered']);
    expect(await second.turns.claim('s', claimRequest('b'))).toMatchObject({ turn: { id: 'running', lost: 1 } });
    await expect(first.turns.renew(hold, 1000)).rejects.toMatchObject({ code: 'TURN_FENCED' });
  });

  it('NST-26 keeps the leases while another process holds the lock', async () => {
    const tables = new MemoryTables(Date.now);
    const first = await withSession(adapterOverTables(tables));
    await first.turns.accept(turnRequest('running'));
    const { hold } = (await first.turns.claim('s', claimRequest('a')))!;

    const second = adapterOverTables(tables, { beginWork: () => Promise.reject(new Error('locked')) });
    await expect(second.beginWork?.()).rejects.toThrow('locked');
    await expect(first.turns.renew(hold, 1000)).resolves.toEqual({});
    expect(await second.turns.claim('s', claimRequest('b'))).toBeNull();
  });
});

describe('compareKeys', () => {
  it('NST-26 orders strings as their UTF-8 bytes', () => {
    const text = fc.string({ unit: 'binary', maxLength: 4 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareKeys([a], [b]))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });

  it('NST-26 orders numbers by size, and treats a key as equal to its prefix', () => {
    expect([[10], [9], [-1]].sort(compareKeys)).toEqual([[-1], [9], [10]]);
    expect(compareKeys(['a'], ['a', 1])).toBe(0);
    expect(compareKeys(['a', 2], ['a', 1])).toBeGreaterThan(0);
    expect(compareKeys([], ['a'])).toBe(0);
  });
});

describe('the tables in memory', () => {
  /** Enough for several chunks of an index. */
  const ROWS = 3000;
  const value = fc.integer({ min: 0, max: 400 });
  const bound = fc.option(fc.tuple(value), { nil: undefined });

  it('NST-26 returns the rows of every range in the order of a sorted list', async () => {
    const tables = new MemoryTables(Date.now);
    const stored = new Map<string, readonly [sessionId: string, position: number]>();
    await tables.write((tx) => {
      for (let count = 0; count < ROWS; count += 1) {
        const key = [`session-${(count * 7) % 3}`, (count * 7919) % 400] as const;
        tx.put('message', { sessionId: key[0], position: key[1] });
        stored.set(key.join(), key);
        if (count % 5 > 0) continue;
        const gone = [`session-${count % 3}`, (count * 31) % 400];
        tx.delete('message', gone);
        stored.delete(gone.join());
      }
    });
    const sorted = [...stored.values()].sort(compareKeys);

    const session = fc.constantFrom(['session-0'], ['session-1'], ['session-2'], ['session-3']);
    const ranges = fc.tuple(session, bound, bound, fc.boolean(), fc.option(fc.nat(5), { nil: undefined }));
    await fc.assert(
      fc.asyncProperty(ranges, async ([prefix, after, before, reverse, limit]) => {
        const range = { index: 'primary', prefix, after, before, reverse, limit };
        const rows = await tables.read((tx) => [...tx.scan('message', range)]);
        const inRange = sorted.filter(
          ([sessionId, position]) =>
            sessionId === prefix[0] && !(after && position <= after[0]) && !(before && position >= before[0]),
        );
        const expected = (reverse ? inRange.reverse() : inRange).slice(0, limit);
        expect(rows.map(({ sessionId, position }) => [sessionId, position])).toEqual(expected);
      }),
    );
  });

  it('NST-26 scans ranges over several sessions in order, also after sessions were added and deleted', async () => {
    const tables = new MemoryTables(Date.now);
    const names = ['a', 'b', 'b1', 'c'];
    const keys = names.flatMap((name) => Array.from({ length: 400 }, (_, position) => [name, position] as const));
    const put = ([sessionId, position]: readonly [string, number]): Promise<void> =>
      tables.write((tx) => tx.put('message', { sessionId, position }));
    const scan = (range: Omit<KeyRange, 'index' | 'prefix'>): Promise<unknown[]> =>
      tables.read((tx) =>
        [...tx.scan('message', { index: 'primary', prefix: [], ...range })].map((row) => [row.sessionId, row.position]),
      );
    for (const key of keys.filter(([name]) => name !== 'b')) await put(key);
    expect(await scan({})).toEqual(keys.filter(([name]) => name !== 'b'));

    for (const key of keys.filter(([name]) => name === 'b')) await put(key);
    await tables.write((tx) => {
      for (const [name, position] of keys) if (name === 'c') tx.delete('message', [name, position]);
    });
    const stored = keys.filter(([name]) => name !== 'c');

    const name = fc.constantFrom('a', 'a1', 'b', 'b1', 'c');
    const edge = fc.option(fc.oneof(fc.tuple(name), fc.tuple(name, value)), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(edge, edge, fc.boolean(), fc.option(fc.nat(900), { nil: undefined }), async (...range) => {
        const [after, before, reverse, limit] = range;
        const inRange = stored.filter(
          (key) => !(after && compareKeys(key, after) <= 0) && !(before && compareKeys(key, before) >= 0),
        );
        const expected = (reverse ? inRange.reverse() : inRange).slice(0, limit);
        expect(await scan({ after, before, reverse, limit })).toEqual(expected);
      }),
    );
  });

  it('NST-26 rolls back a transaction that throws, also in the indexes', async () => {
    const tables = new MemoryTables(Date.now);
    const all = () => tables.read((tx) => [...tx.scan('message', { index: 'primary', prefix: [] })]);
    await tables.write((tx) => {
      for (let position = 1; position <= 4; position += 1) tx.put('message', { sessionId: 's', position });
    });
    const before = await all();
    const failing = tables.write((tx) => {
      tx.put('message', { sessionId: 'r', position: 1 });
      tx.delete('message', ['s', 2]);
      tx.put('message', { sessionId: 's', position: 2, body: 'again' });
      tx.delete('message', ['s', 4]);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await all()).toEqual(before);
  });
});

/** Runs every write twice, like a database whose first commit met a conflict. */
function runningTwice(tables: TableDatabase): TableDatabase {
  return {
    read: (work) => tables.read(work),
    write: async (work) => {
      const conflict = new Error('conflict');
      const first = tables.write((tx) => {
        work(tx);
        throw conflict;
      });
      await first.catch((error: unknown) => {
        if (error !== conflict) throw error;
      });
      return tables.write(work);
    },
  };
}

async function withSession(adapter: SessionsAdapter, id = 's'): Promise<SessionsAdapter> {
  const sessions = adapter.sessions as AtomicSessionStoreAdapter;
  await sessions.create({ id, userId: 'ann', attachedSurfaces: [], metadata: {} }, { policy: 'share', maxSurfaces: 9 });
  return adapter;
}
