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

/** The session is being compacted, by this process or another one. HTTP 409. Nothing was done; try again later. */
export class CompactionBusyError extends SessionsError {
  readonly code = 'COMPACTION_BUSY';

  constructor(readonly sessionId: string) {
    super(`Session ${sessionId} is being compacted.`);
  }
}
