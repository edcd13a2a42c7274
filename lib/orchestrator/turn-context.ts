import { type JsonObject, type JsonValue } from '../common/json.js';
import { type Message, type MessageDraft } from '../conversation/message.js';
import { type AIOrchestrationState } from '../orchestration/ai-orchestration-state.js';
import { type OrchestrationStep } from '../orchestration/orchestration-config.js';
import { type OrchestrationProgress } from '../orchestration/orchestration-state.js';
import { type TokenUsageInput } from '../common/token-usage.js';
import { type Session } from '../session/session.js';
import { type ToolEntryOptions } from '../state/state.inputs.js';
import { type TaskState } from '../state/task.js';
import { type EmittedEvent } from '../turn/turn-event.js';
import { type Turn, type TurnInput } from '../turn/turn.js';
import { type IntentReply } from './evaluation.js';

/** Tells a step's function about itself. */
export interface StepInfo {
  /** The same in every attempt: give it to the outside system as idempotency key. */
  readonly key: string;
  /** Aborted when the turn must stop. */
  readonly signal: AbortSignal;
}

/** What a route or an intent is given: one attempt of one turn. */
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
   * @param name tells steps of an intent apart; the same name again is the next occurrence
   * @throws what `work` throws; StateSerializationError for a result that JSON cannot carry
   */
  step<T>(name: string, work: (info: StepInfo) => Promise<T> | T): Promise<T>;
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
   * Runs a tool (ORC-28): checks that the plan allows it, runs it as a step whose result is stored, records the use, moves the
   * sequence and looks for the active step. A call that was done before, in an earlier attempt too, gives its result and
   * counts once; one that was refused or failed may be made again, and is made again when the turn is tried again. While a
   * sequence is under way, calls made at the same time run one after another, in their order. What the plan makes of it is
   * stored when the turn settles; of a turn that fails or is cancelled nothing. Not inside a step or another tool.
   * @param callId the model's id of the call, unique in the turn; at most 250 characters
   * @throws ToolNotAllowedError before `work` is called, listing what is allowed; what `work` throws, and the use is then
   * recorded as failed; InvalidInputError for a call id that another tool has had; StateSerializationError
   */
  use<T>(tool: string, callId: string, work: (info: StepInfo) => Promise<T> | T): Promise<T>;
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
   * Merges at the first level; makes the entry where there is none.
   * @param options of an entry that it makes @throws InvalidInputError for a value that is no object
   */
  patch(tool: string, key: string, patch: object, options?: ToolEntryOptions): void;
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
  /** @param flowState default `null` @returns the id of the new task, which is `submitted` */
  create(flowState?: unknown): string;
  /**
   * @param flowState left out: as it was
   * @throws TaskNotFoundError, TaskTransitionError
   */
  transition(id: string, to: TaskState, flowState?: unknown): Promise<void>;
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

/** The tokens that models took: part of the turn's report (BOT-09), and counted for the session where there is a plan (ORC-11). */
export interface TurnUsage {
  /**
   * Adds what a model took; for the session it is stored when the turn settles, and not for an attempt that fails. Not inside a
   * step, which does not run again when the turn is tried again: let it return the usage. @throws InvalidInputError
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
  /** What to go on with when the signal did not come in time. Default: TurnSignalTimeoutError is thrown. */
  readonly onTimeout?: () => T | Promise<T>;
}

/**
 * Builds what every attempt of a turn gets as `context`, wherever it runs: provide your own to give workers and resumed
 * turns their handles.
 */
export class TurnContextFactory {
  /** Called once for each attempt, before the route. What it throws fails the attempt. */
  create(_turn: Turn, _session: Session): Record<string, unknown> | Promise<Record<string, unknown>> {
    return {};
  }
}
