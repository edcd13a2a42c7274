import { type Queue, type Worker } from 'bullmq';

/** The parts of a BullMQ backend that this package uses. */
export interface Backend {
  getQueueMetaField(field: string): Promise<unknown>;
  disconnectBlocking(wait: boolean): Promise<void>;
  close(force: boolean): Promise<void>;
}

/** A connection of BullMQ 5. */
interface RedisConnection {
  readonly client: Promise<{ hget(key: string, field: string): Promise<unknown> }>;
  disconnect(wait: boolean): Promise<void>;
  close(force: boolean): Promise<void>;
}

/** A queue or a worker of BullMQ 5, in place of a backend. Only a worker has a blocking connection. */
interface RedisPart {
  readonly keys: { readonly meta: string };
  readonly connection: RedisConnection;
  readonly blockingConnection?: RedisConnection;
}

/** Returns the backend of a queue or a worker. BullMQ 5 has none, so its connections to Redis act as one (DAY-07). */
export function backendOf(part: Queue | Worker): Backend {
  if ('getBackend' in part) return part.getBackend();
  const { keys, connection, blockingConnection } = part as unknown as RedisPart;
  return {
    getQueueMetaField: async (field) => (await connection.client).hget(keys.meta, field),
    disconnectBlocking: async (wait) => blockingConnection?.disconnect(wait),
    close: async (force) => {
      await blockingConnection?.close(force);
      await connection.close(force);
    },
  };
}
