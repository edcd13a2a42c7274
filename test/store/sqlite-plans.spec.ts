import { join } from 'node:path';
import { type OpenFile, openFile } from '../support/sqlite-file.js';
import { temporaryFolder } from '../support/stores.js';
import { useEverything } from '../support/use-everything.js';

/**
 * Query plans of every statement that the store prepares: SQLite must find the rows by index
 * (PRF-06 to PRF-09). The statements are recorded from real calls, so new ones are included.
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
    await useEverything(store.ports);
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
    ['turns that settled long ago', /DELETE FROM turn WHERE id IN/, 'turn_settled (settled_at<?)'],
    ['the last batch of events', /FROM turn_event .* ORDER BY last_offset DESC LIMIT 1/, 'turn_event_1 (turn_id=?)'],
    [
      'a page of events',
      /FROM turn_event .* ORDER BY last_offset$/,
      'turn_event_1 (turn_id=? AND last_offset>? AND last_offset<?)',
    ],
    ['where a page of events ends', /MIN\(last_offset\)/, 'turn_event_1 (turn_id=? AND last_offset>?)'],
    ['turns whose events have expired', /UPDATE turn SET event_ttl = NULL/, 'turn_events (<expr><?)'],
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
    [
      'all sessions of a user with a surface',
      /FROM session WHERE \+user_id = .* id IN/,
      'SEARCH session_surface USING PRIMARY KEY (surface_id=? AND user_id=?)',
    ],
    [
      'a page of the sessions of a user with a surface',
      /FROM session WHERE user_id = .* EXISTS/,
      'SEARCH session USING INDEX session_user (user_id=?)',
    ],
    ['sessions of a workspace', /FROM session WHERE workspace_id = \?/, 'session_workspace (workspace_id=?)'],
    [
      'sessions of a user in a workspace',
      /FROM session WHERE user_id = \? AND \+workspace_id = \?/,
      'session_user (user_id=?)',
    ],
    ['sessions that expired long ago', /state = 'expired' AND/, 'session_expired (state=? AND state_changed_at<?)'],
    ['sessions of a user', /FROM session WHERE user_id = \? ORDER BY/, 'session_user (user_id=?)'],
    ['sessions of a user in states', /FROM session WHERE user_id = \? AND \+?state IN/, 'session_user (user_id=?)'],
    [
      'sessions with a surface in states',
      /FROM session WHERE \+?state IN .* AND id IN/,
      'sqlite_autoindex_session_1 (id=?)',
    ],
    [
      'a later page of them',
      /FROM session WHERE user_id = \? AND last_activity_at <= \?/,
      'session_user (user_id=? AND last_activity_at<?)',
    ],
    [
      'expired documents',
      /DELETE FROM document .* expires_at <= \?/,
      'document_expiry (expires_at>? AND expires_at<?)',
    ],
    ['idle documents', /DELETE FROM document .* accessed_at/, 'document_access (namespace=? AND accessed_at<?)'],
    ['the last accessed documents', /DELETE FROM document .* accessed_at/, 'document_access (namespace=?);'],
  ])('PRF-06 finds %s by its index', (_, statement, index) => {
    const found = [...prepared].filter((sql) => statement.test(named(sql)));

    expect(found).not.toEqual([]);
    for (const sql of found) expect(named(plan(sql).join('; '))).toContain(index);
  });

  it('PRF-06 does not sort rows that an index returns in order', () => {
    const sorted = [...prepared].filter((sql) => plan(sql).includes('USE TEMP B-TREE FOR ORDER BY'));

    // Excludes sessions of one surface, which use another index.
    expect(sorted.map(named).filter((sql) => !/FROM session WHERE .*id IN/.test(sql))).toEqual([]);
  });

  function plan(sql: string): string[] {
    if (!/^(SELECT|UPDATE|DELETE)/.test(sql)) return [];
    const parameters = Array<null>(sql.split('?').length - 1).fill(null);
    const steps = store.connection.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters) as { detail: string }[];
    return steps.map(({ detail }) => detail);
  }
});

/** Returns a statement or plan in one line, without the table prefix. */
function named(sql: string): string {
  return sql.replaceAll(/"?agent_(\w+)"?/g, '$1').replaceAll(/\s+/g, ' ');
}
