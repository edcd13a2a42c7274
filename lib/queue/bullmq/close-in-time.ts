import { type Queue, type Worker } from 'bullmq';
import { Deadline } from '../../common/deadline.js';
import { backendOf } from './backend-of.js';

const ANSWER_MS = 1000;
const CLOSE_MS = 5000;

/**
 * Closes a queue or a worker of BullMQ within a time limit. BullMQ's own `close` would wait forever for an unavailable
 * server.
 * @returns false if it did not close in time; its connections are then cut
 */
export async function closeInTime(part: Queue | Worker): Promise<boolean> {
  const backend = backendOf(part);
  const answers = await within(ANSWER_MS, backend.getQueueMetaField('version'));
  if (answers && (await within(CLOSE_MS, part.close()))) return true;
  // A blocking wait for a job would keep the process running.
  backend.disconnectBlocking(false).catch(() => undefined);
  const closing = 'run' in part && !answers ? part.close(true) : backend.close(true);
  return (await within(ANSWER_MS, closing)) && answers;
}

/** @returns false if the promise did not resolve in time */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  return new Deadline(ms).wait(promise).then(
    () => true,
    () => false,
  );
}
