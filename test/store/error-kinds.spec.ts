import { type SessionsError } from 'nestjs-agent-sessions';
import Database from 'better-sqlite3';
import { asStoreError as asMysqlError, MysqlFailure } from '../../lib/store/mysql/mysql-errors.js';
import { asStoreError as asPostgresError } from '../../lib/store/postgres/postgres-errors.js';
import { asStoreError as asRedisError } from '../../lib/store/redis/redis-errors.js';
import { asStoreError as asSqliteError } from '../../lib/store/sqlite/sqlite-errors.js';

type Kind = 'outage' | 'deployment' | 'unknown' | 'rejected';

function kindOf(error: unknown): Kind {
  const { code, reason } = error as SessionsError & { readonly reason?: Kind };
  return code === 'STORE_REJECTED' ? 'rejected' : (reason ?? 'unknown');
}

describe('kinds of store errors', () => {
  it.each<[string, string, Kind]>([
    ['25006', 'cannot execute INSERT in a read-only transaction', 'outage'],
    ['53100', 'could not extend file', 'outage'],
    ['53300', 'too many clients', 'outage'],
    ['57P01', 'terminating connection due to administrator command', 'outage'],
    ['08P01', 'server conn crashed?', 'outage'],
    ['26000', 'prepared statement "s" does not exist', 'outage'],
    ['42P05', 'prepared statement "s" already exists', 'outage'],
    ['0A000', 'cached plan must not change result type', 'outage'],
    ['55P03', 'canceling statement due to lock timeout', 'outage'],
    ['22P05', 'character has no equivalent in encoding "LATIN1"', 'rejected'],
    ['54000', 'index row size exceeds maximum', 'rejected'],
    ['23514', 'violates check constraint', 'rejected'],
    ['42501', 'permission denied for table agent_step', 'deployment'],
    ['42P01', 'relation "agent_step" does not exist', 'deployment'],
    ['42883', 'function agent_settle_v1(json) does not exist', 'deployment'],
    ['0A000', 'not supported', 'unknown'],
    ['ZZ123', 'new', 'unknown'],
  ])('FIX-61 PostgreSQL %s: %s', (code, message, kind) => {
    const error = asPostgresError(Object.assign(new Error(message), { code, severity: 'ERROR' }), true);
    expect(kindOf(error)).toBe(kind);
    expect(error.message).toContain(code);
  });

  it.each<[string, string | undefined, boolean]>([
    ['55P03', 'FEHLER', false],
    ['22P05', 'FEHLER', false],
    ['25006', 'FEHLER', false],
    ['57P01', 'FATAL', true],
    ['57P01', 'SCHWERWIEGEND', true],
    ['25P03', 'SCHWERWIEGEND', true],
    ['53100', 'FEHLER', true],
    ['XX000', 'FEHLER', true],
    ['ECONNRESET', undefined, true],
  ])(
    'NST-05 a commit that PostgreSQL answers with %s and severity %s may have been applied: %s',
    (code, severity, may) => {
      const error = asPostgresError(Object.assign(new Error('no'), { code, severity }), true);
      expect((error as { maybeApplied?: boolean }).maybeApplied ?? false).toBe(may);
    },
  );

  it.each<[number, string, Kind]>([
    [1290, 'HY000', 'outage'],
    [1205, 'HY000', 'outage'],
    [1040, '08004', 'outage'],
    [1615, 'HY000', 'outage'],
    [1366, '22007', 'rejected'],
    [1406, '22001', 'rejected'],
    [1153, '08S01', 'rejected'],
    [1142, '42000', 'deployment'],
    [1146, '42S02', 'deployment'],
    [1644, '45000', 'unknown'],
    [9999, '22000', 'rejected'],
    [9999, '08S01', 'outage'],
  ])('FIX-61 MySQL %i with SQLSTATE %s', (errno, sqlState, kind) => {
    const cause = Object.assign(new Error('no'), { errno, sqlState, code: 'ER_NO' });
    expect(kindOf(asMysqlError(new MysqlFailure(cause, true)))).toBe(kind);
  });

  it.each<[string, Kind]>([
    ["OOM command not allowed when used memory > 'maxmemory'.", 'outage'],
    ['LOADING Redis is loading the dataset in memory', 'outage'],
    ["READONLY You can't write against a read only replica.", 'outage'],
    ["NOPERM this user has no permissions to run the 'set' command", 'deployment'],
    ["ERR The user executing the script can't run this command or subcommand script: a", 'deployment'],
    ['ERR string exceeds maximum allowed size (proto-max-bulk-len)', 'rejected'],
    ['ERR user_script:1: something else script: a', 'unknown'],
  ])('FIX-61 Redis: %s', (message, kind) => {
    expect(kindOf(asRedisError(Object.assign(new Error(message), { name: 'ReplyError' }), true))).toBe(kind);
  });

  it.each<[string, Kind]>([
    ['SQLITE_BUSY_SNAPSHOT', 'outage'],
    ['SQLITE_FULL', 'outage'],
    ['SQLITE_IOERR_WRITE', 'outage'],
    ['SQLITE_CONSTRAINT_CHECK', 'rejected'],
    ['SQLITE_TOOBIG', 'rejected'],
    ['SQLITE_READONLY', 'deployment'],
    ['SQLITE_CANTOPEN', 'deployment'],
    ['SQLITE_NOTICE', 'unknown'],
  ])('FIX-61 SQLite %s', (code, kind) => {
    expect(kindOf(asSqliteError(new Database.SqliteError('no', code)))).toBe(kind);
  });

  it('FIX-61 an error without an answer is an outage', () => {
    const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', errno: -104 });
    for (const error of [
      asPostgresError(reset, true),
      asMysqlError(new MysqlFailure(reset, true)),
      asRedisError(reset, true),
    ]) {
      expect(kindOf(error)).toBe('outage');
    }
  });
});
