import { join } from 'node:path';
import Database from 'better-sqlite3';
import { SessionNotFoundError, SessionStore } from 'nestjs-agent-sessions';
import { type NewMessage } from 'nestjs-agent-sessions/adapter';
import { unavailable } from '../support/faults.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { type OpenFile, openFile } from '../support/sqlite-file.js';
import { temporaryFolder } from '../support/stores.js';

/** Makes every new turn violate a constraint that is checked at COMMIT. */
const BREAK_COMMITS = `
  CREATE TABLE parent (id INTEGER PRIMARY KEY);
  CREATE TABLE child (parent REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
  CREATE TRIGGER break_commits AFTER INSERT ON agent_turn BEGIN INSERT INTO child VALUES (1); END`;
const BREAK_ALL_COMMITS = `${BREAK_COMMITS};
  CREATE TRIGGER break_updates AFTER UPDATE ON agent_turn BEGIN INSERT INTO child VALUES (1); END`;

describe('commits of the SQLite store', () => {
  let file: string;
  let store: OpenFile;

  beforeEach(async () => {
    file = join(temporaryFolder(), 'sessions.db');
    store = await openFile(file);
    await new SessionStore(store.ports.sessions).create({ id: 's', userId: 'ann' });
    store.ran.length = 0;
  });

  afterEach(() => store.close());

  it('PRF-02 concurrent writes share one commit', async () => {
    await Promise.all(Array.from({ length: 100 }, (_, index) => accept(`t-${index}`)));

    expect(commits()).toBe(1);
    expect(await turnIds()).toHaveLength(100);
  });

  it('PRF-05 accept, claim and settle with the next claim are one commit each', async () => {
    await accept('first');
    await accept('second');
    const claimed = await store.ports.turns.claim('s', claimRequest('a'));
    if (!claimed) throw new Error('Nothing was claimed.');
    const message: NewMessage = { id: 'm', role: 'user', content: 'hello' };
    await store.ports.turns.settle(
      claimed.hold,
      { status: 'awaiting-input', messages: [message], keepCheckpoints: 'all' },
      claimRequest('b'),
    );

    expect(commits()).toBe(4);
  });

  it('TRN-01 a failed write does not affect the others in its commit', async () => {
    const [first, refused, second] = await Promise.allSettled([
      accept('first'),
      store.ports.turns.accept(turnRequest('lost', { sessionId: 'nowhere' })),
      accept('second'),
    ]);

    expect(commits()).toBe(1);
    expect([first.status, second.status]).toEqual(['fulfilled', 'fulfilled']);
    expect(refused).toMatchObject({ reason: expect.any(SessionNotFoundError) as unknown });
    expect(await turnIds()).toEqual(['first', 'second']);
  });

  it('TRN-01 a write that fails midway leaves no data', async () => {
    await accept('first');
    const claimed = await store.ports.turns.claim('s', claimRequest('a'));
    if (!claimed) throw new Error('Nothing was claimed.');
    const nameless = undefined as unknown as string;
    const messages: NewMessage[] = [
      { id: 'm', role: 'user', content: 'one' },
      { id: nameless, role: 'user', content: 'two' },
    ];

    const [refused] = await Promise.allSettled([
      store.ports.turns.settle(claimed.hold, { status: 'completed', messages, keepCheckpoints: 'all' }),
      accept('second'),
    ]);

    expect(refused.status).toBe('rejected');
    expect(await store.ports.conversations.page('s')).toEqual([]);
    expect(await store.ports.turns.get('first')).toMatchObject({ status: 'running' });
    expect(await turnIds()).toEqual(['first', 'second']);
  });

  it('TRN-10 notifies about a change once it is on disk', async () => {
    const other = new Database(file, { readonly: true });
    const seen: unknown[] = [];
    const unsubscribe = store.ports.changes.subscribe((turnId) => {
      seen.push(other.prepare('SELECT id, status FROM agent_turn WHERE id = ?').get(turnId));
    });
    await accept('first');
    await store.ports.turns.cancel('first', 'cancel');
    unsubscribe();
    await accept('second');
    await store.ports.turns.cancel('second', 'cancel');

    expect(seen).toEqual([{ id: 'first', status: 'cancelled' }]);
    other.close();
  });

  it('NST-05 fails every write of a failed commit, notifies about none, and continues afterwards', async () => {
    await accept('before');
    store.connection.exec(BREAK_ALL_COMMITS);
    const heard: string[] = [];
    store.ports.changes.subscribe((turnId) => heard.push(turnId));

    const answers = await Promise.allSettled([accept('first'), store.ports.turns.cancel('before', 'cancel')]);

    for (const answer of answers) expect(answer).toMatchObject({ reason: { code: 'STORE_REJECTED' } });
    expect(await turnIds()).toEqual(['before']);
    expect(await store.ports.turns.get('before')).toMatchObject({ status: 'queued' });
    expect(heard).toEqual([]);
    store.connection.exec('DROP TRIGGER break_commits; DROP TRIGGER break_updates');
    await accept('after');
    expect(await turnIds()).toEqual(['before', 'after']);
  });

  it('FIX-61 fails only the write whose value the commit rejects', async () => {
    await accept('before');
    store.connection.exec(BREAK_COMMITS);
    const heard: string[] = [];
    store.ports.changes.subscribe((turnId) => heard.push(turnId));

    const [rejected, cancelled] = await Promise.allSettled([
      accept('first'),
      store.ports.turns.cancel('before', 'cancel'),
    ]);

    expect(rejected).toMatchObject({ reason: { code: 'STORE_REJECTED' } });
    expect(cancelled).toMatchObject({ status: 'fulfilled' });
    expect(await turnIds()).toEqual(['before']);
    expect(await store.ports.turns.get('before')).toMatchObject({ status: 'cancelled' });
    expect(heard).toEqual(['before']);
  });

  it('NST-05 reads from a full disk, and writes again when space is free', async () => {
    await accept('before');
    store.connection.pragma(`max_page_count = ${store.connection.pragma('page_count', { simple: true }) as number}`);
    const large = turnRequest('large', { request: { input: { text: 'x'.repeat(1_000_000) } } });

    const answers = await Promise.allSettled([accept('small'), store.ports.turns.accept(large), accept('small too')]);

    const accepted = ['small', 'large', 'small too'].filter((_, index) => answers[index].status === 'fulfilled');
    expect(await turnIds()).toEqual(['before', ...accepted]);
    expect(answers[1]).toMatchObject({ reason: unavailable(false) });
    store.connection.pragma('max_page_count = 1000000');
    await store.ports.turns.accept(large);
    expect(await turnIds()).toEqual(['before', ...accepted, 'large']);
  });

  it('NST-05 leaves no data of a settle when the disk is full, and settles when space is free', async () => {
    await accept('first');
    const claimed = await store.ports.turns.claim('s', claimRequest('a'));
    if (!claimed) throw new Error('Nothing was claimed.');
    const messages: NewMessage[] = [{ id: 'm', role: 'user', content: 'x'.repeat(1_000_000) }];
    const settle = () =>
      store.ports.turns.settle(claimed.hold, { status: 'completed', messages, keepCheckpoints: 'all' });
    store.connection.pragma(`max_page_count = ${store.connection.pragma('page_count', { simple: true }) as number}`);

    await expect(settle()).rejects.toMatchObject(unavailable(false));
    await expect(settle()).rejects.toThrow('SQLITE_FULL');
    expect(await store.ports.turns.get('first')).toMatchObject({ status: 'running' });
    expect(await store.ports.conversations.page('s')).toEqual([]);

    store.connection.pragma('max_page_count = 1000000');
    expect(await settle()).toMatchObject({ turn: { status: 'completed' } });
    expect(await store.ports.conversations.page('s')).toHaveLength(1);
  });

  it('NST-05 finishes pending calls before it closes', async () => {
    const asked = Array.from({ length: 500 }, (_, index) => accept(`t-${index}`));
    await store.close();

    const answers = await Promise.allSettled(asked);
    expect(answers.filter(({ status }) => status === 'rejected')).toEqual([]);
    store = await openFile(file);
    expect(await turnIds()).toHaveLength(500);
  });

  function commits(): number {
    return store.ran.filter((statement) => statement === 'COMMIT').length;
  }

  function accept(id: string) {
    return store.ports.turns.accept(turnRequest(id, { maxQueued: 1000 }));
  }

  async function turnIds(): Promise<string[]> {
    return (await store.ports.turns.list({ sessionId: 's', limit: 1000 })).map(({ id }) => id);
  }
});
