import { checkFill } from './check-fill.js';
import { openMariadbServer } from './mariadb-server.js';
import { type Population } from './population.js';
import { openPostgresServer } from './postgres-server.js';
import { openProcessMemory } from './process-memory.js';
import { openRedisServer } from './redis-server.js';
import { openSqliteFolder } from './sqlite-folder.js';
import { type OpenStore, type StoreServer } from './store-server.js';

export const STORE_NAMES = ['sqlite', 'postgres', 'mariadb', 'redis', 'memory'] as const;
export type StoreName = (typeof STORE_NAMES)[number];

/** A store with its sessions. */
export interface FilledStore extends OpenStore {
  readonly population: Population;
}

const OPENERS: Readonly<Record<StoreName, () => Promise<StoreServer>>> = {
  sqlite: openSqliteFolder,
  postgres: openPostgresServer,
  mariadb: openMariadbServer,
  redis: openRedisServer,
  memory: openProcessMemory,
};

/** The stores of one kind. Each is filled once and used by all benchmarks. */
export class Stores {
  private readonly opened = new Map<number, Promise<FilledStore>>();

  private constructor(
    readonly name: StoreName,
    private readonly server: StoreServer,
  ) {}

  static async open(name: StoreName): Promise<Stores> {
    return new Stores(name, await OPENERS[name]());
  }

  get version(): string {
    return this.server.version;
  }

  get address(): string {
    return this.server.address;
  }

  /** Returns the store with this number of sessions, after checking it. @throws WrongAnswerError */
  with(sessions: number): Promise<FilledStore> {
    const store = this.opened.get(sessions) ?? this.fill(sessions);
    this.opened.set(sessions, store);
    return store;
  }

  async close(): Promise<void> {
    for (const store of await Promise.allSettled(this.opened.values())) {
      if (store.status === 'fulfilled') await store.value.close();
    }
    await this.server.close();
  }

  private async fill(count: number): Promise<FilledStore> {
    const population = { count, filledAt: Date.now() };
    const startedAt = performance.now();
    if (!this.server.open) throw new Error(`Nothing fills a ${this.name} store.`);
    const store = await this.server.open(population);
    if (count > 0) {
      await checkFill(store.adapter, population).catch(async (error: unknown) => {
        await store.close();
        throw error;
      });
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
      console.log(`${this.name}: filled with ${count.toLocaleString('en')} sessions in ${seconds} s`);
    }
    return { ...store, population };
  }
}
