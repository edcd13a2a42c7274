import { type Checkpoint, type NewCheckpoint } from './checkpoint.js';

/** Selects checkpoints of an orchestrator in a session, latest first. */
export interface CheckpointPage {
  /** Returns checkpoints with a lower index. Default: starts with the latest. */
  readonly before?: number;
  /** Maximum number of checkpoints. Default 50. */
  readonly limit?: number;
}

/** The number of checkpoints to keep per orchestrator and session; `'all'` keeps every one. */
export type KeepCheckpoints = number | 'all';

/** Stores the append-only states of every orchestrator in every session (BOT-20, BOT-21). Injectable. */
export abstract class CheckpointStore {
  /** Returns the latest checkpoint, or the one at an index. */
  abstract load(orchestrator: string, sessionId: string, turnIndex?: number): Promise<Checkpoint | null>;
  /**
   * Appends a checkpoint and prunes to `keep`.
   * @throws CheckpointConflictError if the index does not follow the latest one, for example in a repeated call; the
   * stored checkpoints are unchanged
   */
  abstract append(checkpoint: NewCheckpoint, keep: KeepCheckpoints): Promise<Checkpoint>;
  /** Lists checkpoints, latest first. */
  abstract history(orchestrator: string, sessionId: string, page?: CheckpointPage): Promise<Checkpoint[]>;
  /**
   * Lists ids of sessions with checkpoints of an orchestrator that start with `prefix`, in ascending order. Default
   * limit 100.
   */
  abstract list(orchestrator: string, page?: { prefix?: string; after?: string; limit?: number }): Promise<string[]>;
  /** Returns the names of orchestrators with checkpoints in a session, in any order. */
  abstract orchestrators(sessionId: string): Promise<string[]>;
  /** Removes all but the latest `keep` checkpoints. @returns the number of removed checkpoints */
  abstract prune(orchestrator: string, sessionId: string, keep: number): Promise<number>;
  /** Deletes all checkpoints of an orchestrator in a session. */
  abstract delete(orchestrator: string, sessionId: string): Promise<void>;
}
