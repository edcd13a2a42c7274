import { SessionsError } from '../common/sessions.error.js';

/** The phase in which a compaction failed: reading the log, writing the summary, or replacing the messages. */
export type CompactionPhase = 'load' | 'summarize' | 'apply';

/** The session was not compacted; its conversation is unchanged (BOT-44). HTTP 502. */
export class CompactionFailedError extends SessionsError {
  readonly code = 'COMPACTION_FAILED';

  constructor(
    readonly sessionId: string,
    readonly phase: CompactionPhase,
    cause: unknown,
  ) {
    super(`Session ${sessionId} was not compacted: failed to ${phase}. See the cause.`, { cause });
  }
}

const NO_SUMMARIZER =
  'The strategy summary requires a summarizer. Set state.summarize of SessionsModule.forRoot(), or use exactly one orchestrator with ' +
  'a compaction policy.';

/**
 * The summarizer or the token counter is missing, or it is ambiguous which of several summarizers to use. HTTP 400. Nothing was done.
 */
export class CompactionNotConfiguredError extends SessionsError {
  readonly code = 'COMPACTION_NOT_CONFIGURED';

  /** @param problem the missing part, and what to do */
  constructor(problem = NO_SUMMARIZER, options?: ErrorOptions) {
    super(problem, options);
  }
}

/** The session is already being compacted by this or another process. HTTP 409. Nothing was done. Retry later. */
export class CompactionBusyError extends SessionsError {
  readonly code = 'COMPACTION_BUSY';

  constructor(readonly sessionId: string) {
    super(`Session ${sessionId} is already being compacted. Retry later.`);
  }
}
