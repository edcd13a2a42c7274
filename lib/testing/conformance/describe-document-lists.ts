import { type StateEntry, type StateQuery, type StateSelection } from '../../ledger/state.store.js';
import { appendOf, written } from './document-fixtures.js';
import { HOSTILE_NAMES } from './session-fixtures.js';
import { type ConformanceContext } from './target.js';

const SHORT = 30;

/** Tests of the lists and counts of StateStore. */
export function describeDocumentLists(context: ConformanceContext): void {
  describe('lists of documents', () => {
    let of: { namespace: string; sessionId: string };
    beforeEach(() => {
      of = { namespace: context.id(), sessionId: context.id() };
    });

    const put = async (scope: string, key: string, value = `${scope}/${key}`, ttlMs?: number): Promise<void> => {
      await context.adapter.state.set({ ...of, scope, key }, value, ttlMs === undefined ? {} : { ttlMs });
    };
    const list = (query: Partial<StateQuery> = {}): Promise<StateEntry[]> =>
      context.adapter.state.list({ ...of, limit: 100, ...query });
    const places = async (query: Partial<StateQuery> = {}): Promise<string[]> =>
      (await list(query)).map(({ scope, key }) => `${scope}/${key}`);
    const count = (selection: Partial<StateSelection> = {}): Promise<number> =>
      context.adapter.state.count({ ...of, ...selection });

    it('STA-02 lists and counts nothing for an unknown session', async () => {
      expect(await list()).toEqual([]);
      expect(await list({ scope: '' })).toEqual([]);
      expect(await count()).toBe(0);
    });

    it('STA-02 lists complete documents, with their batches', async () => {
      const address = { ...of, scope: 'a', key: 'k' };
      await context.adapter.state.set(address, { n: 1 });
      const appended = await context.adapter.state.append(address, appendOf(context, [2, { three: 3 }]));
      await put('b', 'x');
      expect(await list()).toEqual([
        { scope: 'a', key: 'k', document: appended },
        { scope: 'b', key: 'x', document: written('b/x') },
      ]);
    });

    it('STA-02 orders documents by scope, then key, in byte order', async () => {
      for (const [scope, key] of [
        ['b', '1'],
        ['', 'z'],
        ['a', 'b'],
        ['a', 'B'],
        ['a', 'ab'],
        ['a ', 'a'],
        ['a', '\uFF5E'],
        ['a', '\u{1F600}'],
        ['a', 'ä'],
        ['aa', 'a'],
      ]) {
        await put(scope, key);
      }
      expect(await places()).toEqual([
        '/z',
        'a/B',
        'a/ab',
        'a/b',
        'a/ä',
        'a/\uFF5E',
        'a/\u{1F600}',
        'a /a',
        'aa/a',
        'b/1',
      ]);
      expect(await count()).toBe(10);
    });

    it('STA-02 lists exactly one scope, without others that share its prefix', async () => {
      for (const scope of ['', 'a', 'a ', 'aa', 'A']) for (const key of ['1', '2']) await put(scope, key);
      expect(await places({ scope: 'a' })).toEqual(['a/1', 'a/2']);
      expect(await places({ scope: '' })).toEqual(['/1', '/2']);
      expect(await places({ scope: 'none' })).toEqual([]);
      expect([await count({ scope: 'a' }), await count({ scope: 'b' }), await count()]).toEqual([2, 0, 10]);
    });

    it('STA-02 lists page by page, across scopes and after documents that were deleted', async () => {
      const expected: string[] = [];
      for (const scope of ['', 'a', 'b']) {
        for (const key of ['1', '2', '3']) {
          await put(scope, key);
          expected.push(`${scope}/${key}`);
        }
      }
      const found: string[] = [];
      let after: StateQuery['after'];
      for (;;) {
        const page = await list({ limit: 2, ...(after ? { after } : {}) });
        expect(page.length).toBeLessThanOrEqual(2);
        if (page.length === 0) break;
        found.push(...page.map(({ scope, key }) => `${scope}/${key}`));
        after = page.at(-1);
        if (found.length === 4) await context.adapter.state.delete({ ...of, scope: 'a', key: '1' });
      }
      expect(found).toEqual(expected);
      expect(await places({ after: { scope: 'a', key: '1' }, limit: 1 })).toEqual(['a/2']);
      expect(await places({ scope: 'a', after: { scope: 'a', key: '2' } })).toEqual(['a/3']);
      expect(await places({ scope: 'b', after: { scope: 'a', key: '1' }, limit: 1 })).toEqual(['b/1']);
      expect(await places({ scope: 'a', after: { scope: 'b', key: '1' } })).toEqual([]);
      expect(await places({ after: { scope: 'b', key: '3' } })).toEqual([]);
    });

    it('STA-02 lists hostile names unchanged', async () => {
      for (const name of HOSTILE_NAMES) await put(name, name);
      const sorted = [...HOSTILE_NAMES].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      expect(await places()).toEqual(sorted.map((name) => `${name}/${name}`));
      for (const scope of HOSTILE_NAMES) expect(await places({ scope })).toEqual([`${scope}/${scope}`]);
    });

    it('STA-02 keeps namespaces and sessions separate', async () => {
      await put('a', '1');
      await context.adapter.state.set({ ...of, namespace: context.id(), scope: 'a', key: '2' }, 2);
      await context.adapter.state.set({ ...of, sessionId: context.id(), scope: 'a', key: '3' }, 3);
      expect(await places()).toEqual(['a/1']);
      expect(await count()).toBe(1);
    });

    it('STA-04 skips expired documents, and fills the page with the next ones', async () => {
      await put('a', '1');
      for (const key of ['2', '3', '4']) await put('a', key, 'short', SHORT);
      await put('a', '5');
      await put('b', '1');
      await context.elapse(SHORT);
      expect(await places({ limit: 2 })).toEqual(['a/1', 'a/5']);
      expect(await places({ scope: 'a', limit: 2 })).toEqual(['a/1', 'a/5']);
      expect([await count(), await count({ scope: 'a' })]).toEqual([3, 2]);
    });
  });

  describe('sessions that have messages', () => {
    const say = (sessionId: string): Promise<unknown> =>
      context.adapter.conversations.append(sessionId, [{ id: context.id(), role: 'user', content: 'hi' }]);

    it('STA-23 are listed by id, each once, page by page', async () => {
      const prefix = `${context.id()}-`;
      const ids = ['b', 'B', 'a', 'a-1', 'c', 'd'].map((end) => prefix + end);
      for (const id of ids) await say(id);
      for (const id of ids) await say(id);
      const sorted = [...ids].sort();
      const found: string[] = [];
      for (let after = prefix; ;) {
        const page = await context.adapter.conversations.sessions(after, 4);
        expect(page.length).toBeLessThanOrEqual(4);
        const own = page.filter((id) => id.startsWith(prefix));
        found.push(...own);
        if (own.length < 4) break;
        after = own[3];
      }
      expect(found).toEqual(sorted);
    });

    it('STA-23 are no longer listed once they are deleted', async () => {
      const id = context.id();
      await say(id);
      await context.adapter.sessions.delete(id);
      expect(await context.adapter.conversations.sessions(`${id.slice(0, -1)}`, 1)).not.toContain(id);
    });
  });
}
