import { checkInput } from '../common/check-input.js';
import { assertId, mintId } from '../common/ids.js';
import { inGroups } from '../common/in-groups.js';
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
import { TaskConflictError, TaskNotFoundError, TaskTransitionError } from './task.errors.js';
import { isTaskState, statesAfter, type Task, TASK_STATE_RULE, type TaskState } from './task.js';
import { CONTESTED, untilUncontested } from './until-uncontested.js';

/** Tasks of a page. */
const READ_AT_ONCE = 20;

/** No change of a task takes so long. */
const MARK_MS = 3_600_000;

/**
 * The tasks of sessions (STA-05). A task is changed over the version that was read only: of two that change its state at the same time one
 * finds it changed, and goes on from there or is refused.
 *
 * All methods reject with InvalidInputError for ids that are none, and StoreUnavailableError when the store does not answer.
 */
export class TaskStates {
  private readonly documents: ModuleDocuments<StoredTask, TaskChange>;

  /** @param maxBytes of a flow state as JSON */
  constructor(
    private readonly store: StateStore,
    private readonly maxBytes: number,
  ) {
    this.documents = new ModuleDocuments(store, applyTaskChange);
  }

  /** Begins as `submitted`. @throws TaskConflictError, StateSerializationError, TooLargeError */
  async create(sessionId: string, task: NewTask = {}): Promise<Task> {
    const { id = mintId(), flowState = null } = checkInput(NewTask, task, 'task');
    const change = { type: 'create', flowState: this.checked(flowState), mark: mintId() } as const;
    const made = await this.marked(sessionId, taskMarkName('submitted', id, change.mark), () =>
      this.changeOver(sessionId, id, 0, change),
    );
    if (!made?.after) throw new TaskConflictError(sessionId, id);
    return toTask(sessionId, id, { value: made.after, document: made.document });
  }

  /** @returns `null` when there is none */
  async get(sessionId: string, taskId: string): Promise<Task | null> {
    const read = await this.documents.read(sessionId, nameOf(taskId));
    return read && toTask(sessionId, taskId, read);
  }

  /**
   * Goes to another state.
   * @throws TaskNotFoundError; TaskTransitionError when that may not follow; StateConflictError when the task never rested;
   * StateSerializationError, TooLargeError
   */
  async transition(
    sessionId: string,
    taskId: string,
    to: TaskState,
    options: TaskTransitionOptions = {},
  ): Promise<Task> {
    const name = nameOf(taskId);
    if (!isTaskState(to)) throw new InvalidInputError('to', TASK_STATE_RULE);
    const given = checkInput(TaskTransitionOptions, options, 'options');
    const flowState = given.flowState === undefined ? {} : { flowState: this.checked(given.flowState) };
    return untilUncontested(sessionId, async () => {
      const read = await this.documents.read(sessionId, name);
      if (!read) throw new TaskNotFoundError(sessionId, taskId);
      const { state: from, mark: before } = read.value;
      if (!statesAfter(from).includes(to)) throw new TaskTransitionError(sessionId, taskId, from, to);
      const change = { type: 'transition', from, to, mark: mintId(), ...flowState } as const;
      const made = await this.marked(sessionId, taskMarkName(to, taskId, change.mark), () =>
        this.changeOver(sessionId, taskId, read.document.version, change),
      );
      if (!made?.after) return CONTESTED;
      await this.unmark(sessionId, taskMarkName(from, taskId, before));
      return toTask(sessionId, taskId, { value: made.after, document: made.document });
    });
  }

  /** Puts another flow state in the place of the task's; the last one stays. @throws TaskNotFoundError, StateSerializationError, TooLargeError */
  async setFlowState(sessionId: string, taskId: string, flowState: unknown): Promise<Task> {
    const entry: TaskChange = { type: 'flow-state', flowState: this.checked(flowState) };
    const append = { id: mintId(), entries: [entry as unknown as JsonValue] };
    const made = await this.documents.change(sessionId, { name: nameOf(taskId), append });
    if (!made?.after) throw new TaskNotFoundError(sessionId, taskId);
    return toTask(sessionId, taskId, { value: made.after, document: made.document });
  }

  /**
   * By id, in the order of its bytes. Costs the page, whatever the number of tasks; a page of one state may have fewer than `limit`
   * though there are more.
   */
  async list(sessionId: string, query: TaskQuery = {}): Promise<StatePage<Task>> {
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

  /** @returns whether there was one */
  async delete(sessionId: string, taskId: string): Promise<boolean> {
    const address = addressOf(sessionId, nameOf(taskId));
    const read = await this.documents.read(sessionId, address);
    const deleted = await this.store.delete(address);
    if (read) await this.unmark(sessionId, taskMarkName(read.value.state, taskId, read.value.mark));
    return deleted;
  }

  /** The task that a mark is of, if it is in that state by that mark. */
  private async markedTask(sessionId: string, state: TaskState, key: string): Promise<Task | null> {
    const [taskId, mark] = key.split(' ');
    const read = await this.documents.read(sessionId, taskName(taskId));
    if (read?.value.mark === mark && read.value.state === state) return toTask(sessionId, taskId, read);
    await this.forget({ ...taskMarkName(state, taskId, mark), sessionId }).catch(() => undefined);
    return null;
  }

  /** A mark that its task does not know. Its change may be under way, so it stays for a while. */
  private async forget(mark: StateAddress): Promise<void> {
    // As an access, so that it says what time it is by the store's clock.
    const stored = await this.store.get(mark, {});
    if (stored && Date.parse(stored.accessedAt) - Date.parse(stored.createdAt) > MARK_MS) await this.store.delete(mark);
  }

  /** A change that needs a mark, which is there before: whoever lists by state misses no task. */
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
    // Once more: a reset may have come in between, which took the mark and not the task.
    await this.store.set(address, null).catch(() => undefined);
    return made;
  }

  /** One that stays by mistake only costs whoever lists a look. */
  private async unmark(sessionId: string, mark: StateName): Promise<void> {
    await this.store.delete({ ...mark, sessionId }).catch(() => false);
  }

  private changeOver(
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

/** What a document holds as the application sees it; `null`: nothing any more. */
export function taskIn(sessionId: string, { key, document }: StateEntry): Task | null {
  const value = valueOf(document, applyTaskChange);
  return value && toTask(sessionId, key, { value, document });
}

function toTask(sessionId: string, id: string, { value, document }: ModuleValue<StoredTask>): Task {
  const { mark: _, updatedAt, ...task } = value;
  const { createdAt, version }: StateDocument = document;
  return { sessionId, id, ...task, createdAt, updatedAt, version };
}

function nameOf(taskId: string): StateName {
  assertId(taskId, 'taskId');
  return taskName(taskId);
}
