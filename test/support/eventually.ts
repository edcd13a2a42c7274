import { setTimeout as delay } from 'node:timers/promises';

/** Waits until `Date.now()` has advanced. A timer may fire immediately if this process was busy. */
export async function clockGoesOn(): Promise<void> {
  const now = Date.now();
  await eventually(() => Date.now() > now + 1, { everyMs: 1 });
}

/** The longest time between two looks in milliseconds, unless `everyMs` is longer. */
const LONGEST_PAUSE_MS = 50;

/**
 * Waits until `condition` returns a truthy value. It looks every `everyMs` at first, and less often the longer it waits: many conditions are
 * queries, which would take the processor from the work that they wait for.
 * @throws if the condition does not hold within `limitMs`
 */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  { limitMs = 10_000, everyMs = 5, what = 'the condition' }: { limitMs?: number; everyMs?: number; what?: string } = {},
): Promise<NonNullable<T>> {
  const start = performance.now();
  for (;;) {
    const result = await condition();
    if (result) return result;
    const waited = performance.now() - start;
    if (waited >= limitMs) throw new Error(`${what} did not hold within ${limitMs} ms.`);
    await delay(Math.max(everyMs, Math.min(waited / 20, LONGEST_PAUSE_MS)));
  }
}
