import { mintId } from '../common/ids.js';
import { type JsonValue } from '../common/json.js';
import { namespaceOf } from '../ledger/module-namespace.js';
import { type StateChange, type StateName } from '../ledger/state.store.js';
import { statesAfter, type Task, type TaskState } from './task.js';

/** Where tasks are kept, and nothing else may be. */
export const TASK_NAMESPACE = namespaceOf('task');

const HISTORY = 50;

/** What the document of a task holds. */
export interface StoredTask extends Pick<Task, 'state' | 'flowState' | 'history' | 'updatedAt'> {
  /** The mark of its state: tasks are listed by state by their marks, and one that its task does not know does not count. */
  readonly mark: string;
}

/** A change of a task, as it is stored. */
export type TaskChange =
  /** Does not fit where there is a task. */
  | { readonly type: 'create'; readonly flowState: JsonValue; readonly mark: string }
  /** Does not fit a task that is in another state, nor one that cannot go from there to this one. */
  | {
      readonly type: 'transition';
      readonly from: TaskState;
      readonly to: TaskState;
      /** Left out: as it was. */
      readonly flowState?: JsonValue;
      readonly mark: string;
    }
  | { readonly type: 'flow-state'; readonly flowState: JsonValue };

export function taskName(id: string): StateName {
  return { namespace: TASK_NAMESPACE, scope: '', key: id };
}

/** Its document is empty. Ids of tasks have no spaces. */
export function taskMarkName(state: TaskState, id: string, mark: string): StateName {
  return { namespace: TASK_NAMESPACE, scope: state, key: `${id} ${mark}` };
}

/** What a change makes of a task. Pure. */
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
 * The changes of one task as a turn's settlement writes them: with the mark of the state that it ends in, and without the one
 * that it had.
 * @param known the task before
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
