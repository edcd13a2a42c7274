import { SessionsError } from '../common/sessions.error.js';

/** The session has no checkpoint of this orchestrator at this index, or none at all. HTTP 404. */
export class CheckpointNotFoundError extends SessionsError {
  readonly code = 'CHECKPOINT_NOT_FOUND';
  /** A retry cannot succeed. */
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    readonly sessionId: string,
    /** The requested index. Default: the latest. */
    readonly turnIndex?: number,
  ) {
    const which = turnIndex === undefined ? 'no checkpoint' : `no checkpoint ${turnIndex}`;
    super(`Session ${sessionId} has ${which} of ${orchestrator}.`);
  }
}

/** The checkpoint was pruned by `keepCheckpoints`, so it cannot be restored. HTTP 410. */
export class CheckpointPrunedError extends SessionsError {
  readonly code = 'CHECKPOINT_PRUNED';
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    readonly sessionId: string,
    readonly turnIndex: number,
  ) {
    super(
      `Checkpoint ${turnIndex} of ${orchestrator} in session ${sessionId} was removed. ` +
        'Increase keepCheckpoints of the orchestrator to keep more checkpoints.',
    );
  }
}

/** Another writer wrote this turn index first. HTTP 409. The stored checkpoint is unchanged. */
export class CheckpointConflictError extends SessionsError {
  readonly code = 'CHECKPOINT_CONFLICT';

  constructor(
    readonly orchestrator: string,
    readonly sessionId: string,
    readonly turnIndex: number,
  ) {
    super(
      `Checkpoint ${turnIndex} of ${orchestrator} in session ${sessionId} is not the next one: another writer wrote it first.`,
    );
  }
}
