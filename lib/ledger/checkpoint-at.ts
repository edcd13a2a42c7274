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
  const found =
    turnIndex === undefined
      ? await checkpoints.load(orchestrator, sessionId)
      : await reached(checkpoints, { orchestrator, sessionId, turnIndex }, turnIndex);
  if (!found) throw new CheckpointNotFoundError(orchestrator, sessionId, turnIndex);
  return found;
}

/**
 * The ids of the turns behind a checkpoint, in order: those that continue from the checkpoint right before them, which an undo does not.
 * @throws CheckpointPrunedError when they are not known any more
 */
export async function* turnsAfter(checkpoints: CheckpointStore, checkpoint: Checkpoint): AsyncGenerator<string, void> {
  for (let index = checkpoint.turnIndex + 1; ; index += 1) {
    const next = await reached(checkpoints, checkpoint, index);
    if (!next) return;
    if (next.turnId !== undefined && next.parent === index - 1) yield next.turnId;
  }
}

/**
 * The checkpoint at an index; `null` when it has not come so far.
 * @throws CheckpointPrunedError when it is not kept any more
 */
async function reached(
  checkpoints: CheckpointStore,
  { orchestrator, sessionId, turnIndex }: Pick<Checkpoint, 'orchestrator' | 'sessionId' | 'turnIndex'>,
  index: number,
): Promise<Checkpoint | null> {
  const found = await checkpoints.load(orchestrator, sessionId, index);
  if (found) return found;
  const latest = await checkpoints.load(orchestrator, sessionId);
  if (!latest || latest.turnIndex < index) return null;
  // It may have come between the two.
  const late = await checkpoints.load(orchestrator, sessionId, index);
  if (late) return late;
  throw new CheckpointPrunedError(orchestrator, sessionId, turnIndex);
}
