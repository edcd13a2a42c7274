import { SessionsError } from '../common/sessions.error.js';

/** The session has no checkpoint of this orchestrator at this index, or none at all. HTTP 404. */
export class CheckpointNotFoundError extends SessionsError {
  readonly code = 'CHECKPOINT_NOT_FOUND';
  /** Trying again cannot help. */
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    readonly sessionId: string,
    /** Left out: the latest. */
    readonly turnIndex?: number,
  ) {
    const which = turnIndex === undefined ? 'no checkpoint' : `no checkpoint ${turnIndex}`;
    super(`Session ${sessionId} has ${which} of ${orchestrator}.`);
  }
}

/** The checkpoint was there once: `keepCheckpoints` has pruned it, and there is no way back behind it. HTTP 410. */
export class CheckpointPrunedError extends SessionsError {
  readonly code = 'CHECKPOINT_PRUNED';
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    readonly sessionId: string,
    readonly turnIndex: number,
  ) {
    super(
      `Checkpoint ${turnIndex} of ${orchestrator} in session ${sessionId} is not kept any more. ` +
        'Give the orchestrator a larger keepCheckpoints to go further back.',
    );
  }
}

/** Somebody else wrote this turn index first. HTTP 409. The stored checkpoint is untouched. */
export class CheckpointConflictError extends SessionsError {
  readonly code = 'CHECKPOINT_CONFLICT';

  constructor(
    readonly orchestrator: string,
    readonly sessionId: string,
    readonly turnIndex: number,
  ) {
    super(
      `Checkpoint ${turnIndex} of ${orchestrator} in session ${sessionId} is not the next one: another writer was first.`,
    );
  }
}
