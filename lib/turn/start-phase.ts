import { SessionsConfigurationError } from '../common/sessions.error.js';
import { workerMessages } from './worker.messages.js';

/** How far the application has started, so that a call that comes too early fails instead of hanging (FIX-71). */
export class StartPhase {
  private knows = false;
  private runs = false;

  /** @param runsTurns false if other processes run the turns, so that waiting is possible before the start */
  constructor(private readonly runsTurns: boolean) {}

  orchestratorsKnown(): void {
    this.knows = true;
  }

  workerStarted(): void {
    this.runs = true;
  }

  /** @throws SessionsConfigurationError before the orchestrators are registered */
  assertOrchestrators(orchestrator: string): void {
    if (!this.knows) throw tooEarly(orchestrator);
  }

  /** @throws SessionsConfigurationError if no worker can end the turn, because this process has not started yet */
  assertWait(subject: string): void {
    if (this.runsTurns && !this.runs) {
      throw new SessionsConfigurationError(workerMessages.awaitedTooEarly(subject));
    }
  }
}

/** Returns the error for a use of an orchestrator before the modules are initialized. */
export function tooEarly(orchestrator: string): SessionsConfigurationError {
  return new SessionsConfigurationError(workerMessages.usedTooEarly(orchestrator));
}
