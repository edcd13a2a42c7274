/** The names of the methods that `Port` requires. Optional methods do not count. */
export type MethodsOf<Port> = {
  [Key in keyof Port]-?: object extends Pick<Port, Key>
    ? never
    : Port[Key] extends (...args: never[]) => unknown
      ? Key
      : never;
}[keyof Port];

/** A list of the methods that `Port` requires. It compiles only if it has all of them and no others. */
export type RequiredMethods<Port> = Readonly<Record<MethodsOf<Port>, true>>;

/** Returns whether an external value is an object with this method. Methods of prototypes and of proxies count. */
export function hasMethod(value: unknown, name: string): boolean {
  return typeof value === 'object' && value !== null && typeof (value as Record<string, unknown>)[name] === 'function';
}

/** Returns the required methods that an external value lacks, in the order of the list. */
export function missingMethods(value: unknown, required: Readonly<Record<string, true>>): string[] {
  return Object.keys(required).filter((name) => !hasMethod(value, name));
}

/** Returns the first required method that an external value lacks, for messages: `claim()`. */
export function missingMethod(value: unknown, required: Readonly<Record<string, true>>): string | undefined {
  const name = missingMethods(value, required).at(0);
  return name === undefined ? undefined : `${name}()`;
}

/** Adds the first missing member of an object to a rule. Other values than objects lack all members, so the rule is enough. */
export function withMissing(rule: string, value: unknown, missing: string | undefined): string {
  return typeof value === 'object' && value !== null && missing !== undefined
    ? `${rule} Missing: ${missing}. Add it.`
    : rule;
}
