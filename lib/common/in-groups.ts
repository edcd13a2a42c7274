/**
 * Works on many things, some at a time.
 * @returns what became of each, in their order @throws what one of them threw first, once its group has come to an end
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
