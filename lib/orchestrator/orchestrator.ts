import { type Patch } from '../common/patch.js';
import { type KeepCheckpoints } from '../ledger/checkpoint.store.js';
import { type CompactionOptions, type CompactionPolicy } from '../conversation/compaction-policy.js';
import { type HistoryWindow, type HistoryWindowOption } from '../conversation/history-window.js';
import { type OnViolation, type OrchestrationStep } from '../orchestration/orchestration-config.js';
import { type StepPlan } from '../orchestration/step-plan.js';
import { type Evaluation, type IntentReply } from './evaluation.js';
import { type InitialStateCheck } from './orchestrator-decorator.js';
import { type OrchestratorListeners } from './orchestrator-events.js';
import { type MemoryPort, type MemoryScope } from './memory-port.js';
import { type RouteCheck } from './route-check.js';
import { type StateMigration } from './state-migrations.js';
import { type StateSchema } from './state-schema.js';
import { type END_TURN, type TurnOutcome } from './turn-outcome.js';
import { type TurnContext } from './turn-context.js';

/** The intents that handle a turn: one, several in parallel, or none. */
export type IntentChoice = string | readonly string[] | typeof END_TURN;

/** A choice with an explanation, which is stored in the turn's report (BOT-09). */
export interface ExplainedChoice {
  readonly intents: IntentChoice;
  /** The router's explanation. */
  readonly reasoning?: string;
  /** The answer of the router's model, as JSON. */
  readonly raw?: unknown;
}

/** The intents that handle a turn, with an optional explanation (BOT-03). */
export type RouteDecision = IntentChoice | ExplainedChoice;

type Awaitable<T> = T | Promise<T>;

/** Chooses the intents that handle a turn. */
export type RouteFunction<State, Decision extends RouteDecision = RouteDecision> = (
  turn: TurnContext<State>,
) => Awaitable<Decision>;

/** Base class of routers that are more than a function, for example one that calls a model. */
export abstract class IntentRouter<State = Record<string, unknown>> {
  /**
   * @param intents the names of the orchestrator's intents
   * @returns one of them, several, or `END_TURN`; an unknown name fails the turn (HandlerError, `UNKNOWN_INTENT`)
   */
  abstract route(turn: TurnContext<State>, intents: readonly string[]): Awaitable<RouteDecision>;
}

/**
 * The result of an intent. A string is the reply, a plain object is a patch of the state, and `undefined` changes
 * nothing.
 */
export type IntentResult<State> = TurnOutcome<State> | Patch<State> | string | undefined | void;

/** Handles a turn. */
export type IntentFunction<State> = (turn: TurnContext<State>) => Awaitable<IntentResult<State>>;

/** Evaluates an iteration. `true` means satisfied; `undefined` continues. */
export type EvaluateFunction<State> = (
  turn: TurnContext<State>,
  replies: readonly IntentReply[],
) => Awaitable<Evaluation | boolean | undefined | void>;

/** The options that `@Orchestrator` and `defineOrchestrator` share. */
export interface OrchestratorOptions<State = Record<string, unknown>> {
  /** Unique in the application; part of stored keys. */
  readonly name: string;
  /**
   * Increase it when the shape of the state or the intents changes. Digits compare as numbers: `1.9` < `1.10`.
   * Default `1`.
   */
  readonly version?: string;
  /** Returns the state of a session's first turn. Default `{}`. */
  readonly initialState?: () => State;
  /**
   * The part of the conversation that the route and the intents receive. A single window applies to both. Default: 200
   * messages.
   */
  readonly historyWindow?: HistoryWindowOption;
  /** When and how old messages are summarized (BOT-41). Default: never. */
  readonly compaction?: CompactionOptions;
  /** The number of checkpoints kept per session. Default 100. */
  readonly keepCheckpoints?: KeepCheckpoints;
  /** The maximum size of the state as JSON, in bytes. Default 262,144. */
  readonly maxStateBytes?: number;
  /**
   * The steps of the agent's plan, which restrict the tools that its turns may use; see `turn.tools`. Default: no plan,
   * all tools are allowed.
   */
  readonly steps?: readonly OrchestrationStep[];
  /** How a tool that the plan does not allow is handled. Default `reject`. */
  readonly onViolation?: OnViolation;
  /** The maximum number of tokens per session, see `turn.usage`. Default: no limit. */
  readonly tokenBudget?: number;
  /**
   * Repeats decide, dispatch, merge and evaluate until the route returns END_TURN, an intent's outcome has a status,
   * `evaluate` is satisfied, or `maxIterations` is reached (BOT-05). Each iteration that is followed by another one is
   * stored: after a crash, the turn continues with the next one. Default: one decision and one dispatch.
   */
  readonly iterate?: boolean;
  /** The maximum number of iterations per turn. Requires `iterate`. Default 10. */
  readonly maxIterations?: number;
  /**
   * The intent of the first iteration of every turn, used instead of calling the route. Requires `iterate`. Default:
   * the route is called.
   */
  readonly initialIntent?: string;
  /**
   * Migrations from the states of older versions to the current one, applied when a session is loaded (BOT-24).
   * Default: none.
   */
  readonly migrations?: readonly StateMigration[];
  /**
   * Validates every state before it is stored: a class with class-validator's decorators, or a Standard Schema.
   * Nested objects of a class need `@ValidateNested()` and `@Type()` of class-transformer (FIX-73). Default: any object.
   */
  readonly stateSchema?: StateSchema;
  /**
   * Recalls memories before dispatch (`turn.memories`) and stores memories of settled turns (BOT-51). A class is
   * resolved as a provider. Default: no memory.
   */
  readonly memory?: MemoryPort | (abstract new (...args: never[]) => MemoryPort);
  /** Which sessions share a memory. Default `session`: none. */
  readonly memoryScope?: MemoryScope;
  /**
   * Listeners for events of this orchestrator's turns in this process, see OrchestratorEvents (BOT-10). Default: none.
   */
  readonly on?: OrchestratorListeners;
  /** Chooses intents, as an alternative to `route`; set only one of them. Default: none. */
  readonly router?: IntentRouter<State> | (abstract new (...args: never[]) => IntentRouter<State>);
}

/**
 * The options of `defineOrchestrator`. A state with required keys requires `initialState`.
 * @typeParam Intent the names of the intents
 * @typeParam Decision what the route returns
 */
export type OrchestratorConfig<
  State = Record<string, unknown>,
  Intent extends string = string,
  Decision extends RouteDecision = RouteDecision,
> = OrchestratorOptions<State> &
  InitialStateCheck<State> & {
    /** Chooses the intents that handle a turn. Default: the `router`, or the only intent. */
    readonly route?: RouteFunction<NoInfer<State>, Decision> & RouteCheck<Decision, NoInfer<Intent>>;
    /**
     * The intents by name. The state type is not inferred from their results: pass an `initialState`, whose type it is. With a type
     * argument instead, the compiler does not check the names that the route returns.
     */
    readonly intents: { readonly [Name in Intent]?: IntentFunction<NoInfer<State>> | undefined };
    /**
     * The intent of the first iteration of every turn, used instead of calling the route. Requires `iterate`. Default:
     * the route is called.
     */
    readonly initialIntent?: NoInfer<Intent>;
    /**
     * Evaluates the replies of an iteration. Requires `iterate`. Default: iterations continue until `maxIterations`, END_TURN
     * or a status.
     */
    readonly evaluate?: EvaluateFunction<NoInfer<State>>;
  };

/** A validated orchestrator with all defaults applied. Decorators and `defineOrchestrator` compile to this. */
export interface OrchestratorDefinition<State = Record<string, unknown>> {
  readonly name: string;
  readonly version: string;
  /**
   * SHA-256 of the structure. It changes with the shape of intents, routing or windows (BOT-22). Sessions continue if
   * intents were only added.
   */
  readonly signature: string;
  /** Returns the state of a session's first turn. */
  readonly initialState: () => State;
  readonly historyWindow: Required<HistoryWindow>;
  readonly compaction?: CompactionPolicy;
  readonly keepCheckpoints: KeepCheckpoints;
  readonly maxStateBytes: number;
  readonly route: RouteFunction<State>;
  /** The kind of routing, for reports. */
  readonly routing: 'route' | 'router' | 'single';
  readonly intents: ReadonlyMap<string, IntentFunction<State>>;
  readonly evaluate?: EvaluateFunction<State>;
  readonly iterate: boolean;
  /** 1 without `iterate`. */
  readonly maxIterations: number;
  readonly initialIntent?: string;
  readonly migrations: readonly StateMigration[];
  readonly stateSchema?: StateSchema;
  readonly memory?: MemoryPort;
  readonly memoryScope: MemoryScope;
  readonly on: OrchestratorListeners;
  /** Present if `steps` or a `tokenBudget` is set. */
  readonly plan?: StepPlan;
}
