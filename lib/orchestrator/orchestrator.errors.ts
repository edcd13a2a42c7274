import { SessionsError } from '../common/sessions.error.js';
import { TaskNotFoundError } from '../state/task.errors.js';
import { type Turn } from '../ledger/turn.js';

/**
 * A step without a key has the name of a step that runs at the same time, or ran beside another one before: nothing tells
 * their results apart in a later attempt (FIX-02). The turn fails. HTTP 500.
 */
export class StepKeyRequiredError extends SessionsError {
  readonly code = 'STEP_KEY_REQUIRED';
  readonly permanent = true;

  /** @param step the step's name */
  constructor(readonly step: string) {
    super(
      `Step ${JSON.stringify(step)} is called again where steps run in parallel, and has no key: after a retry its result could ` +
        `reach another call. Give it one: turn.step(${JSON.stringify(step)}, work, { key: order.id }).`,
    );
  }
}

/**
 * A route chose an intent that the orchestrator does not have (BOT-03). The turn is attempted again within its retry limit,
 * because a model may answer otherwise (FIX-08). HTTP 500.
 */
export class UnknownIntentError extends SessionsError {
  readonly code = 'UNKNOWN_INTENT';

  constructor(
    readonly orchestrator: string,
    readonly intent: string,
    readonly known: readonly string[],
  ) {
    super(`Orchestrator ${orchestrator} has no intent ${JSON.stringify(intent)}. It has: ${known.join(', ')}.`);
  }

  /**
   * Without what was chosen, which a model may have made of what a user said.
   * @internal
   */
  override get forLog(): string {
    return `the route chose an intent that orchestrator ${this.orchestrator} does not have. It has: ${this.known.join(', ')}.`;
  }
}

/**
 * A route chose no intent: it returned an empty list. The turn is attempted again within its retry limit (FIX-08). HTTP 500.
 */
export class NoIntentError extends SessionsError {
  readonly code = 'NO_INTENT';

  constructor(readonly orchestrator: string) {
    super(
      `The route of orchestrator ${orchestrator} returned no intent. Expected the name of an intent, a list of names, or END ` +
        'for a turn that needs none.',
    );
  }

  /** @internal */
  override get forLog(): string {
    return this.message;
  }
}

/** A route, an intent or an outcome broke the rules of orchestrators. The turn fails. HTTP 500. */
export class OrchestratorResultError extends SessionsError {
  readonly code = 'ORCHESTRATOR_RESULT';
  readonly permanent = true;

  /** @param problem without values: it stands in logs */
  constructor(
    readonly orchestrator: string,
    problem: string,
  ) {
    super(`Orchestrator ${orchestrator}: ${problem}`);
  }

  /** @internal */
  override get forLog(): string {
    return this.message;
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
  readonly orchestrator: string;
  readonly savedVersion: string;
  readonly currentVersion: string;
  /** A newer version of the orchestrator wrote it: a worker of that version may take the turn, so that it is tried again. */
  readonly isNewer: boolean;
  /** The orchestrator has migrations, and none of them leads here. */
  readonly lacksMigration: boolean;
  /** Intents that the orchestrator had and does not have now. */
  readonly missing: readonly string[];
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
    super(messageOf(savedSignature, currentSignature, drift));
    this.permanent = !drift?.isNewer;
  }

  /** @internal */
  override get forLog(): string {
    return this.message;
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

/** It stands in logs too, so it names no session. */
function messageOf(saved: string, current: string, drift?: Drift): string {
  const parts = 'intents, routing, windows, iterations or state schema';
  const structure = `another structure (${parts}: ${saved.slice(0, 12)}, now ${current.slice(0, 12)})`;
  if (!drift)
    return `The session's last checkpoint was written by ${structure}. Adopt the present one with force: true.`;
  const { orchestrator, savedVersion, currentVersion, isNewer, lacksMigration, missing } = drift;
  const writtenBy = `Orchestrator ${orchestrator}: the session's last checkpoint was written by`;
  if (isNewer) {
    return (
      `${writtenBy} version ${savedVersion}, which is newer than ${currentVersion} here. A process with version ${savedVersion} ` +
      `takes the turn; to go on with ${currentVersion}, use force: true.`
    );
  }
  const removed = missing.length > 0 ? ` Intents that were removed or renamed: ${missing.join(', ')}.` : '';
  const to = savedVersion === currentVersion ? 'the new one' : currentVersion;
  const advice =
    `a migration: { from: '${savedVersion}', to: '${to}', migrate: (state) => state } where the state stays as it is. ` +
    `While developing: begin new sessions, or use force: true.${removed}`;
  if (lacksMigration) {
    return `${writtenBy} version ${savedVersion}, and no migration leads from it to ${currentVersion}. Add ${advice}`;
  }
  return savedVersion === currentVersion
    ? `${writtenBy} ${structure}, and the version is ${currentVersion} as before. Give it a new version and ${advice}`
    : `${writtenBy} version ${savedVersion}, with ${structure}. Add ${advice}`;
}
