import { SessionsError } from '../common/sessions.error.js';
import { type Turn } from '../turn/turn.js';

/** A route chose an intent that the orchestrator does not have. The turn fails (BOT-03). HTTP 500. */
export class UnknownIntentError extends SessionsError {
  readonly code = 'UNKNOWN_INTENT';
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    readonly intent: string,
    readonly known: readonly string[],
  ) {
    super(`Orchestrator ${orchestrator} has no intent ${JSON.stringify(intent)}. It has: ${known.join(', ')}.`);
  }
}

/** A route, an intent or an outcome broke the rules of orchestrators. The turn fails. HTTP 500. */
export class OrchestratorResultError extends SessionsError {
  readonly code = 'ORCHESTRATOR_RESULT';
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    problem: string,
  ) {
    super(`Orchestrator ${orchestrator}: ${problem}`);
  }
}

/**
 * The session's last checkpoint was written by an orchestrator of another structure (BOT-23); nothing was dispatched.
 * Migrate the session's state, or adopt the new structure once with `force: true`. HTTP 409.
 */
export class OrchestratorDriftError extends SessionsError {
  readonly code = 'ORCHESTRATOR_DRIFT';
  readonly permanent = true;

  constructor(
    readonly savedSignature: string,
    readonly currentSignature: string,
    readonly sessionId: string,
  ) {
    super(
      `The last checkpoint of session ${sessionId} was written by another structure of the orchestrator ` +
        `(${savedSignature.slice(0, 12)}, now ${currentSignature.slice(0, 12)}). Adopt the new one with force: true.`,
    );
  }
}

/** The errors of orchestrators that callers of a turn get as they were thrown, made again from the turn's record. */
export function readOrchestratorFailure({ error }: Turn): SessionsError | undefined {
  if (error?.code !== 'ORCHESTRATOR_DRIFT' || !error.details) return undefined;
  const { savedSignature, currentSignature, sessionId } = error.details as Record<string, string>;
  const drift = new OrchestratorDriftError(savedSignature, currentSignature, sessionId);
  return Object.assign(drift, { message: error.message });
}
