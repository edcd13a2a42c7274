import { type TurnContext } from './turn-context.js';

/**
 * Decorates a class. The compiler rejects a class with a public method whose `TurnContext` has another state than the orchestrator
 * (DAY-05).
 */
export interface OrchestratorDecorator<State> {
  /** Accepts no call. It makes the decorator a `ClassDecorator`, as in `IntentDecorator`. */
  (target: never, unused: never): void;
  /** Decorates the class. @typeParam Class the type of the class */
  <Class extends abstract new (...args: never[]) => object>(
    target: Class & StateCheck<InstanceType<Class>, State>,
  ): void;
}

/**
 * Requires `initialState` if the state has required keys, because the state of a session's first turn would lack them (DAY-05).
 */
export type InitialStateCheck<State> = string extends keyof State
  ? unknown
  : Record<never, never> extends State
    ? unknown
    : { readonly initialState: () => State };

/** Accepts every class without a problem. The name of the problem appears in the compiler's message. */
type StateCheck<Instance, State> = [ProblemIn<Instance, State>] extends [never]
  ? unknown
  : { readonly problem: ProblemIn<Instance, State> };

type ProblemIn<Instance, State> = 0 extends 1 & Instance
  ? never // any
  : { [Key in keyof Instance]: StateProblem<StateOf<Instance[Key]>, State> }[keyof Instance];

/** The state in the first parameter of a method; `unknown` for another property. */
type StateOf<Method> = Method extends (turn: infer Turn, ...more: never[]) => unknown
  ? Turn extends TurnContext<infer State>
    ? State
    : unknown
  : unknown;

type StateProblem<Used, State> = 0 extends 1 & Used
  ? never // any
  : string extends keyof Used
    ? never
    : {
        [Key in keyof Used]-?: Key extends string
          ? KeyProblem<Key, Record<never, never> extends Pick<Used, Key> ? true : false, Used[Key], State>
          : never;
      }[keyof Used];

/** Without a declared state, the state of the first turn is empty. */
type KeyProblem<Key extends string, IsOptional, Used, State> = string extends keyof State
  ? IsOptional extends true
    ? never
    : `The state requires ${Key}: set initialState.`
  : Key extends keyof State
    ? IsComparable<NonNullable<Used>, NonNullable<State[Key]>> extends true
      ? never
      : `The state of the orchestrator has another type of ${Key}.`
    : IsOptional extends true
      ? never
      : `The state of the orchestrator has no key ${Key}.`;

/**
 * Compares in both directions, because the compiler widens `initialState: () => ({ mode: 'open' })` to `{ mode: string }`. Two
 * objects are comparable: their keys are widened too.
 */
type IsComparable<A, B> = [A] extends [B]
  ? true
  : [B] extends [A]
    ? true
    : [A, B] extends [object, object]
      ? true
      : false;
