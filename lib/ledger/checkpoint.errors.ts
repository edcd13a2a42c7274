import { SessionsError } from '../common/sessions.error.js';

/**
 * The session has no checkpoint of this orchestrator at this index, or none at all (`CHECKPOINT_NOT_FOUND`, HTTP 404), or
 * `keepCheckpoints` has removed it (`CHECKPOINT_PRUNED`, HTTP 410).
 */
export class CheckpointNotFoundError extends SessionsError {
  static override readonly codes = ['CHECKPOINT_NOT_FOUND', 'CHECKPOINT_PRUNED'] as const;

  /** A retry cannot succeed. */
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    readonly sessionId: string,
    /** The requested index. Default: the latest. */
    readonly turnIndex?: number,
    readonly code: (typeof CheckpointNotFoundError.codes)[number] = 'CHECKPOINT_NOT_FOUND',
  ) {
    const which = turnIndex === undefined ? 'no checkpoint' : `no checkpoint ${turnIndex}`;
    super(
      code === 'CHECKPOINT_PRUNED'
        ? `Checkpoint ${turnIndex} of ${orchestrator} in session ${sessionId} was removed. ` +
            'Increase keepCheckpoints of the orchestrator to keep more checkpoints.'
        : `Session ${sessionId} has ${which} of ${orchestrator}. Use an index that history() of the orchestrator returns.`,
    );
  }
}

/** Another writer wrote this turn index first. HTTP 409. The stored checkpoint is unchanged. */
export class CheckpointConflictError extends SessionsError {
  static override readonly codes = ['CHECKPOINT_CONFLICT'];
  readonly code = 'CHECKPOINT_CONFLICT';

  constructor(
    readonly orchestrator: string,
    readonly sessionId: string,
    readonly turnIndex: number,
  ) {
    super(
      `Checkpoint ${turnIndex} of ${orchestrator} in session ${sessionId} is not the next one: another writer wrote it first. ` +
        'Load the latest checkpoint again.',
    );
  }
}
