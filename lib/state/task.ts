import { type JsonValue } from '../common/json.js';

/** A task of a session (STA-05). */
export interface TaskRecord {
  readonly sessionId: string;
  readonly id: string;
  /** The last three states are final. */
  readonly state: 'submitted' | 'working' | 'input-required' | 'completed' | 'failed' | 'canceled';
  /** Passed to the handlers of the task's turns; `null` until it is set. */
  readonly flowState: JsonValue;
  /**
   * The latest 50 states, oldest first. The last one is `state`. `at` is the time when the state began: ISO-8601, by the
   * store's clock.
   */
  readonly history: readonly { readonly state: TaskRecord['state']; readonly at: string }[];
  /** ISO-8601, by the store's clock. */
  readonly createdAt: string;
  /** The time of the last change: ISO-8601. */
  readonly updatedAt: string;
  /** Increases by one with every change. */
  readonly version: number;
}

export type TaskState = TaskRecord['state'];

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

/** Returns the allowed next states. */
export function statesAfter(state: TaskState): readonly TaskState[] {
  return NEXT[state];
}
