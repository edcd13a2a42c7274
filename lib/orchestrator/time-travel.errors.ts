import { CheckpointNotFoundError } from '../ledger/checkpoint.errors.js';
import { SessionConflictError } from '../ledger/session.errors.js';
import { SessionsError } from '../common/sessions.error.js';
import { type Turn } from '../ledger/turn.js';

/** The orchestrator has no turn in the session to undo: none has run, or all are undone. HTTP 409. */
export class NothingToUndoError extends SessionsError {
  static override readonly codes = ['NOTHING_TO_UNDO'];
  readonly code = 'NOTHING_TO_UNDO';
  /** A retry cannot succeed. */
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    readonly sessionId: string,
  ) {
    super(`Session ${sessionId} has no turn of ${orchestrator} to undo. Send a new message instead.`);
  }
}

/** Recreates the error of a rejected command from its turn's record. */
export function readCommandFailure({ request, error }: Turn): SessionsError | undefined {
  const isRewound = request.command !== undefined || request.replaces !== undefined;
  if (!isRewound || !error?.details) return undefined;
  const { orchestrator, sessionId, turnIndex } = error.details as {
    readonly orchestrator: string;
    readonly sessionId: string;
    readonly turnIndex: number;
  };
  switch (error.code) {
    case 'NOTHING_TO_UNDO':
      return new NothingToUndoError(orchestrator, sessionId);
    case 'SESSION_NOT_EMPTY':
      return new SessionConflictError(sessionId, error.code);
    case 'CHECKPOINT_PRUNED':
    case 'CHECKPOINT_NOT_FOUND':
      return new CheckpointNotFoundError(orchestrator, sessionId, turnIndex, error.code);
    default:
      return undefined;
  }
}
