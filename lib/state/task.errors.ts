import { SessionsError } from '../common/sessions.error.js';
import { statesAfter, type TaskState } from './task.js';

/** The session has no task with this id. HTTP 404. */
export class TaskNotFoundError extends SessionsError {
  readonly code = 'TASK_NOT_FOUND';
  /** A turn is not tried again for it. */
  readonly permanent = true;

  constructor(
    readonly sessionId: string,
    readonly taskId: string,
  ) {
    super(`Session ${sessionId} has no task ${taskId}.`);
  }
}

/** The session has a task with this id already. HTTP 409. Nothing was changed. */
export class TaskConflictError extends SessionsError {
  readonly code = 'TASK_CONFLICT';

  constructor(
    readonly sessionId: string,
    readonly taskId: string,
  ) {
    super(`Session ${sessionId} has a task ${taskId} already.`);
  }
}

/** The task cannot go from the state that it is in to this one (STA-05). HTTP 409. Nothing was changed. */
export class TaskTransitionError extends SessionsError {
  readonly code = 'TASK_TRANSITION';
  /** The states that may follow; none when the state is final. */
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
