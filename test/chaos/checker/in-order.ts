/**
 * Of things in the order in which they are said to have happened, those pairs that cannot have: the one that is said to be
 * later had certainly happened before the other one can have begun.
 * @param from when it may have happened at the earliest; null: nobody knows
 * @param by when it had happened at the latest
 */
export function* contradictions<T>(
  inOrder: readonly T[],
  from: (item: T) => number | null,
  by: (item: T) => number,
): Generator<readonly [earlier: T, later: T]> {
  let latest: T | null = null;
  let latestFrom = -Infinity;
  for (const item of inOrder) {
    if (latest !== null && by(item) < latestFrom) yield [latest, item];
    const itemFrom = from(item) ?? -Infinity;
    if (itemFrom <= latestFrom) continue;
    latest = item;
    latestFrom = itemFrom;
  }
}
