import { SessionsError } from '../common/sessions.error.js';
import { statesAfter, type TaskState } from './task.js';

/** The session has no task with this id. HTTP 404. */
export class TaskNotFoundError extends SessionsError {
  readonly code = 'TASK_NOT_FOUND';
  /** The turn is not retried. */
  readonly permanent = true;

  constructor(
    readonly sessionId: string,
    readonly taskId: string,
  ) {
    super(`Session ${sessionId} has no task ${taskId}.`);
  }
}

/** The session already has a task with this id. HTTP 409, without any change. */
export class TaskConflictError extends SessionsError {
  readonly code = 'TASK_CONFLICT';

  constructor(
    readonly sessionId: string,
    readonly taskId: string,
  ) {
    super(`Session ${sessionId} already has a task ${taskId}.`);
  }
}

/** The task cannot change from its state to the requested one (STA-05). HTTP 409, without any change. */
export class TaskTransitionError extends SessionsError {
  readonly code = 'TASK_TRANSITION';
  /** The allowed next states; empty if the state is final. */
  readonly allowed: readonly TaskState[];

  constructor(
    readonly sessionId: string,
    readonly taskId: string,
    readonly from: TaskState,
    readonly to: TaskState,
  ) {
    const allowed = statesAfter(from);
    super(
      `Task ${taskId} is ${from} and cannot become ${to}; ` +
        (allowed.length === 0 ? 'that is final.' : `it can become ${allowed.join(', ')}.`),
    );
    this.allowed = allowed;
  }
}
