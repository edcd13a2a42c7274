import { mintId } from '../common/ids.js';
import { type JsonValue } from '../common/json.js';
import { namespaceOf } from '../ledger/namespaces.js';
import { type StateChange, type StateName } from '../ledger/state.store.js';
import { statesAfter, type TaskRecord, type TaskState } from './task.js';

/** The namespace of tasks. Reserved for this module. */
export const TASK_NAMESPACE = namespaceOf('task');

const HISTORY = 50;

/** The document of a task. */
export interface StoredTask extends Pick<TaskRecord, 'state' | 'flowState' | 'history' | 'updatedAt'> {
  /**
   * The id of the mark of its current state. A mark is an empty document whose name contains a state and a task id, so
   * that tasks can be listed by state. Lists ignore a mark that its task does not refer to.
   */
  readonly mark: string;
}

/** A stored change of a task. */
export type TaskChange =
  /** Ignored if the task exists. */
  | { readonly type: 'create'; readonly flowState: JsonValue; readonly mark: string }
  /** Ignored if the task is in another state or the transition is not allowed. */
  | {
      readonly type: 'transition';
      readonly from: TaskState;
      readonly to: TaskState;
      /** Absent: unchanged. */
      readonly flowState?: JsonValue;
      readonly mark: string;
    }
  | { readonly type: 'flow-state'; readonly flowState: JsonValue };

export function taskName(id: string): StateName {
  return { namespace: TASK_NAMESPACE, scope: '', key: id };
}

/** Returns the name of a mark, whose document is empty. Task ids contain no spaces. */
export function taskMarkName(state: TaskState, id: string, mark: string): StateName {
  return { namespace: TASK_NAMESPACE, scope: state, key: `${id} ${mark}` };
}

/** Returns the task after a change. Pure. */
export function applyTaskChange(task: StoredTask | null, change: TaskChange, at: string): StoredTask | null {
  if (change.type === 'create') {
    const { flowState, mark } = change;
    return task ?? { state: 'submitted', flowState, mark, history: [{ state: 'submitted', at }], updatedAt: at };
  }
  if (!task) return null;
  if (change.type === 'flow-state') return { ...task, flowState: change.flowState, updatedAt: at };
  const { from, to, flowState = task.flowState, mark } = change;
  if (task.state !== from || !statesAfter(from).includes(to)) return task;
  return { state: to, flowState, mark, history: [...task.history, { state: to, at }].slice(-HISTORY), updatedAt: at };
}

/**
 * Returns the changes of one task for a turn's settlement, including the new mark and the removal of the old one.
 * @param known the task before the changes
 */
export function taskStateChanges(
  id: string,
  changes: readonly TaskChange[],
  known: StoredTask | null,
): readonly StateChange[] {
  const after = changes.reduce((task, change) => applyTaskChange(task, change, ''), known);
  const entries = changes as unknown as readonly JsonValue[];
  const creates = changes.some(({ type }) => type === 'create');
  const append = { id: mintId(), entries, ...(creates ? { initial: null } : {}) };
  const moved = known?.mark !== after?.mark;
  return [
    { name: taskName(id), append },
    ...(after && moved ? [marked(taskMarkName(after.state, id, after.mark))] : []),
    ...(known && moved ? [unmarked(taskMarkName(known.state, id, known.mark))] : []),
  ];
}

function marked(name: StateName): StateChange {
  return { name, append: { id: mintId(), entries: [], initial: null } };
}

function unmarked(name: StateName): StateChange {
  return { name, append: { id: mintId(), entries: [], ttlMs: 0 } };
}
