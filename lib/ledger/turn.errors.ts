import { SessionsError } from '../common/sessions.error.js';
import { type Turn, type TurnErrorRecord } from './turn.js';

/** No turn has this id. HTTP 404. */
export class TurnNotFoundError extends SessionsError {
  readonly code = 'TURN_NOT_FOUND';

  constructor(readonly turnId: string) {
    super(`Turn not found: ${turnId}`);
  }
}

/**
 * The turn is no longer this worker's: its lease lapsed and another worker has it, or its session is gone.
 * What was refused changed nothing. Seen by workers, never by callers of a turn.
 */
export class TurnFencedError extends SessionsError {
  readonly code = 'TURN_FENCED';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
    readonly fence: number,
  ) {
    super(`Turn ${turnId} of session ${sessionId} is no longer held with fence ${fence}; nothing was written.`);
  }
}

/** The turn is over, so this cannot be done to it. HTTP 409. */
export class TurnSettledError extends SessionsError {
  readonly code = 'TURN_SETTLED';
  readonly sessionId: string;
  readonly turnId: string;

  constructor(turn: Turn) {
    super(`Turn ${turn.id} is already ${turn.status}.`);
    this.sessionId = turn.sessionId;
    this.turnId = turn.id;
  }
}

/** The turn failed for good: its handler threw on every attempt, or its workers were lost (BOT-08). HTTP 500. */
export class TurnFailedError extends SessionsError {
  readonly code = 'TURN_FAILED';
  readonly sessionId: string;
  readonly turnId: string;
  /** The last failure, for logs; may name internals. */
  readonly failure: TurnErrorRecord | undefined;

  constructor(turn: Turn) {
    super(`Turn ${turn.id} failed. Its state, messages and index are as before the turn.`);
    this.sessionId = turn.sessionId;
    this.turnId = turn.id;
    this.failure = turn.error;
  }
}

/** The turn was cancelled before it settled. HTTP 409. */
export class TurnCancelledError extends SessionsError {
  readonly code = 'TURN_CANCELLED';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
  ) {
    super(`Turn ${turnId} was cancelled.`);
  }
}

/** A later message took this one's place before it had begun (TRN-06). HTTP 409. */
export class TurnSupersededError extends SessionsError {
  readonly code = 'TURN_SUPERSEDED';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
    /** The turn that took its place. */
    readonly supersededBy: string,
  ) {
    super(`Turn ${turnId} was superseded by turn ${supersededBy}.`);
  }
}

/** The caller stopped waiting; the turn goes on (TRN-10). HTTP 504. */
export class TurnWaitTimeoutError extends SessionsError {
  readonly code = 'TURN_WAIT_TIMEOUT';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
    readonly timeoutMs: number,
  ) {
    super(`Turn ${turnId} has not settled within ${timeoutMs} ms. It goes on; ask for it by its id later.`);
  }
}

/** An attempt ran longer than `turns.timeoutMs`; it counts as failed, and the turn is tried again (TRN-08, TRN-09). */
export class TurnTimeoutError extends SessionsError {
  readonly code = 'TURN_TIMEOUT';

  constructor(
    readonly turnId: string,
    readonly timeoutMs: number,
  ) {
    super(`The attempt of turn ${turnId} took longer than turns.timeoutMs (${timeoutMs} ms) and was stopped.`);
  }

  /** @internal */
  override get forLog(): string {
    return `it took longer than turns.timeoutMs (${this.timeoutMs} ms).`;
  }
}

/** Thrown by `waitFor` when the signal did not come in time and there is no `onTimeout`: the turn fails (TRN-13). */
export class TurnSignalTimeoutError extends SessionsError {
  readonly code = 'TURN_SIGNAL_TIMEOUT';
  /** Waiting again cannot help. */
  readonly permanent = true;

  constructor(
    readonly turnId: string,
    readonly signal: string,
  ) {
    super(`Turn ${turnId} waited for ${JSON.stringify(signal)}, which did not come in time.`);
  }

  /** @internal */
  override get forLog(): string {
    // Its name is often made with an id.
    return 'a signal that it waited for did not come in time.';
  }
}

/**
 * The client has had the turn's last event, `settled`, so a stream would be empty (TRN-32). HTTP 204, which tells an
 * EventSource not to connect again.
 */
export class TurnEventsEndedError extends SessionsError {
  readonly code = 'TURN_EVENTS_ENDED';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
  ) {
    super(`Turn ${turnId} is over, and there are no events after this one.`);
  }
}

/** This process is stopping and waits for no more turns; an accepted turn goes on in another one (TRN-14). HTTP 503. */
export class ShuttingDownError extends SessionsError {
  readonly code = 'SHUTTING_DOWN';

  constructor(
    readonly sessionId?: string,
    readonly turnId?: string,
  ) {
    super(
      turnId
        ? `This process is stopping; turn ${turnId} goes on in another one.`
        : 'This process is stopping and takes no new turns.',
    );
  }
}

/** A handler waits for a turn that cannot end before the handler does (TRN-12, FIX-04). HTTP 409. */
export class TurnReentryError extends SessionsError {
  readonly code = 'TURN_REENTRY';
  readonly permanent = true;

  constructor(readonly sessionId: string) {
    super(
      `The handler waits for a turn of session ${sessionId}, which waits for the handler's own session, directly or through ` +
        'others, and could never end. Use submit() without waiting, or another session.',
    );
  }
}

/** `turns.maxWaitingParents` handlers of this process wait for other turns (FIX-03). HTTP 503. */
export class TooManyWaitingParentsError extends SessionsError {
  readonly code = 'TOO_MANY_WAITING_PARENTS';
  /** A guess, in milliseconds. */
  readonly retryAfterMs = 1000;

  constructor(readonly limit: number) {
    super(
      `${limit} handlers of this process already wait for other turns, which is the most that turns.maxWaitingParents allows. ` +
        'Raise it, or add processes.',
    );
  }
}

/** The idempotency key was used with another orchestrator or input (TRN-05). HTTP 422. */
export class IdempotencyConflictError extends SessionsError {
  readonly code = 'IDEMPOTENCY_CONFLICT';

  constructor(
    readonly sessionId: string,
    readonly turnId: string,
  ) {
    super(`The idempotency key belongs to turn ${turnId}, which had another input. Use a new key for a new message.`);
  }
}

/** The session is busy and the policy is to refuse (TRN-06). HTTP 409. */
export class SessionBusyError extends SessionsError {
  readonly code = 'SESSION_BUSY';

  constructor(
    readonly sessionId: string,
    /** The turn that holds the lane, or is to be the next that does. */
    readonly turnId: string,
    /** Whether a worker holds it with a live lease. */
    readonly holderAlive: boolean,
    /** Since when it runs, or was accepted; ISO-8601. */
    readonly since: string,
  ) {
    super(`Session ${sessionId} is busy with turn ${turnId} since ${since}.`);
  }
}

/** The lane has as many queued turns as `maxQueuedPerSession` allows (TRN-07). HTTP 429. */
export class LaneFullError extends SessionsError {
  readonly code = 'LANE_FULL';
  /** A guess, in milliseconds. */
  readonly retryAfterMs = 1000;

  constructor(
    readonly sessionId: string,
    readonly limit: number,
  ) {
    super(`Session ${sessionId} already has ${limit} queued turns, which is the most allowed.`);
  }
}

/** The lane, or every lane, takes no further turns until it is resumed (TRN-11). HTTP 503. */
export class LaneDrainingError extends SessionsError {
  readonly code = 'LANE_DRAINING';
  /** A guess, in milliseconds. */
  readonly retryAfterMs = 5000;

  constructor(readonly sessionId: string) {
    super(`Session ${sessionId} takes no turns at present: its lane is draining.`);
  }
}

/** No orchestrator of this name is registered in this process. HTTP 500: a mistake of the application. */
export class UnknownOrchestratorError extends SessionsError {
  readonly code = 'UNKNOWN_ORCHESTRATOR';

  constructor(
    readonly orchestrator: string,
    readonly known: readonly string[],
  ) {
    super(
      `There is no orchestrator named ${JSON.stringify(orchestrator)}. Registered: ${known.join(', ') || 'none'}. ` +
        'Register it with SessionsModule.forFeature([...]).',
    );
  }
}

/** Thrown by a handler to fail its turn at once: trying again cannot help (TRN-08). */
export class PermanentTurnError extends Error {
  readonly permanent = true;
  override readonly name = 'PermanentTurnError';
}
