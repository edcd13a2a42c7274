/**
 * Removes items in batches, so that no operation keeps the store busy for long, until none are left or the time is
 * over.
 * @returns the number of removed items
 */
export async function inBatches(
  size: number,
  remove: (limit: number) => Promise<number>,
  isOver: () => boolean = () => false,
): Promise<number> {
  for (let total = 0; ;) {
    const removed = await remove(size);
    total += removed;
    if (removed < size || isOver()) return total;
  }
}

/**
 * Processes items in groups, one group after another.
 * @returns the results in the order of the items
 * @throws the first error, after its group has ended
 */
export async function inGroups<T, R>(items: readonly T[], size: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let begin = 0; begin < items.length; begin += size) {
    const group = await Promise.allSettled(items.slice(begin, begin + size).map(work));
    for (const outcome of group) {
      if (outcome.status === 'rejected') throw outcome.reason;
      done.push(outcome.value);
    }
  }
  return done;
}
