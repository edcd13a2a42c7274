/**
 * Accepts a route that chooses intents of the orchestrator, or names that only the runtime knows. For another name, the compiler's
 * message contains the problem (DAY-05).
 */
export type RouteCheck<Decision, Intent extends string> = [UnknownIn<NamesIn<Decision>, Intent>] extends [never]
  ? unknown
  : { readonly problem: `There is no intent ${UnknownIn<NamesIn<Decision>, Intent>}.` };

type NamesIn<Decision> = 0 extends 1 & Decision
  ? never // any
  : Decision extends string
    ? Decision
    : Decision extends readonly (infer Name)[]
      ? Name
      : Decision extends { readonly intents: infer Choice }
        ? NamesIn<Choice>
        : never;

type UnknownIn<Name, Intent extends string> = Name extends string
  ? string extends Name
    ? never
    : Name extends Intent
      ? never
      : Name
  : never;
