import { checkInput } from '../common/check-input.js';
import { assertId, assertName, mintId } from '../common/ids.js';
import { deepFreeze, type JsonValue, stringifyWithin, toJson } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type ModuleJournal, type ModuleWrite } from '../state/module-journal.js';
import { NewTask, TaskTransitionOptions, ToolEntryOptions, type ToolPatchOptions } from '../state/state.inputs.js';
import { moduleDisabled } from '../state/state.errors.js';
import { type StateModuleName } from '../state/state-module.js';
import { TaskError } from '../state/task.errors.js';
import { type StoredTask, type TaskChange } from '../state/task-change.js';
import { isTaskState, statesAfter, TASK_STATE_RULE, type TaskState } from '../state/task.js';
import { type ToolChange, toToolPatch } from '../state/tool-entry.js';
import { TurnStoppedError } from '../turn/turn-stopped.error.js';
import {
  type TurnFlowState,
  type TurnModules,
  type TurnTask,
  type TurnTaskState,
  type TurnToolState,
} from './turn-context.js';
import { type TurnSteps } from './turn-steps.js';

/** The state modules of the package that are enabled in this process, and their limit. */
export interface ModuleRules {
  readonly enabled: readonly string[];
  /** The maximum size of one value as JSON, in bytes. */
  readonly maxBytes: number;
}

/** The session's state modules in one attempt of a turn. Writes go into the attempt's journal. */
export class TurnModuleState implements TurnModules {
  private readonly writer: ModuleWriter;

  constructor(
    private readonly sessionId: string,
    private readonly journal: ModuleJournal,
    private readonly rules: ModuleRules,
    memo: TurnSteps,
  ) {
    this.writer = new ModuleWriter(journal, rules, memo);
  }

  get tools(): TurnToolState {
    this.assertEnabled('tools');
    return new ToolsOfTurn(this.journal, this.writer);
  }

  get task(): TurnTaskState {
    this.assertEnabled('task');
    return new TasksOfTurn(this.sessionId, this.journal, this.writer);
  }

  get flow(): TurnFlowState {
    this.assertEnabled('flow');
    return new FlowsOfTurn(this.journal, this.writer);
  }

  private assertEnabled(module: StateModuleName): void {
    const { enabled } = this.rules;
    if (!enabled.includes(module)) throw moduleDisabled(module, enabled);
  }
}

class ToolsOfTurn implements TurnToolState {
  constructor(
    private readonly journal: ModuleJournal,
    private readonly writer: ModuleWriter,
  ) {}

  get<T = JsonValue>(tool: string, key: string): Promise<T | undefined> {
    return this.writer.hand('tools.get', async () => {
      assertPlace(tool, key);
      const entry = await this.journal.tool(tool, key);
      return entry ? (deepFreeze(entry.value) as T) : undefined;
    });
  }

  set(tool: string, key: string, value: unknown, options: ToolEntryOptions = {}): void {
    const { secret = false, ...life } = given(options);
    this.add(tool, key, { type: 'set', value: this.writer.json(value, 'value'), secret, ...life });
  }

  patch(tool: string, key: string, patch: object, options: ToolPatchOptions = {}): void {
    this.add(tool, key, toToolPatch(patch, options, this.writer.maxBytes));
  }

  increment(tool: string, key: string, by = 1, options: ToolEntryOptions = {}): void {
    if (!Number.isFinite(by)) throw new InvalidInputError('by', 'must be a finite number.');
    this.add(tool, key, { type: 'increment', by, ...given(options) });
  }

  delete(tool: string, key: string): void {
    this.add(tool, key, { type: 'delete' });
  }

  private add(tool: string, key: string, change: ToolChange): void {
    assertPlace(tool, key);
    this.writer.add(`tools.${change.type}`, { module: 'tools', tool, key, change });
  }
}

class TasksOfTurn implements TurnTaskState {
  constructor(
    private readonly sessionId: string,
    private readonly journal: ModuleJournal,
    private readonly writer: ModuleWriter,
  ) {}

  get(id: string): Promise<TurnTask | null> {
    return this.writer.hand('task.get', async () => {
      assertId(id, 'taskId');
      const task = await this.journal.task(id);
      return task && deepFreeze({ id, state: task.state, flowState: task.flowState });
    });
  }

  create(task: NewTask = {}): Promise<TurnTask> {
    return this.writer.hand('task.create', () => this.created(task));
  }

  transition(id: string, to: TaskState, options: TaskTransitionOptions = {}): Promise<void> {
    return this.writer.hand('task.transition', () => this.moved(id, to, options));
  }

  setFlowState(id: string, flowState: unknown): Promise<void> {
    return this.writer.hand('task.setFlowState', () => this.withFlowState(id, flowState));
  }

  private async created(task: NewTask): Promise<TurnTask> {
    this.writer.assertOpen();
    this.writer.assertOutside('task.create');
    const { id: chosen, flowState: given = null } = checkInput(NewTask, task, 'task');
    const flowState = this.writer.json(given, 'flowState');
    const id = chosen ?? mintId();
    const change = { type: 'create', flowState, mark: mintId() } as const;
    if (chosen === undefined) this.writer.add('task.create', { module: 'task', id, change });
    else {
      assertId(id, 'taskId');
      await this.change(id, (task) => {
        if (task) throw new TaskError('TASK_CONFLICT', this.sessionId, id);
        return change;
      });
    }
    return deepFreeze({ id, state: 'submitted', flowState });
  }

  private async moved(id: string, to: TaskState, options: TaskTransitionOptions): Promise<void> {
    this.writer.assertOpen();
    this.writer.assertOutside('task.transition');
    assertId(id, 'taskId');
    if (!isTaskState(to)) throw new InvalidInputError('to', TASK_STATE_RULE);
    const { flowState } = checkInput(TaskTransitionOptions, options, 'options');
    const given = flowState === undefined ? {} : { flowState: this.writer.json(flowState, 'flowState') };
    await this.change(id, (task) => {
      if (!task) throw new TaskError('TASK_NOT_FOUND', this.sessionId, id);
      const { state: from } = task;
      if (!statesAfter(from).includes(to)) throw new TaskError('TASK_TRANSITION', this.sessionId, id, { from, to });
      return { type: 'transition', from, to, mark: mintId(), ...given };
    });
  }

  private async withFlowState(id: string, flowState: unknown): Promise<void> {
    this.writer.assertOpen();
    this.writer.assertOutside('task.setFlowState');
    assertId(id, 'taskId');
    const change = { type: 'flow-state', flowState: this.writer.json(flowState, 'flowState') } as const;
    await this.change(id, (task) => {
      if (!task) throw new TaskError('TASK_NOT_FOUND', this.sessionId, id);
      return change;
    });
  }

  /** The handler may have ended while the task was read. */
  private change(id: string, change: (task: StoredTask | null) => TaskChange): Promise<void> {
    return this.journal.changeTask(id, (task) => {
      this.writer.assertOpen();
      return change(task);
    });
  }
}

class FlowsOfTurn implements TurnFlowState {
  constructor(
    private readonly journal: ModuleJournal,
    private readonly writer: ModuleWriter,
  ) {}

  load<T = JsonValue>(flow: string): Promise<T | undefined> {
    return this.writer.hand('flow.load', async () => {
      assertName(flow, 'flow');
      const stored = await this.journal.flow(flow);
      return stored ? (deepFreeze(stored.checkpoint) as T) : undefined;
    });
  }

  save(flow: string, checkpoint: unknown): void {
    assertName(flow, 'flow');
    const change = { type: 'save', checkpoint: this.writer.json(checkpoint, 'checkpoint') } as const;
    this.writer.add('flow.save', { module: 'flow', flow, change });
  }
}

class ModuleWriter {
  readonly maxBytes: number;

  constructor(
    private readonly journal: ModuleJournal,
    { maxBytes }: ModuleRules,
    private readonly memo: TurnSteps,
  ) {
    this.maxBytes = maxBytes;
  }

  /** Adds a write to the journal. After the end of the handler, it is dropped and logged. */
  add(call: string, write: ModuleWrite): void {
    try {
      this.assertOpen();
    } catch (error) {
      void this.hand(call, () => Promise.reject(error as Error));
      return;
    }
    this.assertOutside(call);
    this.journal.add(write);
  }

  /** Wraps a promise for the handler. Its rejection does not end the process if the handler does not await it (FIX-87). */
  hand<T>(call: string, begin: () => Promise<T>): Promise<T> {
    return this.memo.hand(`turn.modules.${call}`, begin);
  }

  /** @throws TurnStoppedError, or the reason of the signal, for a write that would be lost (DAY-17) */
  assertOpen(): void {
    this.memo.assertOpen();
    if (this.journal.isClosed) throw new TurnStoppedError('ended');
  }

  assertOutside(call: string): void {
    this.memo.assertOutside(`turn.modules.${call}`, 'return the value from the step, and write it afterwards');
  }

  /** Returns a copy. @throws StateSerializationError, TooLargeError */
  json(value: unknown, path: string): JsonValue {
    const copy = toJson(value, path);
    stringifyWithin(copy, this.maxBytes, path);
    return copy;
  }
}

function given(options: ToolEntryOptions): ToolEntryOptions {
  return { ...checkInput(ToolEntryOptions, options, 'options') };
}

function assertPlace(tool: string, key: string): void {
  assertName(tool, 'tool');
  assertName(key, 'key');
}
