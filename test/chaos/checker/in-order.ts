/**
 * Returns pairs of events that cannot have happened in the given order: the later one had certainly happened before
 * the earlier one can have started.
 * @param from the earliest time of an event; null if unknown
 * @param by the latest time of an event
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
