/** Milliseconds longer than an iteration of the event loop of a process that is not stalled. */
const STOOD_STILL_MS = 20;

/**
 * Returns milliseconds like `performance.now()`, without the time in which this process was stalled, so that a busy
 * machine does not exceed the time limits of tests.
 */
export const steadyClock = { now: (): number => performance.now() - stoodStill - sinceLastLook() };

let lookedAt = performance.now();
let stoodStill = 0;

function sinceLastLook(): number {
  return Math.max(0, performance.now() - lookedAt - STOOD_STILL_MS);
}

const looking = setInterval(() => {
  stoodStill += sinceLastLook();
  lookedAt = performance.now();
}, STOOD_STILL_MS / 4).unref();

afterAll(() => clearInterval(looking));

/**
 * Repeats a failed test if the machine was stalled for so long that the failure means nothing. Use it for timings
 * that take longer than `forMs` on a machine that is not stalled.
 */
export async function whileSteady<T>(forMs: number, work: () => Promise<T>): Promise<T> {
  for (let again = 9; ; again -= 1) {
    const before = stoodStill + sinceLastLook();
    try {
      return await work();
    } catch (error) {
      if (again === 0 || stoodStill + sinceLastLook() - before < forMs) throw error;
    }
  }
}
