import { type TurnContext } from './turn-context.js';
import { type TurnOutcome } from './turn-outcome.js';

/**
 * Decorates a method that handles an intent. The compiler rejects a method that does not accept a `TurnContext`, that returns
 * something else than an outcome, or that changes a key which the state of its `TurnContext` does not have, or gives it another type
 * (DAY-16).
 */
export interface IntentDecorator {
  /**
   * Accepts no call. The compiler compares overloaded functions without their type parameters, so this signature makes the
   * decorator a `MethodDecorator`, for example for `applyDecorators` of Nest. Decorators are called with three arguments,
   * so messages about mistakes do not show it.
   */
  (target: never, method: never, descriptor: never, unused: never): void;
  /** Decorates the method. @typeParam Method the type of the method */
  <Method extends (...args: never[]) => unknown>(
    target: object,
    method: string | symbol,
    descriptor: TypedPropertyDescriptor<Method> & IntentCheck<Method>,
  ): void;
}

/** Accepts every method without a problem. The name of the problem appears in the compiler's message. */
type IntentCheck<Method> = Method extends (...args: infer Args) => infer Result
  ? [ParameterProblem<Args> | ProblemOf<Awaited<Result>, StateOf<Args>>] extends [never]
    ? unknown
    : { readonly problem: ParameterProblem<Args> | ProblemOf<Awaited<Result>, StateOf<Args>> }
  : unknown;

/** The problem of a method whose parameter does not accept the context of a turn, for example `answer(text: string)`. */
export type ParameterProblem<Args> = Args extends readonly [(infer Parameter)?, ...unknown[]]
  ? TurnContext<never> extends Parameter
    ? never
    : Parameter extends TurnContext<infer _>
      ? never
      : 'The parameter is the turn: (turn: TurnContext). Its text is turn.input.text.'
  : never;

/** `unknown` if the method declares no context. */
type StateOf<Args> = Args extends readonly [TurnContext<infer State>, ...unknown[]] ? State : unknown;

type ProblemOf<Result, State> = 0 extends 1 & Result
  ? never // any
  : Result extends string | undefined | void
    ? never
    : Result extends TurnOutcome<infer Written>
      ? PatchProblem<Written, State>
      : Result extends NotPlain
        ? NotAnOutcome
        : Result extends object
          ? PatchProblem<Result, State>
          : NotAnOutcome;

type NotPlain = Date | Iterable<unknown> | AsyncIterable<unknown> | ((...args: never[]) => unknown);
type NotAnOutcome =
  'An intent returns reply(...), streamReply(turn, ...), a string, an object with changes of the state, or nothing.';

/**
 * The problems of a change of the state. The first condition is also decided for the type parameter of a generic class.
 */
type PatchProblem<Written, State> = { written: Written; state: State } extends { written: State; state: Written }
  ? never
  : unknown extends State
    ? never
    : string extends KeyOf<Written>
      ? never
      : UnknownKey<Exclude<KeyOf<Written>, KeyOf<State>>> | WrongValue<Written, State>;

type KeyOf<T> = T extends unknown ? keyof T : never;
/** The values of a key in all members of a union. */
type ValueOf<T, Key> = T extends unknown ? (Key extends keyof T ? T[Key] : never) : never;

type UnknownKey<Key> = Key extends string | number ? `The state has no key ${Key}.` : never;

type WrongValue<Written, State> = Written extends unknown
  ? {
      [Key in keyof Written & KeyOf<State>]-?: [Misfit<Written[Key], ValueOf<State, Key>>] extends [never]
        ? never
        : Key extends string | number
          ? Written[Key] extends PromiseLike<unknown>
            ? `${Key} is a promise. Await it.`
            : `The state has another type of ${Key}.`
          : never;
    }[keyof Written & KeyOf<State>]
  : never;

/** `never` if the state accepts the value. `undefined` removes a key. Objects, unlike tuples, are decided for type parameters. */
type Misfit<Value, Accepted> = { value: Value } extends { value: Accepted | undefined }
  ? never
  : MisfitMember<Value, Accepted>;

/**
 * Without a context, the compiler widens `{ kind: 'a' }` to `{ kind: string }`, so a value fits if it may be one that the state
 * accepts. The contents of objects are widened too, and are not compared.
 */
type MisfitMember<Value, Accepted> = Value extends Accepted | undefined
  ? never
  : [Extract<Accepted, Widened<Value>>] extends [never]
    ? true
    : never;

type Widened<Value> = Value extends boolean ? boolean : Value extends object ? object : Value;
