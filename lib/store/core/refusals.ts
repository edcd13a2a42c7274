import { CheckpointConflictError } from '../../ledger/checkpoint.errors.js';
import { type SessionsError, StoreUnavailableError, TooLargeError } from '../../common/sessions.error.js';
import {
  SessionConflictError,
  SessionNotFoundError,
  SessionStateError,
  SurfaceConflictError,
  SurfaceLimitError,
} from '../../ledger/session.errors.js';
import { type SessionState } from '../../ledger/session.js';
import { StateResetError } from '../../ledger/state-reset.error.js';
import {
  IdempotencyConflictError,
  LaneDrainingError,
  LaneFullError,
  SessionBusyError,
  TurnFencedError,
  TurnNotFoundError,
  TurnSettledError,
} from '../../ledger/turn.errors.js';
import { type Turn } from '../../ledger/turn.js';
import { iso } from './iso.js';
import { storeMessages } from './store.messages.js';

/** A refusal by an operation inside a server: the code of a typed error and its constructor's arguments. */
export interface Refusal {
  readonly refused: string;
  readonly session_id: string;
  readonly surface_id: string;
  readonly held_by: string;
  readonly turn_id: string;
  readonly fence: number;
  readonly limit: number;
  readonly subject: string;
  readonly bytes: number;
  readonly max_bytes: number;
  readonly state: SessionState;
  readonly attempted: string;
  readonly alive: boolean;
  /** In milliseconds since the Unix epoch. */
  readonly since: number;
  readonly orchestrator: string;
  readonly turn_index: number;
  readonly turn: Turn;
  /** As JSON. */
  readonly namespaces: string;
}

const ERRORS: Readonly<Record<string, (refusal: Refusal) => SessionsError>> = {
  SESSION_NOT_FOUND: (no) => new SessionNotFoundError(no.session_id),
  SESSION_CONFLICT: (no) => new SessionConflictError(no.session_id),
  SURFACE_CONFLICT: (no) => new SurfaceConflictError(no.session_id, no.surface_id, no.held_by),
  SURFACE_LIMIT: (no) => new SurfaceLimitError(no.session_id, no.limit),
  TOO_LARGE: (no) => new TooLargeError(no.subject, no.bytes, no.max_bytes),
  SESSION_STATE: (no) => new SessionStateError(no.session_id, no.state, no.attempted),
  TURN_NOT_FOUND: (no) => new TurnNotFoundError(no.turn_id),
  TURN_FENCED: (no) => new TurnFencedError(no.session_id, no.turn_id, no.fence),
  TURN_SETTLED: (no) => new TurnSettledError(no.turn),
  IDEMPOTENCY_CONFLICT: (no) => new IdempotencyConflictError(no.session_id, no.turn_id),
  SESSION_BUSY: (no) => new SessionBusyError(no.session_id, no.turn_id, no.alive, iso(no.since)),
  LANE_DRAINING: (no) => new LaneDrainingError(no.session_id),
  LANE_FULL: (no) => new LaneFullError(no.session_id, no.limit),
  CHECKPOINT_CONFLICT: (no) => new CheckpointConflictError(no.orchestrator, no.session_id, no.turn_index),
  STATE_RESET: (no) => new StateResetError(no.session_id, JSON.parse(no.namespaces) as string[]),
};

export function refusalError(refusal: Refusal): SessionsError {
  const { refused } = refusal;
  if (Object.hasOwn(ERRORS, refused)) return ERRORS[refused](refusal);
  // The operation may have been carried out: the answer is not readable.
  return new StoreUnavailableError(storeMessages.unknownRefusal(String(refused)));
}
