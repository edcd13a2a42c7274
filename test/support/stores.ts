import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { memoryAdapter, type SessionsAdapter } from 'nestjs-agent-sessions';
import { typeormAdapter, type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';
import { type ConformanceTarget } from '../../lib/testing/index.js';
import { adapterOf, type StoreOptions } from './connections.js';
import { FAST_PLACE } from './fast-place.js';
import { IS_MATRIX } from './matrix.js';
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
  /** Opens an empty store that no other test uses. */
  readonly open: () => ConformanceTarget;
  /** Returns an empty store that several processes can open; absent if the store supports only one process. */
  readonly place?: () => StoreOptions;
}

/** Stores that need no server. */
export const EMBEDDED_STORES: readonly TestStore[] = [
  {
    name: 'memory',
    open: () => {
      // Starts at the real time, so that it agrees with the process's clock until the test moves it.
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

const SERVER_STORES: readonly TestStore[] = TEST_SERVERS.map(serverStore);

/** All stores, for tests of stores and queues. */
export const STORES: readonly TestStore[] = [...EMBEDDED_STORES, ...SERVER_STORES];

/** True in files that `npm test` leaves to `npm run test:matrix`. */
const isMatrixOnly = expect.getState().testPath?.endsWith('.matrix.spec.ts') === true;

/**
 * The stores for tests of everything above the ports: in `npm test` those without a server, in `npm run test:matrix` those with one. Files
 * that run in the matrix only use all of them there.
 */
export const BEHAVIOUR_STORES = !IS_MATRIX ? EMBEDDED_STORES : isMatrixOnly ? STORES : SERVER_STORES;

/** The {@link BEHAVIOUR_STORES} that several processes can open. */
export const SHARED_STORES = BEHAVIOUR_STORES.flatMap(({ name, place }) => (place ? [{ name, place }] : []));

export function serverStore(server: TestServer): TestStore {
  return storeAt(server.name, () => optionsOn(server, `t${randomBytes(6).toString('hex')}_`));
}

/**
 * @param prefix of tables or keys
 * @param pool options of the pool, if the store has one
 */
export function optionsOn({ type, url }: TestServer, prefix: string, pool: object = {}): StoreOptions {
  // Longer than the default, because a test machine may be busy.
  const patient = { operationTimeoutMs: 45_000 };
  if (type === 'redis') return { url, keyPrefix: prefix, ...patient };
  // Few connections, so that some calls wait for one.
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
