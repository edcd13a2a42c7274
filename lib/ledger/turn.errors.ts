import { SessionsError } from '../common/sessions.error.js';
import { turnMessages } from './turn.messages.js';
import { type Turn, type TurnErrorRecord } from './turn.js';

/** The turn does not exist. HTTP 404. */
export class TurnNotFoundError extends SessionsError {
  static override readonly codes = ['TURN_NOT_FOUND'];
  readonly code = 'TURN_NOT_FOUND';

  constructor(
    readonly turnId: string,
    message = turnMessages.notFound(turnId),
  ) {
    super(message);
  }
}

/**
 * The worker no longer holds the turn: its lease expired and another worker claimed it, or its session was deleted.
 * The rejected write changed nothing. Thrown to workers only, never to callers of a turn.
 */
export class TurnFencedError extends SessionsError {
  static override readonly codes = ['TURN_FENCED'];
  readonly code = 'TURN_FENCED';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
    readonly fence: number,
  ) {
    super(turnMessages.fenced(sessionId, turnId));
  }

  /** @internal */
  override get forLog(): string {
    return 'The attempt is over: the turn has ended, or another worker has claimed it.';
  }
}

/** The turn has settled and cannot be changed. HTTP 409. */
export class TurnSettledError extends SessionsError {
  static override readonly codes = ['TURN_SETTLED'];
  readonly code = 'TURN_SETTLED';
  readonly sessionId: string;
  readonly turnId: string;

  constructor(turn: Turn) {
    super(turnMessages.settled(turn.id, turn.status));
    this.sessionId = turn.sessionId;
    this.turnId = turn.id;
  }
}

/** The turn failed permanently: its handler threw on every attempt, or its workers were lost (BOT-08). HTTP 500. */
export class TurnFailedError extends SessionsError {
  static override readonly codes = ['TURN_FAILED'];
  readonly code = 'TURN_FAILED';
  readonly sessionId: string;
  readonly turnId: string;
  /** The last failure, for logs; may name internals. */
  readonly failure: TurnErrorRecord | undefined;

  constructor(turn: Turn) {
    super(turnMessages.failed(turn.id));
    this.sessionId = turn.sessionId;
    this.turnId = turn.id;
    this.failure = turn.error;
  }
}

/** The turn was cancelled before it settled. HTTP 409. */
export class TurnCancelledError extends SessionsError {
  static override readonly codes = ['TURN_CANCELLED'];
  readonly code = 'TURN_CANCELLED';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
  ) {
    super(turnMessages.cancelled(turnId));
  }
}

/** A later message replaced the turn before it started (TRN-06). HTTP 409. */
export class TurnSupersededError extends SessionsError {
  static override readonly codes = ['TURN_SUPERSEDED'];
  readonly code = 'TURN_SUPERSEDED';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
    /** The id of the turn that replaced it. */
    readonly supersededBy: string,
  ) {
    super(turnMessages.superseded(turnId, supersededBy));
  }
}

/** The caller stopped waiting; the turn continues (TRN-10). HTTP 504. */
export class TurnWaitTimeoutError extends SessionsError {
  static override readonly codes = ['TURN_WAIT_TIMEOUT'];
  readonly code = 'TURN_WAIT_TIMEOUT';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
    readonly timeoutMs: number,
  ) {
    super(turnMessages.waitTimeout(turnId, timeoutMs));
  }
}

/**
 * An attempt ran longer than `turns.timeoutMs` (`TURN_TIMEOUT`): it counts as failed, and the turn is retried (TRN-08, TRN-09). Or
 * `waitFor` received no signal in time, and `onTimeout` is not set (`TURN_SIGNAL_TIMEOUT`): the turn fails (TRN-13). HTTP 500.
 */
export class TurnTimeoutError extends SessionsError {
  static override readonly codes = ['TURN_SIGNAL_TIMEOUT', 'TURN_TIMEOUT'] as const;
  readonly code: (typeof TurnTimeoutError.codes)[number];
  /** True if a retry cannot succeed: for `TURN_SIGNAL_TIMEOUT`. */
  readonly permanent: boolean;
  /** The name of the signal (`TURN_SIGNAL_TIMEOUT`). */
  readonly signal?: string;

  /** @param signal the signal that the turn has waited for. Default: the attempt has run too long */
  constructor(
    readonly turnId: string,
    /** The limit in milliseconds. */
    readonly timeoutMs: number,
    signal?: string,
  ) {
    super(signal === undefined ? turnMessages.timeout(turnId, timeoutMs) : turnMessages.signalTimeout(turnId, signal));
    this.code = signal === undefined ? 'TURN_TIMEOUT' : 'TURN_SIGNAL_TIMEOUT';
    this.permanent = signal !== undefined;
    if (signal !== undefined) this.signal = signal;
  }

  /** Omits the signal's name, which often contains an id. @internal */
  override get forLog(): string {
    return this.code === 'TURN_TIMEOUT'
      ? `The attempt exceeded turns.timeoutMs (${this.timeoutMs} ms).`
      : 'A signal that the turn waited for did not arrive in time.';
  }
}

/**
 * A client asks for a stream that would be empty: it has already received the turn's last event, `settled` (`TURN_EVENTS_ENDED`,
 * TRN-32), or its chat has no open turn (`NOTHING_TO_RESUME`, AIS-10). HTTP 204, which stops an EventSource from reconnecting.
 */
export class NothingToStreamError extends SessionsError {
  static override readonly codes = ['NOTHING_TO_RESUME', 'TURN_EVENTS_ENDED'] as const;
  readonly sessionId?: string;
  readonly turnId?: string;

  /** @hidden */
  constructor(
    readonly code: (typeof NothingToStreamError.codes)[number],
    message: string,
    turn?: Pick<Turn, 'id' | 'sessionId'>,
  ) {
    super(message);
    if (turn) Object.assign(this, { sessionId: turn.sessionId, turnId: turn.id });
  }
}

/** This process is stopping and no longer waits for turns. An accepted turn continues in another process (TRN-14). HTTP 503. */
export class ShuttingDownError extends SessionsError {
  static override readonly codes = ['SHUTTING_DOWN'];
  readonly code = 'SHUTTING_DOWN';

  constructor(
    readonly sessionId?: string,
    readonly turnId?: string,
  ) {
    super(turnId ? turnMessages.continuedElsewhere(turnId) : turnMessages.shuttingDown());
  }
}

/** A handler waits for a turn that cannot settle before the handler returns (TRN-12, FIX-04). HTTP 409. */
export class TurnReentryError extends SessionsError {
  static override readonly codes = ['TURN_REENTRY'];
  readonly code = 'TURN_REENTRY';
  readonly permanent = true;

  constructor(readonly sessionId: string) {
    super(turnMessages.reentry(sessionId));
  }
}

const PROCESS_LIMITS = {
  TOO_MANY_STREAMS: turnMessages.tooManyStreams,
  TOO_MANY_WAITING_PARENTS: turnMessages.tooManyWaitingParents,
};

/**
 * A limit of this process is reached: of handlers that wait for other turns, `turns.maxWaitingParents` (`TOO_MANY_WAITING_PARENTS`,
 * FIX-03, HTTP 503), or of open streams of a user, `maxStreamsPerPrincipal` (`TOO_MANY_STREAMS`, HTTP 429).
 */
export class ProcessLimitError extends SessionsError {
  static override readonly codes = ['TOO_MANY_STREAMS', 'TOO_MANY_WAITING_PARENTS'] as const;

  /** An estimate in milliseconds. */
  readonly retryAfterMs = 1000;

  constructor(
    readonly code: (typeof ProcessLimitError.codes)[number],
    readonly limit: number,
  ) {
    super(PROCESS_LIMITS[code](limit));
  }
}

/** The idempotency key was used with another orchestrator or input (TRN-05). HTTP 422. */
export class IdempotencyConflictError extends SessionsError {
  static override readonly codes = ['IDEMPOTENCY_CONFLICT'];
  readonly code = 'IDEMPOTENCY_CONFLICT';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
    message = turnMessages.idempotencyConflict(turnId),
  ) {
    super(message);
  }
}

/** The session is busy and its policy rejects new turns (TRN-06). HTTP 409. */
export class SessionBusyError extends SessionsError {
  static override readonly codes = ['SESSION_BUSY'];
  readonly code = 'SESSION_BUSY';

  constructor(
    readonly sessionId: string,
    /** The turn that holds the lane or is next to hold it. */
    readonly turnId: string,
    /** True if a worker holds the turn with a live lease. */
    readonly holderAlive: boolean,
    /** The time when it started or was accepted; ISO-8601. */
    readonly since: string,
  ) {
    super(turnMessages.busy(sessionId, turnId, since));
  }
}

/** The lane already has `maxQueuedPerSession` queued turns (TRN-07). HTTP 429. */
export class LaneFullError extends SessionsError {
  static override readonly codes = ['LANE_FULL'];
  readonly code = 'LANE_FULL';
  /** An estimate in milliseconds. */
  readonly retryAfterMs = 1000;

  constructor(
    readonly sessionId: string,
    readonly limit: number,
  ) {
    super(turnMessages.laneFull(sessionId, limit));
  }
}

/** The lane, or every lane, accepts no turns until it is resumed (TRN-11). HTTP 503. */
export class LaneDrainingError extends SessionsError {
  static override readonly codes = ['LANE_DRAINING'];
  readonly code = 'LANE_DRAINING';
  /** An estimate in milliseconds. */
  readonly retryAfterMs = 5000;

  constructor(readonly sessionId: string) {
    super(turnMessages.laneDraining(sessionId));
  }
}

/**
 * Thrown by a handler to fail its turn without retries (TRN-08). HTTP 500 outside of turns. A subclass may set its own `code`, which
 * callers of the turn find in `failure.code` of TurnFailedError.
 */
export class PermanentTurnError extends SessionsError {
  static override readonly codes = ['PERMANENT_TURN_ERROR'];
  readonly code: string = 'PERMANENT_TURN_ERROR';
  /** A retry cannot succeed. */
  readonly permanent = true;
}
