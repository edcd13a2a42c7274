import { type Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { hashed } from '../common/log-id.js';
import { workerOf } from '../ledger/lane.js';
import { type RetrySettings } from './turn.settings.js';
import { attemptNumber, type Turn } from '../ledger/turn.js';

/**
 * Says what a handler threw, in the process in which it was thrown: the turn's record keeps no stack. One entry for each attempt
 * that failed, with class, code and frames of the error and its causes (NST-22); and one for each attempt that was lost with its
 * worker, in the process that found that out.
 */
export class FailureLog {
  constructor(
    private readonly logger: Logger,
    private readonly retry: Pick<RetrySettings, 'attempts' | 'maxLost'>,
  ) {}

  /** @param turn as the claim that found its lease ended has left it, with the loss counted */
  lost(turn: Turn, holder: string): void {
    const { id, orchestrator, status, lost, dueAt } = turn;
    const { maxLost } = this.retry;
    const worker = holder === '' ? 'its worker' : `worker ${workerOf(holder)}`;
    const sentence =
      `Attempt ${attemptNumber(turn) - 1} of turn ${hashed(id)} of ${orchestrator} was lost with ${worker}, ` +
      `which did not renew its lease; lost attempts: ${lost} of ${maxLost}.`;
    if (status === 'failed') this.logger.error(`${sentence} The turn failed as WORKER_LOST.`);
    else if (status === 'running') this.logger.warn(`${sentence} The turn runs again now.`);
    else
      this.logger.warn(`${sentence} The turn runs again after ${dueAt}, while no other such turn runs in its process.`);
  }

  /** The turn is as the attempt began with it. */
  retried(turn: Turn, error: unknown, retryInMs: number): void {
    const sentence = `Turn ${this.describe(turn)} and is tried again in ${retryInMs} ms.`;
    // Of a warning Nest would make two entries.
    this.logger.warn(`${sentence}\n${traceOf(error)}`);
  }

  /** There is no further attempt. */
  last(turn: Turn, error: unknown): void {
    const isEarly = turn.failures + 1 < this.retry.attempts;
    const why = isEarly ? ', with an error that is not tried again' : '';
    this.logger.error(
      `Turn ${this.describe(turn)}${why}. The error's message is in the turn's record: turns.get(id).`,
      traceOf(error),
    );
  }

  private describe(turn: Turn): string {
    const { id, orchestrator, failures } = turn;
    const counted = `failures: ${failures + 1} of ${this.retry.attempts}`;
    return `${hashed(id)} of ${orchestrator} failed in attempt ${attemptNumber(turn)} (${counted})`;
  }
}
