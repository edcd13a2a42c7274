import { SessionsError } from '../common/sessions.error.js';
import { checkpointMessages } from './checkpoint.messages.js';

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
    const { notFound, pruned } = checkpointMessages;
    super((code === 'CHECKPOINT_PRUNED' ? pruned : notFound)(orchestrator, sessionId, turnIndex));
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
    super(checkpointMessages.conflict(orchestrator, sessionId, turnIndex));
  }
}
