import { type Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { hashed } from '../common/log-id.js';
import { type Turn } from './turn.js';

/**
 * Says what a handler threw, in the process in which it was thrown: the turn's record keeps no stack. One entry for each attempt
 * that failed, with class, code and frames of the error and its causes (NST-22).
 */
export class FailureLog {
  /** @param attempts the most that a turn has */
  constructor(
    private readonly logger: Logger,
    private readonly attempts: number,
  ) {}

  /** The turn is as the attempt began with it. */
  retried(turn: Turn, error: unknown, retryInMs: number): void {
    const sentence = `Turn ${this.describe(turn)} and is tried again in ${retryInMs} ms.`;
    // Of a warning Nest would make two entries.
    this.logger.warn(`${sentence}\n${traceOf(error)}`);
  }

  /** There is no further attempt. */
  last(turn: Turn, error: unknown): void {
    const isEarly = turn.failures + 1 < this.attempts;
    const why = isEarly ? ', with an error that is not tried again' : '';
    this.logger.error(
      `Turn ${this.describe(turn)}${why}. The error's message is in the turn's record: turns.get(id).`,
      traceOf(error),
    );
  }

  private describe({ id, orchestrator, failures }: Turn): string {
    return `${hashed(id)} of ${orchestrator} failed in attempt ${failures + 1} of ${this.attempts}`;
  }
}
