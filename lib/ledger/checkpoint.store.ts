import { type Checkpoint, type NewCheckpoint } from './checkpoint.js';

/** Which checkpoints of an orchestrator in a session to list; the latest come first. */
export interface CheckpointPage {
  /** Checkpoints with an index below this one; default: from the latest. */
  readonly before?: number;
  /** How many checkpoints at most. Default 50. */
  readonly limit?: number;
}

/** How many checkpoints of an orchestrator and session are kept; `'all'` keeps every one. */
export type KeepCheckpoints = number | 'all';

/** The append-only states of every orchestrator in every session (BOT-20, BOT-21). Injectable. */
export abstract class CheckpointStore {
  /** The latest checkpoint, or the one at an index. */
  abstract load(orchestrator: string, sessionId: string, turnIndex?: number): Promise<Checkpoint | null>;
  /**
   * Adds a checkpoint and prunes to `keep`.
   * @throws CheckpointConflictError when the index is not the one after the latest, so also when sent again; nothing
   * is overwritten
   */
  abstract append(checkpoint: NewCheckpoint, keep: KeepCheckpoints): Promise<Checkpoint>;
  /** The latest first. */
  abstract history(orchestrator: string, sessionId: string, page?: CheckpointPage): Promise<Checkpoint[]>;
  /** Ids of the sessions that have checkpoints of an orchestrator and begin with `prefix`, in ascending order; default 100. */
  abstract list(orchestrator: string, page?: { prefix?: string; after?: string; limit?: number }): Promise<string[]>;
  /** Names of the orchestrators that have checkpoints in a session, in any order. */
  abstract orchestrators(sessionId: string): Promise<string[]>;
  /** Removes all but the latest `keep`. @returns how many went */
  abstract prune(orchestrator: string, sessionId: string, keep: number): Promise<number>;
  /** Deletes all checkpoints of an orchestrator in a session. */
  abstract delete(orchestrator: string, sessionId: string): Promise<void>;
}
