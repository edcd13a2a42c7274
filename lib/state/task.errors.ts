import { SessionsError } from '../common/sessions.error.js';
import { statesAfter, type TaskState } from './task.js';

interface Transition {
  readonly from: TaskState;
  readonly to: TaskState;
}

/**
 * A call names a task that it cannot use.
 *
 * - `TASK_NOT_FOUND`: the session has no task with this id. HTTP 404. A turn for it is not retried,
 * - `TASK_CONFLICT`: the session already has a task with this id. HTTP 409, without any change,
 * - `TASK_TRANSITION`: the task cannot change from its state to the requested one (STA-05). HTTP 409, without any change.
 */
export class TaskError extends SessionsError {
  static override readonly codes = ['TASK_CONFLICT', 'TASK_NOT_FOUND', 'TASK_TRANSITION'] as const;

  /** True if a retry cannot succeed: for `TASK_NOT_FOUND`. */
  readonly permanent: boolean;
  /** The state of the task (`TASK_TRANSITION`). */
  readonly from?: TaskState;
  /** The requested state (`TASK_TRANSITION`). */
  readonly to?: TaskState;
  /** The allowed next states; empty if the state is final (`TASK_TRANSITION`). */
  readonly allowed?: readonly TaskState[];

  /** @hidden */
  constructor(
    readonly code: (typeof TaskError.codes)[number],
    readonly sessionId: string,
    readonly taskId: string,
    transition?: Transition,
  ) {
    super(messageOf(code, sessionId, taskId, transition));
    this.permanent = code === 'TASK_NOT_FOUND';
    if (transition) Object.assign(this, transition, { allowed: statesAfter(transition.from) });
  }
}

function messageOf(code: string, sessionId: string, taskId: string, transition?: Transition): string {
  if (transition) {
    const { from, to } = transition;
    const allowed = statesAfter(from);
    return allowed.length === 0
      ? `Task ${taskId} is ${from} and cannot become ${to}; that is final. Create a new task instead.`
      : `Task ${taskId} is ${from} and cannot become ${to}. Allowed: ${allowed.join(', ')}.`;
  }
  return code === 'TASK_CONFLICT'
    ? `Session ${sessionId} already has a task ${taskId}. Use another id, or the existing task.`
    : `Session ${sessionId} has no task ${taskId}. Create the task first.`;
}
