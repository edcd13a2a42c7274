import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { memoryAdapter, type SessionsAdapter } from 'nestjs-agent-sessions';
import { typeormAdapter, type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { adapterOf, type StoreOptions } from './connections.js';
import { FAST_PLACE } from './fast-place.js';
import { TEST_SERVERS, type TestServer } from './servers.js';
import { temporaryFolder } from './temporary-folder.js';

export { adapterOf, type StoreOptions, temporaryFolder };

export function sqliteAdapter(file?: string): SessionsAdapter {
  return typeormAdapter(sqliteOptions(file));
}

export function sqliteOptions(database = join(temporaryFolder(FAST_PLACE), 'sessions.db')): TypeormAdapterOptions {
  return { dataSource: { type: 'better-sqlite3', database } };
}

export interface TestStore {
  readonly name: string;
  /** Empty, and nobody else's. */
  readonly open: () => ConformanceTarget;
  /** An empty one that several processes can open; absent when it lives in one process. */
  readonly place?: () => StoreOptions;
}

/** Stores that need no server. */
export const EMBEDDED_STORES: readonly TestStore[] = [
  {
    name: 'memory',
    open: () => {
      // From the present on: what judges by the process's clock then agrees, as long as nobody moves this one.
      let now = Date.now();
      return {
        adapter: memoryAdapter({ clock: () => now }),
        elapse: async (ms) => {
          now += ms;
        },
        claimsOnAccept: true,
      };
    },
  },
  storeAt('sqlite', () => sqliteOptions()),
];

/** Every store that a behaviour must hold on, by name. */
export const STORES: readonly TestStore[] = [...EMBEDDED_STORES, ...TEST_SERVERS.map(serverStore)];

export function serverStore(server: TestServer): TestStore {
  return storeAt(server.name, () => optionsOn(server, `t${randomBytes(6).toString('hex')}_`));
}

/**
 * @param prefix of tables or keys
 * @param pool options of the pool, where there is one
 */
export function optionsOn({ type, url }: TestServer, prefix: string, pool: object = {}): StoreOptions {
  // Longer than the default: a test machine may be busy with other things.
  const patient = { operationTimeoutMs: 15_000 };
  if (type === 'redis') return { url, keyPrefix: prefix, ...patient };
  // As many connections as a small application has, so that some calls wait for one.
  return { dataSource: { type, url, poolSize: 8, ...pool }, tablePrefix: prefix, migrationsRun: true, ...patient };
}

function storeAt(name: string, place: () => StoreOptions): TestStore {
  const open = (): ConformanceTarget => {
    const options = place();
    return {
      adapter: adapterOf(options),
      connect: () => adapterOf(options),
      claimsOnAccept: true,
    };
  };
  return { name, open, place };
}
