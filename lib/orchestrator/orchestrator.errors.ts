import { SessionsError } from '../common/sessions.error.js';
import { TaskNotFoundError } from '../state/task.errors.js';
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

/** The state does not fit the orchestrator's `stateSchema` (BOT-07): the turn fails, and nothing of it is stored. HTTP 500. */
export class StateSchemaError extends SessionsError {
  readonly code = 'STATE_SCHEMA';
  readonly permanent = true;

  constructor(
    readonly orchestrator: string,
    readonly path: string,
    readonly rule: string,
  ) {
    super(`Orchestrator ${orchestrator}: the new state does not fit its schema: ${path} ${rule}`);
  }
}

/** How a checkpoint and the orchestrator that loads it differ. */
export interface Drift {
  readonly savedVersion: string;
  readonly currentVersion: string;
  /** A newer version of the orchestrator wrote it: a worker of that version may take the turn, so that it is tried again. */
  readonly isNewer: boolean;
  /** The orchestrator has migrations, and none of them leads here. */
  readonly lacksMigration: boolean;
}

/**
 * The session's last checkpoint was written by an orchestrator of another structure, or of a version from which no migration
 * leads here (BOT-23); nothing was dispatched. Migrate the session's state, or adopt the present orchestrator once with
 * `force: true`. HTTP 409.
 */
export class OrchestratorDriftError extends SessionsError {
  readonly code = 'ORCHESTRATOR_DRIFT';
  readonly permanent: boolean;
  /** The turn that failed of it; its callers are told. */
  readonly turnId?: string;

  /** @hidden */
  constructor(
    readonly savedSignature: string,
    readonly currentSignature: string,
    readonly sessionId: string,
    drift?: Drift,
  ) {
    super(
      `The last checkpoint of session ${sessionId} was written by ${writerOf(savedSignature, currentSignature, drift)}. ` +
        'Adopt the present one with force: true.',
    );
    this.permanent = !drift?.isNewer;
  }
}

/** The errors of orchestrators that callers of a turn get as they were thrown, made again from the turn's record. */
export function readOrchestratorFailure({ id, request, error }: Turn): SessionsError | undefined {
  if (error?.code === 'TASK_NOT_FOUND' && error.details?.taskId === request.taskId) {
    const { sessionId, taskId } = error.details as Record<string, string>;
    return new TaskNotFoundError(sessionId, taskId);
  }
  if (error?.code !== 'ORCHESTRATOR_DRIFT' || !error.details) return undefined;
  const { savedSignature, currentSignature, sessionId } = error.details as Record<string, string>;
  const drift = new OrchestratorDriftError(savedSignature, currentSignature, sessionId);
  return Object.assign(drift, { message: error.message, turnId: id });
}

function writerOf(saved: string, current: string, drift?: Drift): string {
  const structures = `(${saved.slice(0, 12)}, now ${current.slice(0, 12)})`;
  if (!drift) return `another structure of the orchestrator ${structures}`;
  const { savedVersion, currentVersion, isNewer, lacksMigration } = drift;
  if (isNewer) return `a newer version of the orchestrator (${savedVersion}, here ${currentVersion})`;
  const structure = `another structure of the orchestrator ${structures}`;
  return lacksMigration ? `version ${savedVersion}, and no migration leads from it to ${currentVersion}` : structure;
}
