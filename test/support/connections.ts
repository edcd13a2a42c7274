import { createPostgresBackend } from 'bullmq';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { bullmqQueue, type BullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { redisAdapter, type RedisAdapterOptions } from 'nestjs-agent-sessions/redis';
import { typeormAdapter, type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';

/** A store, as JSON that goes to another process. */
export type StoreOptions = TypeormAdapterOptions | RedisAdapterOptions;

export function adapterOf(options: StoreOptions): SessionsAdapter {
  return 'dataSource' in options ? typeormAdapter(options) : redisAdapter(options);
}

/** Where BullMQ keeps its rings, in the same way. */
export interface QueuePlace {
  readonly server: 'postgres' | 'redis';
  readonly url: string;
  /** Nobody else's: a schema, or a prefix of keys. */
  readonly place: string;
}

export function queueAt({ server, url, place }: QueuePlace): BullmqQueue {
  if (server === 'redis') return bullmqQueue({ connection: { url }, prefix: place });
  return bullmqQueue({
    connection: { connectionString: url, schema: place, migrate: true },
    backendFactory: createPostgresBackend,
  });
}
