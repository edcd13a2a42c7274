import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryAdapter, type SessionsAdapter } from 'nestjs-agent-sessions';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { type ConformanceTarget } from '../../lib/testing/index.js';

const folders: string[] = [];

/** A worker of jest runs many test files, and ends without telling them. */
afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder that is removed after the file's last test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-sessions-'));
  folders.push(folder);
  return folder;
}

export function sqliteAdapter(file = join(temporaryFolder(), 'sessions.db')): SessionsAdapter {
  return typeormAdapter({ dataSource: { type: 'better-sqlite3', database: file } });
}

export interface TestStore {
  readonly name: string;
  /** Empty, and nobody else's. */
  readonly open: () => ConformanceTarget;
}

/** Every store that a behaviour must hold on, by name. */
export const STORES: readonly TestStore[] = [
  {
    name: 'memory',
    open: () => {
      let now = Date.parse('2026-11-21T08:00:00.000Z');
      return {
        adapter: memoryAdapter({ clock: () => now }),
        elapse: async (ms) => {
          now += ms;
        },
      };
    },
  },
  {
    name: 'sqlite',
    open: () => {
      const file = join(temporaryFolder(), 'sessions.db');
      return { adapter: sqliteAdapter(file), connect: () => sqliteAdapter(file) };
    },
  },
  ...serverStore('postgres', 'postgres', process.env.TEST_POSTGRES_URL),
  ...serverStore('mariadb', 'mysql', process.env.TEST_MYSQL_URL),
];

/** A store on a server that the test run has started; none when SKIP_SERVICES leaves it out. */
function serverStore(name: string, type: 'postgres' | 'mysql', url: string | undefined): TestStore[] {
  if (url === undefined) return [];
  const open = (): ConformanceTarget => {
    const tablePrefix = `t${randomBytes(6).toString('hex')}_`;
    // As many connections as a small application has, so that some calls wait for one.
    const connect = (migrationsRun: boolean): SessionsAdapter =>
      typeormAdapter({ dataSource: { type, url, poolSize: 8 }, tablePrefix, migrationsRun });
    return { adapter: connect(true), connect: () => connect(false) };
  };
  return [{ name, open }];
}
