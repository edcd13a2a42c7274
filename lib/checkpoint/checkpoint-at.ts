import { CheckpointNotFoundError, CheckpointPrunedError } from './checkpoint.errors.js';
import { type CheckpointStore } from './checkpoint.store.js';
import { type Checkpoint } from './checkpoint.js';

/**
 * The checkpoint at an index, or the latest.
 * @throws CheckpointPrunedError when it was there, CheckpointNotFoundError when it never was
 */
export async function checkpointAt(
  checkpoints: CheckpointStore,
  orchestrator: string,
  sessionId: string,
  turnIndex?: number,
): Promise<Checkpoint> {
  const found = await checkpoints.load(orchestrator, sessionId, turnIndex);
  if (found) return found;
  const latest = await checkpoints.load(orchestrator, sessionId);
  if (turnIndex !== undefined && latest && latest.turnIndex > turnIndex) {
    throw new CheckpointPrunedError(orchestrator, sessionId, turnIndex);
  }
  throw new CheckpointNotFoundError(orchestrator, sessionId, turnIndex);
}

/**
 * The id of the first turn behind a checkpoint that has said something: one that goes on from the checkpoint right before
 * it, which an undo does not.
 * @throws CheckpointPrunedError when that is not known any more
 */
export async function turnAfter(
  checkpoints: CheckpointStore,
  { orchestrator, sessionId, turnIndex }: Checkpoint,
): Promise<string | null> {
  for (let index = turnIndex + 1; ; index += 1) {
    const next = await checkpoints.load(orchestrator, sessionId, index);
    if (next?.turnId !== undefined && next.parent === index - 1) return next.turnId;
    if (next) continue;
    const latest = await checkpoints.load(orchestrator, sessionId);
    if (latest && latest.turnIndex >= index) throw new CheckpointPrunedError(orchestrator, sessionId, turnIndex);
    return null;
  }
}
