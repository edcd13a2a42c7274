const PAGE = 500;

/** Reads all pages. @param page returns the items after the last known one */
export async function readAll<T>(page: (last: T | undefined, limit: number) => Promise<readonly T[]>): Promise<T[]> {
  const all: T[] = [];
  for (;;) {
    const more = await page(all.at(-1), PAGE);
    all.push(...more);
    if (more.length < PAGE) return all;
  }
}
