/**
 * A time by both clocks of this process. The monotonic clock may stop while the machine sleeps, and the wall clock may be
 * set. A time span has passed when it has passed by either clock (FIX-90).
 */
export interface Instant {
  /** By `performance.now()`, in milliseconds. */
  readonly monotonic: number;
  /** By `Date.now()`, in milliseconds since 1970. */
  readonly wall: number;
}

/** Returns the current time. */
export function instant(): Instant {
  return { monotonic: performance.now(), wall: Date.now() };
}

/** Returns the milliseconds since an instant by the clock that has advanced further. */
export function msSince({ monotonic, wall }: Instant): number {
  return Math.max(performance.now() - monotonic, Date.now() - wall);
}
