import { checkInput } from '../common/check-input.js';
import { assertId, mintId } from '../common/ids.js';
import { inGroups } from '../common/batches.js';
import { type JsonValue, stringifyWithin, toJson } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { valueOf } from './module-document.js';
import { addressOf, type ModuleChange, ModuleDocuments, type ModuleValue } from './module-documents.js';
import { listDocuments, type StatePage } from './state-data.js';
import { NewTask, TaskQuery, TaskTransitionOptions } from './state.inputs.js';
import {
  type StateAddress,
  type StateDocument,
  type StateEntry,
  type StateName,
  type StateStore,
} from '../ledger/state.store.js';
import {
  applyTaskChange,
  type StoredTask,
  TASK_NAMESPACE,
  type TaskChange,
  taskMarkName,
  taskName,
} from './task-change.js';
import { TaskError } from './task.errors.js';
import { isTaskState, statesAfter, TASK_STATE_RULE, type TaskRecord, type TaskState } from './task.js';
import { CONTESTED, untilUncontested } from './until-uncontested.js';

/** The number of tasks to read at once. */
const READ_AT_ONCE = 20;

/** The age from which a mark is removed if its task does not refer to it: longer than any change of a task takes. */
const MARK_MS = 3_600_000;

/**
 * Stores the tasks of sessions (STA-05). A change of a task applies only to the version that was read. If two calls
 * change the state of a task concurrently, one detects the conflict and retries or is rejected.
 *
 * All methods reject with InvalidInputError for invalid ids, and with StoreUnavailableError if the store does not
 * respond.
 */
export class TaskStates {
  private readonly documents: ModuleDocuments<StoredTask, TaskChange>;

  /** @param maxBytes the maximum size of a flow state as JSON */
  constructor(
    private readonly store: StateStore,
    private readonly maxBytes: number,
  ) {
    this.documents = new ModuleDocuments(store, applyTaskChange);
  }

  /**
   * Creates a task in state `submitted`.
   * @throws TaskError (`TASK_CONFLICT`), StateSerializationError, TooLargeError
   */
  async create(sessionId: string, task: NewTask = {}): Promise<TaskRecord> {
    const { id = mintId(), flowState = null } = checkInput(NewTask, task, 'task');
    const change = { type: 'create', flowState: this.checked(flowState), mark: mintId() } as const;
    const made = await this.marked(sessionId, taskMarkName('submitted', id, change.mark), () =>
      this.changeVersion(sessionId, id, 0, change),
    );
    if (!made?.after) throw new TaskError('TASK_CONFLICT', sessionId, id);
    return toTask(sessionId, id, { value: made.after, document: made.document });
  }

  /** @returns `null` if the task does not exist */
  async get(sessionId: string, taskId: string): Promise<TaskRecord | null> {
    const read = await this.documents.read(sessionId, nameOf(taskId));
    return read && toTask(sessionId, taskId, read);
  }

  /**
   * Changes the state of a task.
   * @throws TaskError for `TASK_NOT_FOUND` and, if the transition is not allowed, `TASK_TRANSITION`; StateConflictError
   * if the task kept changing; StateSerializationError, TooLargeError
   */
  async transition(
    sessionId: string,
    taskId: string,
    to: TaskState,
    options: TaskTransitionOptions = {},
  ): Promise<TaskRecord> {
    const name = nameOf(taskId);
    if (!isTaskState(to)) throw new InvalidInputError('to', TASK_STATE_RULE);
    const given = checkInput(TaskTransitionOptions, options, 'options');
    const flowState = given.flowState === undefined ? {} : { flowState: this.checked(given.flowState) };
    return untilUncontested(sessionId, async () => {
      const read = await this.documents.read(sessionId, name);
      if (!read) throw new TaskError('TASK_NOT_FOUND', sessionId, taskId);
      const { state: from, mark: before } = read.value;
      if (!statesAfter(from).includes(to)) throw new TaskError('TASK_TRANSITION', sessionId, taskId, { from, to });
      const change = { type: 'transition', from, to, mark: mintId(), ...flowState } as const;
      const made = await this.marked(sessionId, taskMarkName(to, taskId, change.mark), () =>
        this.changeVersion(sessionId, taskId, read.document.version, change),
      );
      if (!made?.after) return CONTESTED;
      await this.unmark(sessionId, taskMarkName(from, taskId, before));
      return toTask(sessionId, taskId, { value: made.after, document: made.document });
    });
  }

  /**
   * Replaces the flow state of the task. The last write wins.
   * @throws TaskError (`TASK_NOT_FOUND`), StateSerializationError, TooLargeError
   */
  async setFlowState(sessionId: string, taskId: string, flowState: unknown): Promise<TaskRecord> {
    const entry: TaskChange = { type: 'flow-state', flowState: this.checked(flowState) };
    const append = { id: mintId(), entries: [entry as unknown as JsonValue] };
    const made = await this.documents.change(sessionId, { name: nameOf(taskId), append });
    if (!made?.after) throw new TaskError('TASK_NOT_FOUND', sessionId, taskId);
    return toTask(sessionId, taskId, { value: made.after, document: made.document });
  }

  /**
   * Lists tasks by id, in the order of its bytes. The cost depends on the page size. A page filtered by state may have
   * fewer than `limit` tasks although more follow.
   */
  async list(sessionId: string, query: TaskQuery = {}): Promise<StatePage<TaskRecord>> {
    assertId(sessionId, 'sessionId');
    const { state, limit = 50, after } = checkInput(TaskQuery, query, 'query');
    const selection = { namespace: TASK_NAMESPACE, sessionId, scope: state ?? '' };
    const page = { limit, ...(after === undefined ? {} : { after }) };
    const { items, next } = await listDocuments(this.store, selection, page);
    const tasks =
      state === undefined
        ? items.map((entry) => taskIn(sessionId, entry))
        : await inGroups(items, READ_AT_ONCE, ({ key }) => this.markedTask(sessionId, state, key));
    return { items: tasks.flatMap((task) => task ?? []), ...(next === undefined ? {} : { next }) };
  }

  /** @returns whether the task existed */
  async delete(sessionId: string, taskId: string): Promise<boolean> {
    const address = addressOf(sessionId, nameOf(taskId));
    const read = await this.documents.read(sessionId, address);
    const deleted = await this.store.delete(address);
    if (read) await this.unmark(sessionId, taskMarkName(read.value.state, taskId, read.value.mark));
    return deleted;
  }

  /** Returns the task of a mark, if the task has that state and that mark. */
  private async markedTask(sessionId: string, state: TaskState, key: string): Promise<TaskRecord | null> {
    const [taskId, mark] = key.split(' ');
    const read = await this.documents.read(sessionId, taskName(taskId));
    if (read?.value.mark === mark && read.value.state === state) return toTask(sessionId, taskId, read);
    await this.forget({ ...taskMarkName(state, taskId, mark), sessionId }).catch(() => undefined);
    return null;
  }

  /**
   * Removes a mark that its task does not refer to. The change of the task may be in progress, so the mark is kept for
   * a while.
   */
  private async forget(mark: StateAddress): Promise<void> {
    // Read as an access, which returns the time of the store's clock.
    const stored = await this.store.get(mark, {});
    if (stored && Date.parse(stored.accessedAt) - Date.parse(stored.createdAt) > MARK_MS) await this.store.delete(mark);
  }

  /** Writes a change that needs a mark. The mark is written first, so that lists by state never miss a task. */
  private async marked(
    sessionId: string,
    mark: StateName,
    change: () => Promise<ModuleChange<StoredTask> | null>,
  ): Promise<ModuleChange<StoredTask> | null> {
    const address = addressOf(sessionId, mark);
    await this.store.set(address, null);
    const made = await change();
    if (!made?.applied) {
      await this.unmark(sessionId, mark);
      return null;
    }
    // Write the mark again: a reset may have deleted it, but not the task.
    await this.store.set(address, null).catch(() => undefined);
    return made;
  }

  /** Removes a mark. A mark that remains by mistake only costs lists an extra read. */
  private async unmark(sessionId: string, mark: StateName): Promise<void> {
    await this.store.delete({ ...mark, sessionId }).catch(() => false);
  }

  /** Changes the task if it has this version; 0: if it does not exist. */
  private changeVersion(
    sessionId: string,
    taskId: string,
    ifVersion: number,
    change: TaskChange,
  ): Promise<ModuleChange<StoredTask> | null> {
    const initial = change.type === 'create' ? { initial: null } : {};
    const append = { id: mintId(), entries: [change as unknown as JsonValue], ifVersion, ...initial };
    return this.documents.change(sessionId, { name: taskName(taskId), append });
  }

  private checked(flowState: unknown): JsonValue {
    const value = toJson(flowState, 'flowState');
    stringifyWithin(value, this.maxBytes, 'The flow state');
    return value;
  }
}

/** Converts a document to the public task; `null` if it has no value. */
export function taskIn(sessionId: string, { key, document }: StateEntry): TaskRecord | null {
  const value = valueOf(document, applyTaskChange);
  return value && toTask(sessionId, key, { value, document });
}

function toTask(sessionId: string, id: string, { value, document }: ModuleValue<StoredTask>): TaskRecord {
  const { mark: _, updatedAt, ...task } = value;
  const { createdAt, version }: StateDocument = document;
  return { sessionId, id, ...task, createdAt, updatedAt, version };
}

function nameOf(taskId: string): StateName {
  assertId(taskId, 'taskId');
  return taskName(taskId);
}
