import { createPostgresBackend } from 'bullmq';
import { bullmqQueue, type BullmqQueue } from 'nestjs-agent-sessions/bullmq';

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
