import { setTimeout as delay } from 'node:timers/promises';

/** Waits until `Date.now()` has advanced. A timer may fire immediately if this process was busy. */
export async function clockGoesOn(): Promise<void> {
  const now = Date.now();
  await eventually(() => Date.now() > now + 1, { everyMs: 1 });
}

/** Waits until `condition` returns a truthy value. @throws if it has not within `limitMs` */
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
