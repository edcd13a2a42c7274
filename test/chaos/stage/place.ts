import { join } from 'node:path';
import { createPostgresBackend, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { adapterOf, type StoreOptions } from '../../support/connections.js';
import { type QueuePlace } from '../../support/queues.js';
import { CrashingServer } from './crashing-server.js';

export const STORES = ['redis', 'postgres', 'sqlite'] as const;
export type StoreName = (typeof STORES)[number];

const QUEUE = 'agent-sessions';

/** Where a run keeps its sessions and its rings: Redis for both, PostgreSQL for both, or a file without a queue. */
export class Place {
  private constructor(
    readonly name: StoreName,
    /** What the actors connect to; null for a file. */
    readonly server: CrashingServer | null,
    private readonly folder: string,
  ) {}

  static async open(name: StoreName, folder: string): Promise<Place> {
    return new Place(name, name === 'sqlite' ? null : await CrashingServer.start(name), folder);
  }

  /** @param url by which an actor finds the server */
  storeOptions(url = this.server?.url): StoreOptions {
    // Below the lease, so that a worker finds out in time that the store is silent.
    const operationTimeoutMs = 700;
    switch (this.name) {
      case 'sqlite':
        return { dataSource: { type: 'better-sqlite3', database: join(this.folder, 'sessions.db') } };
      case 'postgres':
        return { dataSource: { type: 'postgres', url, poolSize: 5 }, migrationsRun: true, operationTimeoutMs };
      case 'redis':
        return { url, operationTimeoutMs };
    }
  }

  queuePlace(url = this.server?.url): QueuePlace | undefined {
    if (this.name === 'sqlite' || url === undefined) return undefined;
    return { server: this.name, url, place: 'rings' };
  }

  /** The store, for a look at what is in it. */
  openStore(): SessionsAdapter {
    return adapterOf({ ...this.storeOptions(), operationTimeoutMs: 10_000 });
  }

  /**
   * What an idle system should not have, in words. Rings that a killed worker had heard are left out: BullMQ gives them back
   * when its own lock of half a minute has lapsed.
   */
  async leftovers(): Promise<string[]> {
    const queue = this.openQueue();
    if (!queue) return [];
    const counts = await queue.getJobCounts('waiting', 'delayed', 'prioritized', 'completed', 'failed');
    await queue.close();
    return Object.entries(counts).flatMap(([state, jobs]) => (jobs === 0 ? [] : [`${jobs} ${state} rings`]));
  }

  /** Rings for lanes that may have no need of it. */
  async ring(sessionIds: readonly string[]): Promise<void> {
    const queue = this.openQueue();
    const options = { removeOnComplete: true, removeOnFail: true };
    await queue?.addBulk(sessionIds.map((sessionId) => ({ name: 'ring', data: { sessionId }, opts: options })));
    await queue?.close();
  }

  /** Deletes everything that the queue keeps. */
  async loseRings(): Promise<void> {
    const place = this.queuePlace();
    if (place?.server === 'redis') {
      const client = new Redis(place.url);
      const keys = await client.keys(`${place.place}:*`);
      if (keys.length > 0) await client.del(keys);
      client.disconnect();
    } else if (place) {
      const client = new pg.Client({ connectionString: place.url });
      await client.connect();
      const { rows } = await client.query<{ name: string }>(
        `SELECT quote_ident(table_name) AS name FROM information_schema.tables
          WHERE table_schema = $1 AND table_type = 'BASE TABLE' AND table_name NOT LIKE '%migration%'`,
        [place.place],
      );
      for (const { name } of rows) await client.query(`DELETE FROM ${place.place}.${name}`);
      await client.end();
    }
  }

  async close(): Promise<void> {
    await this.server?.remove();
  }

  private openQueue(): Queue | null {
    const place = this.queuePlace();
    if (!place) return null;
    if (place.server === 'redis') return new Queue(QUEUE, { connection: { url: place.url }, prefix: place.place });
    // Perhaps nobody has rung yet.
    const connection = { connectionString: place.url, schema: place.place, migrate: true } as never;
    return new Queue(QUEUE, { connection }, createPostgresBackend as never);
  }
}
