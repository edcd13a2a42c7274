/**
 * The queue for several processes, on BullMQ with Redis, or with PostgreSQL from BullMQ 6 on. Pass `bullmqQueue` as
 * `turns.queue` of `SessionsModule.forRoot`. Its jobs notify the workers of sessions with new turns; the turns
 * themselves are in the store. A lost, stalled or repeated job therefore neither loses nor repeats a turn.
 *
 * @packageDocumentation
 * @module nestjs-agent-sessions/bullmq
 */

import { type ConnectionOptions } from 'bullmq';
import { BullmqQueue } from './bullmq-queue.js';
import { type BullmqQueueOptions } from './bullmq-queue.options.js';

export { BullmqQueue } from './bullmq-queue.js';
export { type BullmqQueueOptions } from './bullmq-queue.options.js';

/**
 * Creates a queue for several processes, on the open-source BullMQ.
 *
 * ```ts
 * turns: { queue: bullmqQueue({ connection: { url: 'redis://localhost:6379' }, concurrency: 32 }) }
 * ```
 * @throws SessionsConfigurationError for an invalid option
 */
export function bullmqQueue<Connection = ConnectionOptions>(options: BullmqQueueOptions<Connection> = {}): BullmqQueue {
  return new BullmqQueue(options as BullmqQueueOptions<unknown> as BullmqQueueOptions);
}
