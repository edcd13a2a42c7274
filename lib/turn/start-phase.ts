import { SessionsConfigurationError } from '../common/sessions.error.js';

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
      throw new SessionsConfigurationError(
        `${subject} must not be awaited before the application has started, because no worker runs turns yet. Wait in ` +
          'onApplicationBootstrap or later, or submit the turn without waiting for it.',
      );
    }
  }
}

/** The cure for a call that comes too early. */
const WHEN_TO_USE = 'Submit turns in onModuleInit or later, and wait for them in onApplicationBootstrap or later.';

/** Returns the error for a use of an orchestrator before the modules are initialized. */
export function tooEarly(orchestrator: string): SessionsConfigurationError {
  return new SessionsConfigurationError(
    `The orchestrator ${orchestrator} must not be used before the application has started. ${WHEN_TO_USE}`,
  );
}
