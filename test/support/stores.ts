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

/** Every store that a behaviour must hold on, by name. */
export const STORES: readonly { readonly name: string; readonly open: () => ConformanceTarget }[] = [
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
];
