/**
 * Removes in batches, so that no store is kept busy by one operation for long: until nothing is left, or it is over.
 * @returns how many went
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
