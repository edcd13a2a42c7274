import * as bullmq from 'bullmq';
import { bullmqQueue, type BullmqQueue } from 'nestjs-agent-sessions/bullmq';

/** The database of BullMQ, in the same format. */
export interface QueuePlace {
  readonly server: 'postgres' | 'redis';
  readonly url: string;
  /** The name of a schema or a key prefix that no other test uses. */
  readonly place: string;
}

export function queueAt({ server, url, place }: QueuePlace, concurrency?: number): BullmqQueue {
  if (server === 'redis') return bullmqQueue({ connection: { url }, prefix: place, concurrency });
  return bullmqQueue({
    connection: { connectionString: url, schema: place, migrate: true },
    backendFactory: bullmq.createPostgresBackend,
    concurrency,
  });
}
