import { type Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';

const FIRST_AFTER_MS = 5000;
const THEN_EVERY_MS = 60_000;

/** Logs calls that this process repeats because the store is unavailable: after 5 s, then once per minute (FIX-61). */
export class OutageLog {
  private loggedAt = -Infinity;

  constructor(private readonly logger: Logger) {}

  /**
   * Called after each failure of a repeated call.
   * @param since when the call was made first, by `performance.now()`
   */
  repeats(call: string, since: number, error: unknown): void {
    const now = performance.now();
    if (now - since < FIRST_AFTER_MS || now - this.loggedAt < THEN_EVERY_MS) return;
    this.loggedAt = now;
    const seconds = Math.round((now - since) / 1000);
    this.logger.error(
      `The store is unavailable: ${call} has failed for ${seconds} s, and is repeated.`,
      traceOf(error),
    );
  }
}
