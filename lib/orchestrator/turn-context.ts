import { type JsonObject, type JsonValue } from '../common/json.js';
import { type Message, type MessageDraft } from '../ledger/message.js';
import { type AIOrchestrationState } from '../orchestration/ai-orchestration-state.js';
import { type OrchestrationStep } from '../orchestration/orchestration-config.js';
import { type OrchestrationProgress } from '../orchestration/orchestration-state.js';
import { type TokenUsageInput } from '../common/token-usage.js';
import { type Session } from '../ledger/session.js';
import {
  type NewTask,
  type TaskTransitionOptions,
  type ToolEntryOptions,
  type ToolPatchOptions,
} from '../state/state.inputs.js';
import { type TaskState } from '../state/task.js';
import { type EmittedEvent } from '../ledger/turn-event.js';
import { type Turn, type TurnInput } from '../ledger/turn.js';
import { type StepOptions, type ToolCallOptions } from './call-options.js';
import { type IntentReply } from './evaluation.js';

/** Tells a step's function about itself. */
export interface StepInfo {
  /** The same in every attempt: give it to the outside system as idempotency key. */
  readonly key: string;
  /** Aborted when the turn must stop. */
  readonly signal: AbortSignal;
}

/**
 * What a route or an intent is given: one attempt of one turn. It is frozen with all its values, nested ones included, so that
 * no handler changes what another one sees; objects in `context` are the application's and stay as they are.
 */
export interface TurnContext<State = Record<string, unknown>> {
  /** The turn's id: the same in every attempt. */
  readonly id: string;
  readonly sessionId: string;
  readonly session: Session;
  readonly input: TurnInput;
  /** The state as the turn began, with what intents changed since; a copy, frozen. Change it by returning a patch. */
  readonly state: Readonly<State>;
  /** What was said before, cut to the window of the one that is called (BOT-40). */
  readonly history: readonly (Message | MessageDraft)[];
  /** The number that this turn will have in this session and orchestrator, from 0. */
  readonly turnIndex: number;
  /** 0 on the first decision of the turn. */
  readonly iteration: number;
  /** What the iterations before this one added to the conversation; empty on the first. */
  readonly messages: readonly MessageDraft[];
  /** What the intents of the iteration before this one answered; empty on the first. */
  readonly replies: readonly IntentReply[];
  /** What `evaluate` said of the iteration before this one. */
  readonly feedback?: string;
  /** What the orchestrator's memory knows of this; empty without one. */
  readonly memories: readonly JsonValue[];
  /** From 1; more than 1 after a failure or a crash. */
  readonly attempt: number;
  readonly attributes: JsonObject;
  /** The caller's context when the attempt runs in its process, over what the `TurnContextFactory` built; frozen. */
  readonly context: Readonly<Record<string, unknown>>;
  /** Aborted when the turn is cancelled, the process stops, or the lease is lost. */
  readonly signal: AbortSignal;
  readonly tools: TurnTools;
  readonly usage: TurnUsage;
  /** The session's state modules, as the turn sees and changes them (STA-04 to STA-06). */
  readonly modules: TurnModules;
  /** The task that the turn was submitted for with `taskId`, as it is now; absent for a turn of none. */
  readonly task?: TurnTask;
  /**
   * Runs `work` once for this turn: its result is stored before going on, and a later attempt gets the stored result
   * instead (BOT-30). A crash between the effect and the stored result repeats the effect, so give `info.key` to it.
   *
   * A step inside another step, or inside a tool call, belongs to that call (FIX-01). Steps of one name that follow one
   * another are numbered; parallel ones need a `key`, and so do chains of steps that interleave (FIX-02).
   * @param name identifies the step within its intent or enclosing call
   * @param options `key`: identifies the step beside its name, whatever order parallel calls come in; the same name and key
   * again is the same step. Default: the number of earlier steps with this name
   * @throws what `work` throws; StateSerializationError for a result that JSON cannot carry; StepKeyRequiredError
   */
  step<T>(name: string, work: (info: StepInfo) => Promise<T> | T, options?: StepOptions): Promise<T>;
  /**
   * Waits until somebody calls `turns.signal(id, name, payload)`, for days if need be: no worker is held meanwhile, and the
   * lane stays the turn's own (TRN-13). The attempt ends here; once the signal is there, another attempt comes to this
   * place, with its steps memoized, and goes on. So nothing after this line runs before, `finally` blocks neither, and
   * effects before it belong into steps. A signal that came early is there at once; of several of one name the first one
   * counts, for every wait of the turn. Steps that run beside it are stored first; several waits, also in `Promise.all`,
   * follow one another. Not for `Promise.race`: give it `timeoutMs`.
   * @throws TurnSignalTimeoutError when it does not come in time and there is no `onTimeout`; InvalidInputError when the
   * payload is not as `schema` says, and inside a step
   */
  waitFor<T = JsonValue>(name: string, options?: WaitForOptions<T>): Promise<T>;
  /**
   * Shows something of the turn while it runs, see `turns.events` (TRN-30): a piece of the answer, a tool call, progress.
   * Stored in batches, in order, before the turn settles. Nobody must await it: it never rejects. It resolves at once, unless
   * a mebibyte waits to be stored; awaiting it then slows the handler down to the store. Without effect once the attempt is over.
   * @param event `type` is a name of your own, `data` JSON of up to 65,536 bytes
   * @throws InvalidInputError for `type`, also for `settled` and `attempt`; StateSerializationError, TooLargeError for `data`
   */
  emit(event: EmittedEvent): Promise<void>;
}

/** The tools of a turn, as the orchestrator's `steps` allow them; all of them where it has none. */
export interface TurnTools {
  /** The step that is active now. */
  readonly activeStep: OrchestrationStep | undefined;
  /** As the turn sees it: what is stored, with what the turn has done. */
  readonly state: OrchestrationProgress;
  /** Those of the tools that may be used now, in their order: offer these to the model (ORC-24). */
  allowed(tools: readonly string[]): string[];
  /**
   * Runs a tool (ORC-28, FIX-20): checks that the plan allows it, counts the use, runs the tool as a step whose result is stored,
   * and adds the outcome. Counting moves the sequence and may lead to another step; a use that fails is taken back. Uses that
   * start in parallel are admitted one after the other, and their work runs in parallel. While a sequence is active, a use is
   * admitted when those before it are over. A call that was done before, also in an earlier attempt, returns its result and
   * counts once; one that was refused or failed may be made again, and is made again when the turn is retried. The changes of the
   * plan are stored when the turn settles, and dropped if it fails or is cancelled. Not inside a step or another tool.
   * @param callId the model's id of the call, unique in the turn; at most 256 characters
   * @param options `input`: the model's arguments; the same call id with another input is then refused (FIX-11)
   * @returns the result as JSON, frozen: every call with the id gets it
   * @throws ToolNotAllowedError before `work` is called, listing what is allowed; what `work` throws, after recording the use
   * as failed; ToolCallConflictError for a call id that another tool or another input has had; StateSerializationError
   */
  use<T>(tool: string, callId: string, work: (info: StepInfo) => Promise<T> | T, options?: ToolCallOptions): Promise<T>;
  /** What a prompt may say of it (ORC-10). */
  toAIOrchestrationState(): AIOrchestrationState;
}

/**
 * The session's state modules in a turn. What is read is what is stored, with what the turn has written; it is read once in an
 * attempt. What is written is stored when the turn settles, in the same commit, and not at all when it fails or is cancelled; a
 * module that was reset meanwhile stays as it is (STA-23). Changes are added to what others have changed meanwhile, and one
 * that does not fit any more then (a task has moved on) is left out. Writing is not for steps, which do not run again when the turn is
 * tried again: write after them what they returned.
 *
 * All methods throw StateModuleDisabledError for a module that is not enabled, InvalidInputError for wrong names and values,
 * StateSerializationError and TooLargeError; those that read reject with StoreUnavailableError as well.
 */
export interface TurnModules {
  readonly tools: TurnToolState;
  readonly task: TurnTaskState;
  readonly flow: TurnFlowState;
}

/** What the session's tools keep, see `SessionStateService.tools`. */
export interface TurnToolState {
  /** @returns `undefined` when there is none */
  get<T = JsonValue>(tool: string, key: string): Promise<T | undefined>;
  /** Replaces the entry. @throws StateSerializationError, TooLargeError */
  set(tool: string, key: string, value: unknown, options?: ToolEntryOptions): void;
  /**
   * Merges at the first level, and removes the keys of `unset` (FIX-47). Creates the entry when it does not exist.
   * @param options `ttlMs`, `secret`: of an entry that it makes @throws InvalidInputError for a value that is no object
   */
  patch(tool: string, key: string, patch: object, options?: ToolPatchOptions): void;
  /** Adds to a number; to 0 where there is none. @param by default 1 @param options of an entry that it makes */
  increment(tool: string, key: string, by?: number, options?: ToolEntryOptions): void;
  /** What is not there is not deleted, and that is fine. */
  delete(tool: string, key: string): void;
}

/** A task of the session. */
export interface TurnTask {
  readonly id: string;
  readonly state: TaskState;
  readonly flowState: JsonValue;
}

/** The session's tasks, see `SessionStateService.task`. */
export interface TurnTaskState {
  /** @returns it with what this turn has written, or `null` when there is no such task */
  get(id: string): Promise<TurnTask | null>;
  /**
   * Creates a task, which is `submitted` (FIX-47). Reads the task first only if the call chooses its id.
   * @throws TaskConflictError when the session has a task with this id
   */
  create(task?: NewTask): Promise<TurnTask>;
  /** Moves a task to another state, and replaces its flow state if `flowState` is given. @throws TaskNotFoundError, TaskTransitionError */
  transition(id: string, to: TaskState, options?: TaskTransitionOptions): Promise<void>;
  /** @throws TaskNotFoundError */
  setFlowState(id: string, flowState: unknown): Promise<void>;
}

/** Checkpoints of the session's flows, see `SessionStateService.flow`. */
export interface TurnFlowState {
  /** The latest one; `undefined` when there is none. */
  load<T = JsonValue>(flow: string): Promise<T | undefined>;
  /** Of several in one turn, the last one is stored. */
  save(flow: string, checkpoint: unknown): void;
}

/** The tokens that models took: part of the turn's result and report (BOT-09), and counted for the session where there is a plan (ORC-11). */
export interface TurnUsage {
  /**
   * Adds what a model took. It counts whatever becomes of the attempt: it is recorded with the next step, or when the attempt
   * ends (FIX-15). Not inside a step, which does not run again when the turn is tried again: let it return the usage, and add it
   * after the step; a later attempt that replays the step may add it again, and it counts once. @throws InvalidInputError
   */
  add(usage: TokenUsageInput): void;
  /** To ask before a model is called. @throws TokenBudgetExceededError when the `tokenBudget` is used up */
  assertWithinBudget(): void;
}

/** How `turn.waitFor` waits for a signal (TRN-13). */
export interface WaitForOptions<T> {
  /** A class with class-validator's decorators, which the payload must fit; it is then an instance of it. Default: any JSON. */
  readonly schema?: new () => T & object;
  /** Milliseconds; left out: waits for as long as it takes. */
  readonly timeoutMs?: number;
  /**
   * Provides the result when the signal did not come in time. Runs once, as a step: its outcome is stored as JSON, and later
   * attempts get that (FIX-12). Default: TurnSignalTimeoutError is thrown.
   */
  readonly onTimeout?: () => T | Promise<T>;
}

/**
 * Builds what every attempt of a turn gets as `context`, wherever it runs: provide your own to give workers and resumed
 * turns their handles.
 */
export class TurnContextFactory {
  /** Called once for each attempt, before the route, with frozen values. What it throws fails the attempt. */
  create(_turn: Turn, _session: Session): Record<string, unknown> | Promise<Record<string, unknown>> {
    return {};
  }
}
