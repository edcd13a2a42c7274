import { type Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';

const FIRST_AFTER_MS = 5000;
const THEN_EVERY_MS = 60_000;

/** Logs calls that this process repeats because the store is unavailable: after 5 s, then once per minute (FIX-61). */
export class OutageLog {
  private loggedAt = -Infinity;
  /** When the logged outage began; `null` if none is logged. */
  private since: number | null = null;
  /** When the last logged outage ended. Calls that fail since then count from here, so that a store that fails at times does not fill the log. */
  private endedAt = -Infinity;

  constructor(private readonly logger: Logger) {}

  /**
   * Called after each failure of a repeated call.
   * @param since when the call was made first, by `performance.now()`
   */
  repeats(call: string, since: number, error: unknown): void {
    const now = performance.now();
    if (now - Math.max(since, this.endedAt) < FIRST_AFTER_MS || now - this.loggedAt < THEN_EVERY_MS) return;
    this.loggedAt = now;
    this.since ??= since;
    const seconds = Math.round((now - since) / 1000);
    this.logger.error(
      `The store is unavailable: ${call} has failed for ${seconds} s, and is repeated.`,
      traceOf(error),
    );
  }

  /** Called when a repeated call has succeeded. Logs the end of a logged outage (DAY-03). */
  ended(): void {
    if (this.since === null) return;
    const now = performance.now();
    const seconds = Math.round((now - this.since) / 1000);
    this.since = null;
    this.endedAt = now;
    this.loggedAt = -Infinity;
    this.logger.log(`The store is available again, after ${seconds} s.`);
  }
}
