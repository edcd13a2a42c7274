import { inspect } from 'node:util';
import { closestOf } from '../common/known-keys.js';
import { SessionsError } from '../common/sessions.error.js';
import { HandlerError } from '../ledger/handler.error.js';
import { TaskError } from '../state/task.errors.js';
import { type Turn } from '../ledger/turn.js';

/** A step without a key has the same name as a step that runs, or ran, in parallel with another one (FIX-02). */
export function stepKeyRequired(step: string): HandlerError {
  const message =
    `Step ${JSON.stringify(step)} is repeated without a key where steps run in parallel: after a retry, its result could ` +
    `reach another call. Add a key: turn.step(${JSON.stringify(step)}, work, { key: order.id }).`;
  return new HandlerError('STEP_KEY_REQUIRED', message, { logged: message, details: { step } });
}

/**
 * A step was called in the asynchronous context of another call, which has ended or belongs to another turn (FIX-82).
 * @param call the call that was rejected
 * @param context the call whose context it runs in
 */
export function wrongStepContext(call: string, context: string): HandlerError {
  const message =
    `${call} runs in the asynchronous context of ${context}, so its own step or tool call is unknown. A limiter or pool ` +
    'has started the code there. Give it AsyncResource.bind(task), or call `info.step` instead of `turn.step`.';
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
  const hint = hintOf(intent, known);
  return new HandlerError(
    'UNKNOWN_INTENT',
    `Orchestrator ${orchestrator} has no intent ${JSON.stringify(intent)}.${hint}`,
    {
      permanent: chosenBy === 'code',
      logged: `the route chose an intent that orchestrator ${orchestrator} does not have.${hint}`,
      details: { orchestrator, intent, known },
    },
  );
}

function hintOf(intent: string, known: readonly string[]): string {
  const close = closestOf(intent, known);
  return `${close === undefined ? '' : ` Did you mean ${JSON.stringify(close)}?`} It has: ${known.join(', ')}.`;
}

/** A route returned an empty list of intents. The turn is retried within its limit (FIX-08). */
export function noIntent(orchestrator: string): HandlerError {
  const message =
    `The route of orchestrator ${orchestrator} returned no intent. Expected the name of an intent, a list of names, or END ` +
    'for a turn that needs none.';
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
  const message = `Orchestrator ${orchestrator}: the new state does not match its schema: ${path} ${rule}`;
  return new HandlerError('STATE_SCHEMA', message, { details: { orchestrator, path, rule } });
}

/** The differences between a checkpoint and the orchestrator that loads it. */
export interface Drift {
  readonly orchestrator: string;
  readonly savedVersion: string;
  readonly currentVersion: string;
  /**
   * True if a newer version of the orchestrator wrote the checkpoint. The turn is then retried, because a worker of
   * that version may run it.
   */
  readonly isNewer: boolean;
  /** True if the orchestrator has migrations, but none from this version. */
  readonly lacksMigration: boolean;
  /** Intents that the orchestrator no longer has. */
  readonly missing: readonly string[];
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
    super(messageOf(savedSignature, currentSignature, drift));
    this.permanent = !drift?.isNewer;
    if (drift && !drift.isNewer) this.cure = cureOf(drift);
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

/** Builds the message. It names no session, because it is logged too. */
function messageOf(saved: string, current: string, drift?: Drift): string {
  const parts = 'intents, routing, windows, iterations or state schema';
  const structure = `another structure (${parts}: ${saved.slice(0, 12)}, now ${current.slice(0, 12)})`;
  if (!drift)
    return `The session's last checkpoint was written by ${structure}. Adopt the current one with force: true.`;
  const { orchestrator, savedVersion, currentVersion, isNewer, lacksMigration, missing } = drift;
  const writtenBy = `Orchestrator ${orchestrator}: the session's last checkpoint was written by`;
  if (isNewer) {
    return (
      `${writtenBy} version ${savedVersion}, which is newer than ${currentVersion} in this process. A process with version ${savedVersion} ` +
      `must run the turn. To continue with ${currentVersion}, use force: true.`
    );
  }
  const removed = missing.length > 0 ? ` Intents that were removed or renamed: ${missing.join(', ')}.` : '';
  const advice = `a migration. During development, start new sessions or use force: true.${removed}`;
  if (lacksMigration) {
    return `${writtenBy} version ${savedVersion}, and no migration leads from it to ${currentVersion}. Add ${advice}`;
  }
  return savedVersion === currentVersion
    ? `${writtenBy} ${structure}, but the version is still ${currentVersion}. Set a new version and add ${advice}`
    : `${writtenBy} version ${savedVersion}, with ${structure}. Add ${advice}`;
}

/** The two options to add. They say that the state does not change, which only the application knows. */
function cureOf({ orchestrator, savedVersion, currentVersion }: Drift): string {
  const version = savedVersion === currentVersion ? versionAfter(currentVersion) : currentVersion;
  const [from, to] = [savedVersion, version].map((each) => inspect(each));
  return (
    `If the state does not change, set these options of ${orchestrator}:\n` +
    `  version: ${to},\n` +
    `  migrations: [{ from: ${from}, to: ${to}, migrate: (state) => state }],`
  );
}

/** Increases the last number: `1.9` becomes `1.10`, `2026-08` becomes `2026-09`. */
function versionAfter(version: string): string {
  const [last = ''] = /\d+$/.exec(version) ?? [];
  if (last === '') return `${version}2`;
  const next = String(BigInt(last) + 1n).padStart(last.length, '0');
  return version.slice(0, version.length - last.length) + next;
}
