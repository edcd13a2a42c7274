import { CheckpointNotFoundError, CheckpointPrunedError } from '../ledger/checkpoint.errors.js';
import { SessionsError } from '../common/sessions.error.js';
import { type Turn } from '../ledger/turn.js';

/** The orchestrator has no turn in the session that could be taken back: none has run, or all are undone. HTTP 409. */
export class NothingToUndoError extends SessionsError {
  readonly code = 'NOTHING_TO_UNDO';
  /** Trying again cannot help. */
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    readonly sessionId: string,
  ) {
    super(`There is no turn of ${orchestrator} in session ${sessionId} that could be taken back.`);
  }
}

/** A fork goes into a session of its own, and this one has messages or turns already. HTTP 409. */
export class SessionNotEmptyError extends SessionsError {
  readonly code = 'SESSION_NOT_EMPTY';
  readonly permanent = true;

  constructor(readonly sessionId: string) {
    super(
      `Session ${sessionId} is in use already. Fork into a new one: leave newSessionId out, or give an id that is free.`,
    );
  }
}

/** Why a command was refused, made again from its turn's record. */
export function readCommandFailure({ request, error }: Turn): SessionsError | undefined {
  if (!request.command || !error?.details) return undefined;
  const { orchestrator, sessionId, turnIndex } = error.details as {
    readonly orchestrator: string;
    readonly sessionId: string;
    readonly turnIndex: number;
  };
  switch (error.code) {
    case 'NOTHING_TO_UNDO':
      return new NothingToUndoError(orchestrator, sessionId);
    case 'SESSION_NOT_EMPTY':
      return new SessionNotEmptyError(sessionId);
    case 'CHECKPOINT_PRUNED':
      return new CheckpointPrunedError(orchestrator, sessionId, turnIndex);
    case 'CHECKPOINT_NOT_FOUND':
      return new CheckpointNotFoundError(orchestrator, sessionId, turnIndex);
    default:
      return undefined;
  }
}
