import { type KeepCheckpoints } from '../checkpoint/checkpoint.store.js';
import { type OnViolation, type OrchestrationStep } from '../orchestration/orchestration-config.js';
import { type StepPlan } from '../orchestration/step-plan.js';
import { type END, type TurnOutcome } from './turn-outcome.js';
import { type TurnContext } from './turn-context.js';

/** The intents that a turn goes to: one, several in parallel, or none. */
export type RouteDecision = string | readonly string[] | typeof END;

type Awaitable<T> = T | Promise<T>;

export type RouteFunction<State> = (turn: TurnContext<State>) => Awaitable<RouteDecision>;

/** A router that is more than a function, for example one that asks a model. */
export abstract class IntentRouter<State = Record<string, unknown>> {
  abstract route(turn: TurnContext<State>, intents: readonly string[]): Awaitable<RouteDecision>;
}

/** A text is the reply, an object without a class a patch of the state, nothing changes nothing. */
export type IntentResult<State> = TurnOutcome<State> | Partial<State> | string | undefined | void;

export type IntentFunction<State> = (turn: TurnContext<State>) => Awaitable<IntentResult<State>>;

/** How many messages of history the route and the intents are given. */
export interface HistoryWindow {
  /** Default: as `agents`. */
  readonly router?: number;
  /** Default 200. */
  readonly agents?: number;
}

/** What `@Orchestrator` and `defineOrchestrator` have in common. */
export interface OrchestratorOptions<State = Record<string, unknown>> {
  /** Unique in the application; part of stored keys. */
  readonly name: string;
  /** Bump it when the shape of state or intents changes; compared as people write versions. Default `1`. */
  readonly version?: string;
  /** Of a session's first turn. Default `{}`. */
  readonly initialState?: () => State;
  /** A number is for both. */
  readonly historyWindow?: number | HistoryWindow;
  /** How many checkpoints remain per session. Default 100. */
  readonly keepCheckpoints?: KeepCheckpoints;
  /** Of the state as JSON. Default 262,144. */
  readonly maxStateBytes?: number;
  /**
   * The steps of the agent's plan, which say what tools its turns may use when; see `turn.tools`. Default: none, all tools.
   */
  readonly steps?: readonly OrchestrationStep[];
  /** What to do about a tool that the plan does not allow. Default `reject`. */
  readonly onViolation?: OnViolation;
  /** Tokens that a session may take in all, see `turn.usage`. Default: no limit. */
  readonly tokenBudget?: number;
  /** Decides like `route`; give one of the two. */
  readonly router?: IntentRouter<State> | (abstract new (...args: never[]) => IntentRouter<State>);
}

/** What `defineOrchestrator` takes. */
export interface OrchestratorConfig<State = Record<string, unknown>> extends OrchestratorOptions<State> {
  /** Decides which intents a turn goes to. With a single intent it may be left out. */
  readonly route?: RouteFunction<NoInfer<State>>;
  /** By name. What they return does not say what the state is: give its type, or an `initialState`. */
  readonly intents: Readonly<Record<string, IntentFunction<NoInfer<State>>>>;
}

/** A checked orchestrator with every default filled in: what decorators and `defineOrchestrator` compile to. */
export interface OrchestratorDefinition<State = Record<string, unknown>> {
  readonly name: string;
  readonly version: string;
  /** SHA-256 of its structure: changes when intents, routing or windows change shape (BOT-22). */
  readonly signature: string;
  readonly initialState: () => State;
  readonly historyWindow: { readonly router: number; readonly agents: number };
  readonly keepCheckpoints: KeepCheckpoints;
  readonly maxStateBytes: number;
  readonly route: RouteFunction<State>;
  readonly intents: ReadonlyMap<string, IntentFunction<State>>;
  /** Present with `steps` or a `tokenBudget`. */
  readonly plan?: StepPlan;
}
