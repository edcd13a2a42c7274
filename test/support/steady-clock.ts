/** Longer than the event loop of a process takes that the machine lets run. */
const STOOD_STILL_MS = 20;

/**
 * Milliseconds like those of `performance.now()`, but for those in which this process stood still: a machine that has no time for it
 * makes nothing that a test waits for take long.
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
 * Does it anew when it failed and the machine stood still meanwhile for so long that nothing follows from it: what it is about must last
 * longer than `forMs` on a machine that runs.
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
