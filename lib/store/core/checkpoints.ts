import { CheckpointConflictError } from '../../ledger/checkpoint.errors.js';
import { type CheckpointPage, CheckpointStore, type KeepCheckpoints } from '../../ledger/checkpoint.store.js';
import { type Checkpoint, type NewCheckpoint } from '../../ledger/checkpoint.js';
import { assertNotErased } from './lane.js';
import { extrasOf, toCheckpoint } from './row-mapping.js';
import { type CheckpointRow } from './rows.js';
import { type CoreDatabase, type Transaction } from './tables.js';

/** Implements checkpoints on the tables of a store. */
export class CoreCheckpoints extends CheckpointStore {
  constructor(private readonly db: CoreDatabase) {
    super();
  }

  load(orchestrator: string, sessionId: string, turnIndex?: number): Promise<Checkpoint | null> {
    return this.db.read((tx) => {
      const row =
        turnIndex === undefined
          ? tx.checkpoints.latest(orchestrator, sessionId)
          : tx.checkpoints.get({ orchestrator, sessionId, turnIndex });
      return row ? toCheckpoint(row) : null;
    });
  }

  append(checkpoint: NewCheckpoint, keep: KeepCheckpoints): Promise<Checkpoint> {
    return this.db.write((tx) => {
      assertNotErased(tx, checkpoint.sessionId);
      return toCheckpoint(appendCheckpoint(tx, checkpoint, keep));
    });
  }

  history(orchestrator: string, sessionId: string, page: CheckpointPage = {}): Promise<Checkpoint[]> {
    const { before = Number.MAX_SAFE_INTEGER, limit = 50 } = page;
    return this.db.read((tx) => tx.checkpoints.select(orchestrator, sessionId, before, limit).map(toCheckpoint));
  }

  list(orchestrator: string, page: { prefix?: string; after?: string; limit?: number } = {}): Promise<string[]> {
    const { prefix = '', after = '', limit = 100 } = page;
    return this.db.read((tx) => tx.checkpoints.sessions(orchestrator, prefix, after, limit));
  }

  orchestrators(sessionId: string): Promise<string[]> {
    return this.db.read((tx) => tx.checkpoints.orchestrators(sessionId));
  }

  prune(orchestrator: string, sessionId: string, keep: number): Promise<number> {
    return this.db.write((tx) => {
      const last = tx.checkpoints.lastIndex(orchestrator, sessionId);
      return last === undefined ? 0 : tx.checkpoints.deleteBefore(orchestrator, sessionId, last - keep + 1);
    });
  }

  delete(orchestrator: string, sessionId: string): Promise<void> {
    return this.db.write((tx) => {
      tx.checkpoints.deleteBefore(orchestrator, sessionId, Number.MAX_SAFE_INTEGER);
    });
  }
}

/** Appends a checkpoint with compare-and-set on its index, then prunes to `keep` checkpoints (BOT-21). */
export function appendCheckpoint(tx: Transaction, checkpoint: NewCheckpoint, keep: KeepCheckpoints): CheckpointRow {
  const { orchestrator, sessionId, turnIndex } = checkpoint;
  const last = tx.checkpoints.lastIndex(orchestrator, sessionId) ?? -1;
  if (turnIndex !== last + 1) {
    throw new CheckpointConflictError(orchestrator, sessionId, turnIndex);
  }
  const row: CheckpointRow = {
    orchestrator,
    sessionId,
    turnIndex,
    turnId: checkpoint.turnId ?? null,
    parent: checkpoint.parent ?? null,
    state: JSON.stringify(checkpoint.state),
    lastRoute: JSON.stringify(checkpoint.lastRoute),
    signature: checkpoint.signature,
    version: checkpoint.version,
    summarizedThrough: checkpoint.summarizedThrough,
    savedAt: tx.now,
    extras: extrasOf(checkpoint),
  };
  tx.checkpoints.insert(row);
  if (keep !== 'all') tx.checkpoints.deleteBefore(orchestrator, sessionId, turnIndex - keep + 1);
  return row;
}
