const PAGE = 50;

/**
 * What a store lists, page by page.
 * @param read those behind a place; from the beginning when that is left out
 */
export async function* readPages<T, Place>(
  read: (after: Place | undefined, limit: number) => Promise<readonly T[]>,
  placeOf: (item: T) => Place,
): AsyncGenerator<T, void> {
  for (let after: Place | undefined; ;) {
    const page = await read(after, PAGE);
    yield* page;
    if (page.length < PAGE) return;
    after = placeOf(page[page.length - 1]);
  }
}
