import { SessionsError } from '../common/sessions.error.js';
import { compactionMessages } from './compaction.messages.js';

export type CompactionPhase = NonNullable<CompactionError['phase']>;

/** @inline */
interface CompactionErrorOptions extends ErrorOptions {
  readonly sessionId?: string;
  readonly phase?: CompactionPhase;
}

/**
 * A session was not compacted; its conversation is unchanged.
 *
 * - `COMPACTION_FAILED`: reading, summarizing or writing failed, see `phase` and `cause` (BOT-44). HTTP 502,
 * - `COMPACTION_BUSY`: this or another process already compacts the session. HTTP 409. Retry later,
 * - `COMPACTION_NOT_CONFIGURED`: the summarizer or the token counter is missing, or it is ambiguous which of several summarizers to use.
 *   HTTP 400.
 */
export class CompactionError extends SessionsError {
  static override readonly codes = ['COMPACTION_BUSY', 'COMPACTION_FAILED', 'COMPACTION_NOT_CONFIGURED'] as const;

  /** Absent for `COMPACTION_NOT_CONFIGURED`. */
  readonly sessionId?: string;
  /**
   * The phase that failed: reading the log, writing the summary, or replacing the messages (`COMPACTION_FAILED`).
   */
  readonly phase?: 'load' | 'summarize' | 'apply';

  constructor(
    readonly code: (typeof CompactionError.codes)[number],
    message: string,
    { sessionId, phase, ...options }: CompactionErrorOptions = {},
  ) {
    super(message, options);
    if (sessionId !== undefined) this.sessionId = sessionId;
    if (phase !== undefined) this.phase = phase;
  }
}

export function compactionFailed(sessionId: string, phase: CompactionPhase, cause: unknown): CompactionError {
  const message = compactionMessages.failed(sessionId, phase);
  return new CompactionError('COMPACTION_FAILED', message, { sessionId, phase, cause });
}

export function compactionBusy(sessionId: string): CompactionError {
  const message = compactionMessages.busy(sessionId);
  return new CompactionError('COMPACTION_BUSY', message, { sessionId });
}

/** @param problem the missing part, and what to do. Default: the summarizer */
export function compactionNotConfigured(
  problem = compactionMessages.noSummarizer(),
  options?: ErrorOptions,
): CompactionError {
  return new CompactionError('COMPACTION_NOT_CONFIGURED', problem, options);
}
