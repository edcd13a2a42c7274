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
