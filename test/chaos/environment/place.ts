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

/** The store and queue of a run: Redis for both, PostgreSQL for both, or a file without a queue. */
export class Place {
  private constructor(
    readonly name: StoreName,
    /** The server of the actors; null for a file. */
    readonly server: CrashingServer | null,
    private readonly folder: string,
  ) {}

  static async open(name: StoreName, folder: string): Promise<Place> {
    return new Place(name, name === 'sqlite' ? null : await CrashingServer.start(name), folder);
  }

  /** @param url the server's address for an actor */
  storeOptions(url = this.server?.url): StoreOptions {
    // Shorter than the lease, so that a worker notices a silent store in time.
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
    return { server: this.name, url, place: 'notifications' };
  }

  /** Opens the store to read its contents. */
  openStore(): SessionsAdapter {
    return adapterOf({ ...this.storeOptions(), operationTimeoutMs: 10_000 });
  }

  /**
   * Describes data that an idle system should not have. Excludes notifications of killed workers, which BullMQ returns
   * when its lock of half a minute has lapsed.
   */
  async leftovers(): Promise<string[]> {
    const queue = this.openQueue();
    if (!queue) return [];
    const counts = await queue.getJobCounts('waiting', 'delayed', 'prioritized', 'completed', 'failed');
    await queue.close();
    return Object.entries(counts).flatMap(([state, jobs]) => (jobs === 0 ? [] : [`${jobs} ${state} notifications`]));
  }

  /** Sends notifications that may not be needed. */
  async notify(sessionIds: readonly string[]): Promise<void> {
    const queue = this.openQueue();
    const options = { removeOnComplete: true, removeOnFail: true };
    await queue?.addBulk(sessionIds.map((sessionId) => ({ name: 'notify', data: { sessionId }, opts: options })));
    await queue?.close();
  }

  /** Deletes all data of the queue. */
  async loseNotifications(): Promise<void> {
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
    // The table may not exist before the first notification.
    const connection = { connectionString: place.url, schema: place.place, migrate: true } as never;
    return new Queue(QUEUE, { connection }, createPostgresBackend as never);
  }
}
