import { SessionsError } from '../common/sessions.error.js';

/** Where a compaction failed: reading the log, writing the summary, or putting it in its place. */
export type CompactionPhase = 'load' | 'summarize' | 'apply';

/** The session was not compacted; its conversation is as before (BOT-44). HTTP 502. */
export class CompactionFailedError extends SessionsError {
  readonly code = 'COMPACTION_FAILED';

  constructor(
    readonly sessionId: string,
    readonly phase: CompactionPhase,
    cause: unknown,
  ) {
    super(`Session ${sessionId} was not compacted: it failed to ${phase}. The cause says why.`, { cause });
  }
}

const NO_SUMMARIZER =
  'A summary needs a summarizer: the option state.summarize of SessionsModule.forRoot(), or exactly one orchestrator with ' +
  'a compaction policy.';

/**
 * Nobody is there who writes summaries, nobody can say which one of several does, or nothing counts tokens. HTTP 400. Nothing was done.
 */
export class CompactionNotConfiguredError extends SessionsError {
  readonly code = 'COMPACTION_NOT_CONFIGURED';

  /** @param problem what is missing, and what to do */
  constructor(problem = NO_SUMMARIZER, options?: ErrorOptions) {
    super(problem, options);
  }
}

/** The session is being compacted, by this process or another one. HTTP 409. Nothing was done; try again later. */
export class CompactionBusyError extends SessionsError {
  readonly code = 'COMPACTION_BUSY';

  constructor(readonly sessionId: string) {
    super(`Session ${sessionId} is being compacted.`);
  }
}
