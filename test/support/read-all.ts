const PAGE = 500;

/** Everything, page by page. @param page what comes after the last one that is known */
export async function readAll<T>(page: (last: T | undefined, limit: number) => Promise<readonly T[]>): Promise<T[]> {
  const all: T[] = [];
  for (;;) {
    const more = await page(all.at(-1), PAGE);
    all.push(...more);
    if (more.length < PAGE) return all;
  }
}
