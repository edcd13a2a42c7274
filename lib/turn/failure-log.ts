import { HttpException, type Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { logDetails, loggedId } from '../common/log-details.js';
import { SessionsError } from '../common/sessions.error.js';
import { workerOf } from '../ledger/lane.js';
import { type ClaimNotice } from '../ledger/turn.store.js';
import { attemptMessages } from './attempt.messages.js';
import { type AttemptFailure } from './turn-attempt.js';
import { type RetrySettings } from './turn.settings.js';
import { attemptNumber, type Turn } from '../ledger/turn.js';

/**
 * Logs failed and lost attempts. A failed attempt is logged in its process, with class, code and stack of the error and
 * its causes, because the turn's record stores no stack (NST-22). An attempt that was lost with its worker is logged in
 * the process that detects the loss.
 */
export class FailureLog {
  constructor(
    private readonly logger: Logger,
    private readonly retry: Pick<RetrySettings, 'attempts' | 'maxLost'>,
  ) {}

  /** @param notice of the claim that found the lease ended. Its counts include this loss */
  lost({ turn, lostSinceStep, holder }: Extract<ClaimNotice, { readonly type: 'lost' }>): void {
    const { id, orchestrator, status, lost, dueAt, startedAt } = turn;
    const { maxLost } = this.retry;
    const worker = holder === '' ? 'its worker' : `worker ${workerOf(holder)}`;
    const attempt = attemptNumber(turn) - 1;
    const loss = { attempt, turnId: loggedId(id), orchestrator, worker, lost, lostSinceStep, maxLost };
    if (status === 'failed') this.logger.error(attemptMessages.lostAndFailed(loss));
    else if (status === 'running') {
      const after = startedAt === undefined ? '' : `, ${secondsSince(startedAt)} s after its first attempt began`;
      this.logger.log(`${attemptMessages.lostAndTaken(loss, after)}${sessionOf(turn)}`);
    } else this.logger.warn(attemptMessages.lostAndQueued(loss, dueAt));
  }

  /** @param turn as it was at the start of the attempt */
  retried(turn: Turn, failure: AttemptFailure, retryInMs: number): void {
    const sentence = `Turn ${this.describe(turn, failure)} and is retried in ${retryInMs} ms.${sessionOf(turn)}`;
    // A single string, because Nest would log a warning's trace as a second entry.
    this.logger.warn(`${sentence}${hintOf(failure)}\n${traceOf(failure.error)}`);
  }

  /** Logs the failure of the last attempt. @param failure absent if the worker does not know the error */
  last(turn: Turn, failure: AttemptFailure = { error: undefined }): void {
    const isEarly = turn.failures + 1 < this.retry.attempts;
    const why = isEarly ? ', with an error that is not retried' : '';
    const record = logDetails().messages ? '' : " The error's message is in the turn's record: turns.get(id).";
    this.logger.error(
      `Turn ${this.describe(turn, failure)}${why}.${sessionOf(turn)}${record}${hintOf(failure)}`,
      traceOf(failure.error),
    );
  }

  private describe(turn: Turn, { place }: AttemptFailure): string {
    const { id, orchestrator, failures } = turn;
    const counted = `failures: ${failures + 1} of ${this.retry.attempts}`;
    const where = place === undefined ? '' : ` in ${place}`;
    return `${loggedId(id)} of ${orchestrator} failed in attempt ${attemptNumber(turn)} (${counted})${where}`;
  }
}

/** @param time by the clock of the store, which may differ from that of this process */
function secondsSince(time: string): string {
  return (Math.max(0, Date.now() - Date.parse(time)) / 1000).toFixed(1);
}

function hintOf({ error }: AttemptFailure): string {
  return error instanceof HttpException && !SessionsError.isInstance(error)
    ? ` ${attemptMessages.httpException()}`
    : '';
}

function sessionOf({ sessionId }: Turn): string {
  return ` Session: ${loggedId(sessionId)}.`;
}
