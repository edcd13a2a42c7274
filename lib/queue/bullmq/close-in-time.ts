import { type Queue, type Worker } from 'bullmq';
import { Deadline } from '../../common/deadline.js';

const ANSWER_MS = 1000;
const CLOSE_MS = 5000;

/**
 * Closes a queue or a worker of BullMQ, which waits without end for a server that is away: such a one gets no goodbye.
 * @returns false when it has not closed in time; its connections are then cut
 */
export async function closeInTime(part: Queue | Worker): Promise<boolean> {
  const backend = part.getBackend();
  const answers = await within(ANSWER_MS, backend.getQueueMetaField('version'));
  if (answers && (await within(CLOSE_MS, part.close()))) return true;
  // What blocks until there is a job would keep the process.
  backend.disconnectBlocking(false).catch(() => undefined);
  const closing = 'run' in part && !answers ? part.close(true) : backend.close(true);
  return (await within(ANSWER_MS, closing)) && answers;
}

/** @returns false when it has not resolved by then */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  return new Deadline(ms).wait(promise).then(
    () => true,
    () => false,
  );
}
