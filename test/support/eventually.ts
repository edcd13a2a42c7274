import { setTimeout as delay } from 'node:timers/promises';

/** Waits until `condition` gives something truthy. @throws when it has not after `limitMs` */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  { limitMs = 10_000, everyMs = 5, what = 'the condition' }: { limitMs?: number; everyMs?: number; what?: string } = {},
): Promise<NonNullable<T>> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const result = await condition();
    if (result) return result;
    if (performance.now() >= deadline) throw new Error(`${what} did not hold within ${limitMs} ms.`);
    await delay(everyMs);
  }
}
