import { CheckpointNotFoundError } from './checkpoint.errors.js';
import { type CheckpointStore } from './checkpoint.store.js';
import { type Checkpoint } from './checkpoint.js';

/**
 * Returns the checkpoint at an index, or the latest.
 * @throws CheckpointNotFoundError if it was removed (`CHECKPOINT_PRUNED`) or never existed
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
      : await loadUnlessPruned(checkpoints, { orchestrator, sessionId, turnIndex }, turnIndex);
  if (!found) throw new CheckpointNotFoundError(orchestrator, sessionId, turnIndex);
  return found;
}

/**
 * Iterates over the ids of the turns behind a checkpoint, in order: those that continue the checkpoint directly before
 * them, which an undo does not, or that replaced a turn.
 * @throws CheckpointNotFoundError (`CHECKPOINT_PRUNED`) if their checkpoints were removed
 */
export async function* turnsAfter(checkpoints: CheckpointStore, checkpoint: Checkpoint): AsyncGenerator<string, void> {
  for (let index = checkpoint.turnIndex + 1; ; index += 1) {
    const next = await loadUnlessPruned(checkpoints, checkpoint, index);
    if (!next) return;
    if (next.turnId !== undefined && (next.parent === index - 1 || next.replaces !== undefined)) yield next.turnId;
  }
}

/**
 * Returns the checkpoint at an index; `null` if the index was not reached yet.
 * @throws CheckpointNotFoundError (`CHECKPOINT_PRUNED`) if it was removed
 */
async function loadUnlessPruned(
  checkpoints: CheckpointStore,
  { orchestrator, sessionId, turnIndex }: Pick<Checkpoint, 'orchestrator' | 'sessionId' | 'turnIndex'>,
  index: number,
): Promise<Checkpoint | null> {
  const found = await checkpoints.load(orchestrator, sessionId, index);
  if (found) return found;
  const latest = await checkpoints.load(orchestrator, sessionId);
  if (!latest || latest.turnIndex < index) return null;
  // It may have been written between the two reads.
  const late = await checkpoints.load(orchestrator, sessionId, index);
  if (late) return late;
  throw new CheckpointNotFoundError(orchestrator, sessionId, turnIndex, 'CHECKPOINT_PRUNED');
}
