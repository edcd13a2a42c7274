import { type JsonValue } from '../common/json.js';

/** Where a task stands; the last three are final. */
export type TaskState = 'submitted' | 'working' | 'input-required' | 'completed' | 'failed' | 'canceled';

export const TASK_STATES: readonly TaskState[] = [
  'submitted',
  'working',
  'input-required',
  'completed',
  'failed',
  'canceled',
];

const NEXT: Readonly<Record<TaskState, readonly TaskState[]>> = {
  submitted: ['working', 'failed', 'canceled'],
  working: ['input-required', 'completed', 'failed', 'canceled'],
  'input-required': ['working', 'failed', 'canceled'],
  completed: [],
  failed: [],
  canceled: [],
};

export function isTaskState(value: unknown): value is TaskState {
  return TASK_STATES.includes(value as TaskState);
}

export const TASK_STATE_RULE = `must be one of ${TASK_STATES.join(', ')}.`;

/** The states that may follow. */
export function statesAfter(state: TaskState): readonly TaskState[] {
  return NEXT[state];
}

/** A state that a task had, or has. */
export interface TaskHistoryEntry {
  readonly state: TaskState;
  /** ISO-8601, by the store's clock: when it began. */
  readonly at: string;
}

/** A task of a session (STA-05). */
export interface Task {
  readonly sessionId: string;
  readonly id: string;
  readonly state: TaskState;
  /** Given to the handlers of the task's turns; `null` until something is set. */
  readonly flowState: JsonValue;
  /** The latest 50 states, the oldest first; the last one is `state`. */
  readonly history: readonly TaskHistoryEntry[];
  /** ISO-8601, by the store's clock. */
  readonly createdAt: string;
  /** ISO-8601: the last change. */
  readonly updatedAt: string;
  /** One more with every change. */
  readonly version: number;
}
