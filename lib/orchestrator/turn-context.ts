import { type JsonCheck } from '../common/json-check.js';
import { type JsonObject, type JsonValue } from '../common/json.js';
import { type ConversationMessage, type MessageDraft } from '../ledger/message.js';
import { type AIOrchestrationState } from '../orchestration/ai-orchestration-state.js';
import { type OrchestrationStep } from '../orchestration/orchestration-config.js';
import { type OrchestrationProgress } from '../orchestration/orchestration-state.js';
import { type TokenCountsInput } from '../common/token-counts.js';
import { type Session } from '../ledger/session.js';
import {
  type NewTask,
  type TaskTransitionOptions,
  type ToolEntryOptions,
  type ToolPatchOptions,
} from '../state/state.inputs.js';
import { type TaskRecord } from '../state/task.js';
import { type EmittedEvent, type EmittedEventCheck, type TurnEvent } from '../ledger/turn-event.js';
import { type Turn, type TurnInput } from '../ledger/turn.js';
import { type StepOptions, type ToolCallOptions } from './call-options.js';
import { type IntentReply } from './evaluation.js';

/** Passed to a step's function. */
export interface StepInfo {
  /** The same in every attempt. Pass it to the external system as idempotency key. */
  readonly key: string;
  /** Aborted when the turn must stop. */
  readonly signal: AbortSignal;
  /** The maximum size of the result as JSON, in bytes. @internal */
  readonly maxBytes: number;
  /**
   * Runs a step inside this one, as `turn.step` does. It belongs to this call even if a limiter or pool runs the code in
   * the asynchronous context of another call (FIX-82). @throws HandlerError (`STEP_CONTEXT`) after this call has ended
   */
  readonly step: <T>(
    name: string,
    work: ((info: StepInfo) => Promise<T> | T) & JsonCheck<T>,
    options?: StepOptions,
  ) => Promise<T>;
}

/**
 * The argument of a route or an intent: one attempt of one turn. It is deeply frozen, so no handler can change what
 * another one sees. Objects in `context` belong to the application and are not frozen.
 */
export interface TurnContext<State = Record<string, unknown>> {
  /** The turn's id: the same in every attempt. */
  readonly id: string;
  readonly sessionId: string;
  readonly session: Session;
  readonly input: TurnInput;
  /**
   * The state at the start of the turn, with the changes of earlier iterations; a frozen copy. Return a patch to change
   * it.
   */
  readonly state: Readonly<State>;
  /** The earlier messages, cut to the window of the route or the intents (BOT-40). */
  readonly history: readonly (ConversationMessage | MessageDraft)[];
  /** The index that this turn will have in this session and orchestrator, from 0. */
  readonly turnIndex: number;
  /** The number of the iteration, from 0. */
  readonly iteration: number;
  /** The messages that earlier iterations added to the conversation; empty on the first. */
  readonly messages: readonly MessageDraft[];
  /** The replies of the intents of the previous iteration; empty on the first. */
  readonly replies: readonly IntentReply[];
  /** The feedback from `evaluate` on the previous iteration. */
  readonly feedback?: string;
  /** The memories that the orchestrator's memory recalled; empty without a memory. */
  readonly memories: readonly JsonValue[];
  /** The number of the attempt, from 1; higher after a failure or a crash. */
  readonly attempt: number;
  readonly attributes: JsonObject;
  /**
   * The context from the `TurnContextFactory`, overridden by the caller's context if the attempt runs in the caller's
   * process; frozen.
   */
  readonly context: Readonly<Record<string, unknown>>;
  /** Aborted when the turn is cancelled, the process stops, or the lease is lost. */
  readonly signal: AbortSignal;
  readonly tools: TurnTools;
  readonly usage: TurnUsage;
  /** The session's state modules, as the turn reads and changes them (STA-04 to STA-06). */
  readonly modules: TurnModules;
  /** The current task of a turn that was submitted with `taskId`; otherwise absent. */
  readonly task?: Pick<TaskRecord, 'id' | 'state' | 'flowState'>;
  /**
   * Runs `work` once for this turn. The result is stored before the turn continues, and a later attempt gets the stored
   * result instead (BOT-30). A crash between the effect and the stored result repeats the effect, so pass `info.key` to
   * the external system.
   *
   * A step inside another step, or inside a tool call, belongs to that call (FIX-01): the one in whose asynchronous
   * context it runs. Limiters and pools can start code in another context, or in none; call `info.step` there. Steps with
   * the same name that run in sequence are numbered. Parallel steps, and interleaved chains of steps, need a `key`
   * (FIX-02).
   * @param name identifies the step within its intent or enclosing call
   * @param options `key`: identifies the step together with its name, whatever the order of parallel calls; the same
   * name and key are the same step. Default: the number of earlier steps with this name
   * @throws what `work` throws; StateSerializationError for a result that is not JSON; HandlerError for
   * `STEP_KEY_REQUIRED` and `STEP_CONTEXT`
   */
  step<T>(name: string, work: ((info: StepInfo) => Promise<T> | T) & JsonCheck<T>, options?: StepOptions): Promise<T>;
  /**
   * Waits until `turns.signal(id, name, payload)` is called, for days if necessary. No worker is held in the meantime,
   * and the turn keeps its lane (TRN-13).
   *
   * The attempt ends here. When the signal arrives, a new attempt runs the handler again, replays its stored steps, and
   * continues after this line. Code after this line, including `finally` blocks, does not run before. Put earlier
   * effects into steps; parallel steps are stored before the attempt ends.
   *
   * A signal that arrived earlier resolves the wait at once. If several signals have the same name, the first one
   * counts, for every wait of the turn. Several waits, also in `Promise.all`, run in sequence. Do not use it in
   * `Promise.race`: set `timeoutMs` instead.
   * @throws TurnTimeoutError (`TURN_SIGNAL_TIMEOUT`) when the signal does not arrive in time and there is no `onTimeout`;
   * InvalidInputError when the payload does not match `schema`, and inside a step
   */
  waitFor<T = JsonValue>(name: string, options?: WaitForOptions<T>): Promise<T>;
  /**
   * Emits an event of the running turn, see `turns.events` (TRN-30): a part of the answer, a tool call, progress.
   * Events are stored in order and in batches, before the turn settles. The promise does not have to be awaited. It
   * resolves at once, unless 1 MiB waits to be stored; awaiting it then slows the handler down to the speed of the
   * store. Has no effect after the attempt has ended. It rejects only for an invalid event, which is not emitted; if the
   * handler does not await the call, the rejection is logged (FIX-91).
   * @param event `type` is a custom name, `data` JSON of up to 65,536 bytes
   * @throws InvalidInputError for `type`, also for `settled`, `waiting` and `attempt`; StateSerializationError,
   * TooLargeError for `data`
   */
  emit<const Event extends EmittedEvent>(event: Event & EmittedEventCheck<Event>): Promise<void>;
  /**
   * Stores the emitted events now, instead of with the next batch (AIS-07). Use it before an effect that must not
   * happen before its events can be read. Never rejects; resolves once the events are stored, or dropped because the
   * attempt has ended.
   */
  flush(): Promise<void>;
  /**
   * Returns the turn's events so far, of earlier attempts and of this one, whose events it stores first (AIS-07). Use it
   * to emit only what readers do not have yet.
   * @returns the events by offset, with the `attempt` events between attempts; empty if events are disabled or have
   * expired
   * @throws StoreUnavailableError
   */
  emitted(): Promise<readonly TurnEvent[]>;
}

/** The tools of a turn, restricted by the orchestrator's `steps`. Without a plan, all tools are allowed. */
export interface TurnTools {
  /** The active step of the plan. */
  readonly activeStep: OrchestrationStep | undefined;
  /** The stored progress, with the changes of this turn. */
  readonly state: OrchestrationProgress;
  /** Returns the given tools that are allowed now, in their order. Offer these to the model (ORC-24). */
  allowed(tools: readonly string[]): string[];
  /**
   * Runs a tool (ORC-28, FIX-20). It checks that the plan allows the tool, counts the use, runs the tool as a step with
   * a stored result, and records the outcome. Counting advances the sequence and can activate another step; a failed
   * use is reverted.
   *
   * A use that the plan limits is stored before it begins, so that `OrchestrationService.admitTool` counts it (FIX-88).
   *
   * Uses that start in parallel are admitted one after the other, and their work runs in parallel. While a sequence is
   * active, a use is admitted only after the earlier ones have ended.
   *
   * A call that has succeeded, also in an earlier attempt, returns its result and counts once. A call that was rejected
   * or failed can be repeated, and is repeated when the turn is retried. The changes of the plan are stored when the
   * turn settles, and dropped if it fails or is cancelled. It cannot be called inside a step or another tool.
   * @param callId the model's id of the call, of any length. It identifies the call in the turn, together with
   * `options.answer`
   * @param options `input`: the model's arguments; `schema`: validates them; `answer`: the number of the model's answer.
   * While a call runs, the same id with another input is rejected (FIX-11); afterwards it is a new call (FIX-63)
   * @returns the result as JSON, frozen; the same for every call with this id
   * @throws InvalidInputError for an `input` that does not match `schema`, before the use is admitted;
   * ToolNotAllowedError before `work` is called, listing the allowed tools; what `work` throws, after the use
   * is recorded as failed; HandlerError (`TOOL_CALL_CONFLICT`) if the call id is in use with another tool or input;
   * StateSerializationError
   */
  use<T>(
    tool: string,
    callId: string,
    work: ((info: StepInfo) => Promise<T> | T) & JsonCheck<T>,
    options?: ToolCallOptions,
  ): Promise<T>;
  /** Returns the state of the plan for a prompt (ORC-10). */
  toAIOrchestrationState(): AIOrchestrationState;
}

/**
 * The session's state modules in a turn. Reads return the stored values with the changes of this turn; each value is
 * read once per attempt. Writes are stored in the commit that settles the turn, and dropped if it fails or is
 * cancelled. They do not apply to a module that was reset in the meantime (STA-23).
 *
 * Changes are merged with concurrent changes of others. A change that is no longer valid then, for example because a
 * task has moved on, is dropped. Do not write inside steps, which do not run again when the turn is retried: write
 * their results after them.
 *
 * All methods throw StateModuleError for a module that is not enabled, InvalidInputError for wrong names and
 * values, StateSerializationError and TooLargeError. Methods that read also reject with StoreUnavailableError. Once the
 * attempt has ended, writes are dropped and logged, and those of tasks reject with TurnStoppedError (DAY-17).
 */
export interface TurnModules {
  readonly tools: TurnToolState;
  readonly task: TurnTaskState;
  readonly flow: TurnFlowState;
}

/** State of the session's tools, see `SessionStateService.tools`. */
export interface TurnToolState {
  /** Returns the value of an entry. @returns `undefined` if it does not exist */
  get<T = JsonValue>(tool: string, key: string): Promise<T | undefined>;
  /** Replaces the entry. @throws StateSerializationError, TooLargeError */
  set(tool: string, key: string, value: unknown, options?: ToolEntryOptions): void;
  /**
   * Merges at the first level, and removes the keys of `unset` (FIX-47). Creates the entry if it does not exist. The turn
   * fails with an InvalidInputError at its end if the stored value is not an object, and with a TooLargeError if the
   * result is too large.
   * @param options `ttlMs`, `secret`: used when the entry is created
   * @throws InvalidInputError, StateSerializationError, TooLargeError for the patch itself
   */
  patch(tool: string, key: string, patch: object, options?: ToolPatchOptions): void;
  /**
   * Adds to a number; a missing entry counts as 0. The turn fails with an InvalidInputError at its end if the stored
   * value is not a number, or the result is not finite.
   * @param by default 1
   * @param options used when the entry is created
   */
  increment(tool: string, key: string, by?: number, options?: ToolEntryOptions): void;
  /** Deletes an entry. Has no effect if it does not exist. */
  delete(tool: string, key: string): void;
}

/** A task of the session, with the changes of the turn. */
export type TurnTask = Pick<TaskRecord, 'id' | 'state' | 'flowState'>;

/** The session's tasks, see `SessionStateService.task`. */
export interface TurnTaskState {
  /** @returns the task with the changes of this turn, or `null` if it does not exist */
  get(id: string): Promise<Pick<TaskRecord, 'id' | 'state' | 'flowState'> | null>;
  /**
   * Creates a task, which is `submitted` (FIX-47). Reads the task first only if the call chooses its id.
   * @throws TaskError (`TASK_CONFLICT`) when the session has a task with this id
   */
  create(task?: NewTask): Promise<Pick<TaskRecord, 'id' | 'state' | 'flowState'>>;
  /**
   * Moves a task to another state, and replaces its flow state if `flowState` is given. @throws TaskError
   * for `TASK_NOT_FOUND` and `TASK_TRANSITION`
   */
  transition(id: string, to: TaskRecord['state'], options?: TaskTransitionOptions): Promise<void>;
  /** @throws TaskError (`TASK_NOT_FOUND`) */
  setFlowState(id: string, flowState: unknown): Promise<void>;
}

/** Checkpoints of the session's flows, see `SessionStateService.flow`. */
export interface TurnFlowState {
  /** Returns the latest checkpoint; `undefined` if it does not exist. */
  load<T = JsonValue>(flow: string): Promise<T | undefined>;
  /** Saves a checkpoint. If a turn saves several, only the last one is stored. */
  save(flow: string, checkpoint: unknown): void;
}

/**
 * The tokens that models used. They are part of the turn's result and report (BOT-09), and counted for the session if
 * there is a plan (ORC-11).
 */
export interface TurnUsage {
  /**
   * Adds the tokens that a model used. They count even if the attempt fails: they are recorded with the next step, or
   * when the attempt ends (FIX-15). Do not call it inside a step, which does not run again when the turn is retried.
   * Return the usage from the step, and add it after the step. A later attempt that replays the step may add it again,
   * but it counts once. @throws InvalidInputError
   */
  add(usage: TokenCountsInput): void;
  /**
   * Counts a call of a model in the work of its step, before the step is stored: its commit records the tokens, so a
   * replay adds none. The call counts in `unknownCalls` until the returned function is called with the tokens (AIS-36).
   * @internal
   */
  beginCall(): (usage: TokenCountsInput) => void;
  /**
   * Adds the tokens of a replayed call only to the report of the intent.
   * @param usage absent if the provider sent none
   * @internal
   */
  repeatCall(usage: TokenCountsInput | undefined): void;
  /** Checks the budget before a call of a model. @throws TokenBudgetExceededError when the `tokenBudget` is used up */
  assertWithinBudget(): void;
}

/** Options of `turn.waitFor` (TRN-13). */
export interface WaitForOptions<T> {
  /**
   * A class with class-validator's decorators. The payload is validated and converted to an instance of it; its values do not change.
   * Nested objects with `@ValidateNested()` need `@Type()` of class-transformer (FIX-73). Default: any JSON.
   */
  readonly schema?: new () => T & object;
  /** The timeout in milliseconds. Default: none. */
  readonly timeoutMs?: number;
  /**
   * Returns the result if the signal did not arrive in time. It runs once, as a step: its outcome is stored as JSON,
   * and later attempts get the stored value (FIX-12). Default: TurnTimeoutError is thrown.
   */
  readonly onTimeout?: () => T | Promise<T>;
}

/**
 * Builds the `context` of every attempt of a turn, in any process. Provide a custom factory to give workers and resumed
 * turns access to application objects.
 */
export class TurnContextFactory {
  /** Builds the context. Called once per attempt, before the route, with frozen values. An error fails the attempt. */
  create(_turn: Turn, _session: Session): Record<string, unknown> | Promise<Record<string, unknown>> {
    return {};
  }
}
