import { type ParameterProblem } from './intent-decorator.js';

/**
 * Decorates the method that routes a turn. The compiler rejects a method that does not accept a `TurnContext`, and one that returns something else than
 * names of intents, END_TURN, or an explained choice (DAY-05). It cannot check the names, because decorators do not see the intents of the other methods: an unknown
 * name fails the first turn that chooses it.
 */
export interface RouteDecorator {
  /** Accepts no call. It makes the decorator a `MethodDecorator`, as in `IntentDecorator`. */
  (target: never, method: never, descriptor: never, unused: never): void;
  /** Decorates the method. @typeParam Method the type of the method */
  <Method extends (...args: never[]) => unknown>(
    target: object,
    method: string | symbol,
    descriptor: TypedPropertyDescriptor<Method> & RouteMethodCheck<Method>,
  ): void;
}

/** Accepts every method without a problem. The name of the problem appears in the compiler's message. */
type RouteMethodCheck<Method> = Method extends (...args: infer Args) => infer Result
  ? [ParameterProblem<Args> | ProblemOf<Awaited<Result>>] extends [never]
    ? unknown
    : { readonly problem: ParameterProblem<Args> | ProblemOf<Awaited<Result>> }
  : unknown;

type ProblemOf<Result> = 0 extends 1 & Result
  ? never // any
  : unknown extends Result
    ? never
    : Result extends Choice | { readonly intents: Choice }
      ? never
      : 'A route returns the name of an intent, a list of names, or END_TURN.';

/** The compiler widens END_TURN to `symbol` in the inferred type of a method. */
type Choice = string | readonly string[] | symbol;
