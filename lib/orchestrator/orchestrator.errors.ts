import { SessionsError } from '../common/sessions.error.js';
import { HandlerError } from '../ledger/handler.error.js';
import { TaskError } from '../state/task.errors.js';
import { type Turn } from '../ledger/turn.js';
import { type Drift, intentHint, orchestratorMessages } from './orchestrator.messages.js';

/** A step without a key has the same name as a step that runs, or ran, in parallel with another one (FIX-02). */
export function stepKeyRequired(step: string): HandlerError {
  const message = orchestratorMessages.stepKeyRequired(step);
  return new HandlerError('STEP_KEY_REQUIRED', message, { logged: message, details: { step } });
}

/**
 * A step was called in the asynchronous context of another call, which has ended or belongs to another turn, or outside
 * of its turn while a call of the turn runs (FIX-82).
 * @param call the call that was rejected
 * @param context describes the code whose context it runs in
 */
export function wrongStepContext(call: string, context: string): HandlerError {
  const message = orchestratorMessages.wrongStepContext(call, context);
  return new HandlerError('STEP_CONTEXT', message, { logged: message });
}

/**
 * A route chose an intent that the orchestrator does not have (BOT-03). A wrong name in code fails the turn without a
 * retry (DAY-17). The log omits the name, which a model may have derived from user input.
 * @param chosenBy who chose the intent. A `model` may answer differently when it is called again (FIX-08)
 */
export function unknownIntent(
  orchestrator: string,
  intent: string,
  known: readonly string[],
  chosenBy: 'code' | 'model' = 'code',
): HandlerError {
  return new HandlerError('UNKNOWN_INTENT', orchestratorMessages.unknownIntent(orchestrator, intent, known), {
    permanent: chosenBy === 'code',
    logged: `the route chose an intent that orchestrator ${orchestrator} does not have.${intentHint(intent, known)}`,
    details: { orchestrator, intent, known },
  });
}

/** A route returned an empty list of intents. The turn is retried within its limit (FIX-08). */
export function noIntent(orchestrator: string): HandlerError {
  const message = orchestratorMessages.noIntent(orchestrator);
  return new HandlerError('NO_INTENT', message, { permanent: false, logged: message, details: { orchestrator } });
}

/**
 * A route, an intent or an outcome returned an invalid result.
 * @param problem must not contain values, because it is logged
 */
export function wrongResult(orchestrator: string, problem: string): HandlerError {
  const message = `Orchestrator ${orchestrator}: ${problem}`;
  return new HandlerError('ORCHESTRATOR_RESULT', message, { logged: message, details: { orchestrator } });
}

/** The state does not match the orchestrator's `stateSchema` (BOT-07). */
export function wrongState(orchestrator: string, path: string, rule: string): HandlerError {
  const message = orchestratorMessages.wrongState(orchestrator, path, rule);
  return new HandlerError('STATE_SCHEMA', message, { details: { orchestrator, path, rule } });
}

/**
 * The session's last checkpoint was written by a different structure of the orchestrator, or by a version without a
 * migration to the current one (BOT-23). Nothing was dispatched. Migrate the session's state, or adopt the current
 * orchestrator once with `force: true`. HTTP 409.
 */
export class OrchestratorDriftError extends SessionsError {
  static override readonly codes = ['ORCHESTRATOR_DRIFT'];
  readonly code = 'ORCHESTRATOR_DRIFT';
  readonly permanent: boolean;
  /** The turn that failed with this error; set for its callers. */
  readonly turnId?: string;
  /** The options of the orchestrator that continue its sessions if the state does not change (DAY-08). Absent after a rollback. */
  readonly cure?: string;

  /** @hidden */
  constructor(
    readonly savedSignature: string,
    readonly currentSignature: string,
    readonly sessionId: string,
    drift?: Drift,
  ) {
    super(orchestratorMessages.drift(savedSignature, currentSignature, drift));
    this.permanent = !drift?.isNewer;
    if (drift && !drift.isNewer) this.cure = orchestratorMessages.driftCure(drift);
  }

  /** @internal */
  override get forLog(): string {
    return this.cure === undefined ? this.message : `${this.message} ${this.cure.replaceAll(/\s*\n\s*/g, ' ')}`;
  }
}

/** Recreates the errors of orchestrators that callers receive as thrown, from the turn's record. */
export function readOrchestratorFailure({ id, request, error }: Turn): SessionsError | undefined {
  if (error?.code === 'TASK_NOT_FOUND' && error.details?.taskId === request.taskId) {
    const { sessionId, taskId } = error.details as Record<string, string>;
    return new TaskError('TASK_NOT_FOUND', sessionId, taskId);
  }
  if (error?.code !== 'ORCHESTRATOR_DRIFT' || !error.details) return undefined;
  const { savedSignature, currentSignature, sessionId, cure } = error.details as Record<string, string>;
  const drift = new OrchestratorDriftError(savedSignature, currentSignature, sessionId);
  return Object.assign(drift, { message: error.message, turnId: id, cure });
}
