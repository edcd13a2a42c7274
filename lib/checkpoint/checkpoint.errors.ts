import { SessionsError } from '../common/sessions.error.js';

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
