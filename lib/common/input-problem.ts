/** A rule as the problem of a value that breaks it. Says when there is no value: whoever passes one on does not see that. */
export function problemOf(rule: string, value: unknown): string {
  return value === undefined || value === null ? `${rule} It is ${value}.` : rule;
}
