import { type Logger } from '@nestjs/common';
import { loggedId } from '../common/log-details.js';
import { type Turn } from '../ledger/turn.js';
import { type AttemptOutcome } from './turn-attempt.js';

/** Logs how the turns end that run when this process stops (DAY-03). */
export class ShutdownLog {
  private begun = false;

  constructor(private readonly logger: Logger) {}

  /** @param running the number of running turns */
  begins(running: number, graceMs: number): void {
    this.begun = true;
    if (running === 0) return;
    const turns = running === 1 ? '1 turn runs' : `${running} turns run`;
    this.logger.log(
      `This process stops. ${turns}. Turns that do not end within ${graceMs} ms are released for other workers.`,
    );
  }

  ended({ id, sessionId, orchestrator }: Turn, outcome: AttemptOutcome): void {
    if (!this.begun) return;
    this.logger.log(
      `Shutdown: turn ${loggedId(id)} of ${orchestrator} ${endOf(outcome)}. Session: ${loggedId(sessionId)}.`,
    );
  }
}

function endOf(outcome: AttemptOutcome): string {
  switch (outcome.type) {
    case 'settled':
      return `has settled as ${outcome.settled.turn.status}`;
    case 'failed':
      return 'has failed, and another worker retries it';
    case 'returned':
      if (outcome.why === 'waiting') return 'waits for a signal';
      return outcome.why === 'cancelled' ? 'was cancelled' : 'was released for another worker';
    case 'unknown':
      return 'was returned, because this process does not have its orchestrator';
    case 'lost':
      return 'was lost: another worker has it, or the store did not answer';
  }
}
