import { type KeepCheckpoints } from '../ledger/checkpoint.store.js';
import { type CompactionOptions, type CompactionPolicy } from '../conversation/compaction-policy.js';
import { type HistoryWindow, type HistoryWindowOption } from '../conversation/history-window.js';
import { type OnViolation, type OrchestrationStep } from '../orchestration/orchestration-config.js';
import { type StepPlan } from '../orchestration/step-plan.js';
import { type Evaluation, type IntentReply } from './evaluation.js';
import { type OrchestratorListeners } from './orchestrator-events.js';
import { type MemoryPort, type MemoryScope } from './memory-port.js';
import { type StateMigration } from './state-migrations.js';
import { type StateSchema } from './state-schema.js';
import { type END, type TurnOutcome } from './turn-outcome.js';
import { type TurnContext } from './turn-context.js';

/** The intents that a turn goes to: one, several in parallel, or none. */
export type IntentChoice = string | readonly string[] | typeof END;

/** A choice with what is worth remembering of it; both are part of the turn's report (BOT-09). */
export interface ExplainedChoice {
  readonly intents: IntentChoice;
  /** Why, in the router's words. */
  readonly reasoning?: string;
  /** What the router's model answered; JSON. */
  readonly raw?: unknown;
}

/** The intents that a turn goes to, with or without the reasons (BOT-03). */
export type RouteDecision = IntentChoice | ExplainedChoice;

type Awaitable<T> = T | Promise<T>;

/** Decides which intents a turn goes to. */
export type RouteFunction<State> = (turn: TurnContext<State>) => Awaitable<RouteDecision>;

/** A router that is more than a function, for example one that asks a model. */
export abstract class IntentRouter<State = Record<string, unknown>> {
  /**
   * @param intents the names that there are
   * @returns one of them, several, or `END`; another name fails the turn (UnknownIntentError)
   */
  abstract route(turn: TurnContext<State>, intents: readonly string[]): Awaitable<RouteDecision>;
}

/** A text is the reply, an object without a class a patch of the state, nothing changes nothing. */
export type IntentResult<State> = TurnOutcome<State> | Partial<State> | string | undefined | void;

/** Answers a turn. */
export type IntentFunction<State> = (turn: TurnContext<State>) => Awaitable<IntentResult<State>>;

/** `true` is satisfied; nothing goes on. */
export type EvaluateFunction<State> = (
  turn: TurnContext<State>,
  replies: readonly IntentReply[],
) => Awaitable<Evaluation | boolean | undefined | void>;

/** What `@Orchestrator` and `defineOrchestrator` have in common. */
export interface OrchestratorOptions<State = Record<string, unknown>> {
  /** Unique in the application; part of stored keys. */
  readonly name: string;
  /** Bump it when the shape of state or intents changes; compared as people write versions. Default `1`. */
  readonly version?: string;
  /** Of a session's first turn. Default `{}`. */
  readonly initialState?: () => State;
  /** What the route and the intents are given of the conversation; a window alone is for both. Default 200 messages. */
  readonly historyWindow?: HistoryWindowOption;
  /** When old messages are summarized, and how (BOT-41). Default: never. */
  readonly compaction?: CompactionOptions;
  /** How many checkpoints remain per session. Default 100. */
  readonly keepCheckpoints?: KeepCheckpoints;
  /** Bytes that the state may take as JSON. Default 262,144. */
  readonly maxStateBytes?: number;
  /**
   * The steps of the agent's plan, which say what tools its turns may use when; see `turn.tools`. Default: none, all tools.
   */
  readonly steps?: readonly OrchestrationStep[];
  /** What to do about a tool that the plan does not allow. Default `reject`. */
  readonly onViolation?: OnViolation;
  /** Tokens that a session may take in all, see `turn.usage`. Default: no limit. */
  readonly tokenBudget?: number;
  /**
   * Decide, dispatch, merge and evaluate, again and again, until the route says END, an intent gives its outcome a status,
   * `evaluate` is satisfied, or `maxIterations` is reached (BOT-05). Each iteration that is followed by another one is stored:
   * after a crash the turn goes on with the next one. Default: one decision and one dispatch.
   */
  readonly iterate?: boolean;
  /** Iterations that one turn may make, with `iterate`. Default 10. */
  readonly maxIterations?: number;
  /** Where the first iteration of every turn goes without asking the route; with `iterate`. Default: the route is asked. */
  readonly initialIntent?: string;
  /** From the states of older versions to the present one, applied when a session is loaded (BOT-24). Default: none. */
  readonly migrations?: readonly StateMigration[];
  /**
   * What every state must fit before it is stored: a class with class-validator's decorators, or a Standard Schema. Default:
   * any object.
   */
  readonly stateSchema?: StateSchema;
  /**
   * Recalls before dispatch (`turn.memories`), and remembers turns that have settled (BOT-51). A class is a provider.
   * Default: no memory.
   */
  readonly memory?: MemoryPort | (abstract new (...args: never[]) => MemoryPort);
  /** Who shares a memory. Default `session`: nobody. */
  readonly memoryScope?: MemoryScope;
  /** Told of what happens to this orchestrator's turns in this process, see OrchestratorEvents (BOT-10). Default: nobody is told. */
  readonly on?: OrchestratorListeners;
  /** Decides like `route`; give one of the two. Left out: the route does. */
  readonly router?: IntentRouter<State> | (abstract new (...args: never[]) => IntentRouter<State>);
}

/** What `defineOrchestrator` takes. */
export interface OrchestratorConfig<State = Record<string, unknown>> extends OrchestratorOptions<State> {
  /** Decides which intents a turn goes to. Left out: a `router` does, or there is a single intent. */
  readonly route?: RouteFunction<NoInfer<State>>;
  /** By name. What they return does not say what the state is: give its type, or an `initialState`. */
  readonly intents: Readonly<Record<string, IntentFunction<NoInfer<State>>>>;
  /** Looks at what an iteration gave; with `iterate`. Left out: goes on until `maxIterations`, END or a status. */
  readonly evaluate?: EvaluateFunction<NoInfer<State>>;
}

/** A checked orchestrator with every default filled in: what decorators and `defineOrchestrator` compile to. */
export interface OrchestratorDefinition<State = Record<string, unknown>> {
  readonly name: string;
  readonly version: string;
  /** SHA-256 of its structure: changes when intents, routing or windows change shape (BOT-22). With intents added, sessions continue. */
  readonly signature: string;
  /** Of a session's first turn. */
  readonly initialState: () => State;
  readonly historyWindow: Required<HistoryWindow>;
  readonly compaction?: CompactionPolicy;
  readonly keepCheckpoints: KeepCheckpoints;
  readonly maxStateBytes: number;
  readonly route: RouteFunction<State>;
  /** What decides, for reports. */
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
  /** Present with `steps` or a `tokenBudget`. */
  readonly plan?: StepPlan;
}
