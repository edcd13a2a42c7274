import { Logger } from '@nestjs/common';
import { type Backoff } from '../common/backoff.js';
import { traceOf } from '../common/error-trace.js';
import { mintId } from '../common/ids.js';
import { loggedId } from '../common/log-details.js';
import { ShuttingDownError } from '../ledger/turn.errors.js';
import { compactionBusy, CompactionError, compactionFailed, type CompactionPhase } from './compaction.errors.js';
import { during, PhaseError, toFailure } from './compaction-failure.js';
import {
  CompactionRun,
  type CompactionResult,
  type CompactionTask,
  NOTHING,
  type RequestedTask,
  type RunParts,
} from './compaction-run.js';
import { withRestartedCounts, isDue, type SeenConversation } from './compaction-thresholds.js';
import { type ConversationHead, FIRST_HEAD } from './conversation-head.js';
import { ConversationHeads, type StoredHead } from './conversation-heads.js';
import { HeadLostError, HeldHead, isLeased } from './held-head.js';

/**
 * The maximum number of sessions that this process compacts concurrently. Others are due again after their next turn.
 */
const MAX_AT_ONCE = 32;

export interface CompactorParts extends RunParts {
  /** The lease of a session in milliseconds, without renewal. */
  readonly leaseMs: number;
  readonly backoff?: Backoff;
}

/** The reason why a turn triggers a compaction. */
interface Cause {
  readonly orchestrator: string;
  readonly seen: SeenConversation;
  /** Returns whether the reason still applies to the current head. */
  readonly holds: (stored: StoredHead) => boolean;
  /** The error of the check, if it failed. */
  readonly error?: unknown;
}

/**
 * Replaces old messages by summaries in the background (BOT-41 to BOT-45), in one process per session at a time. Turns
 * continue meanwhile. The log does not change; only the head does, through which the log is read.
 */
export class ConversationCompactor {
  private readonly logger = new Logger(ConversationCompactor.name);
  private readonly heads: ConversationHeads;
  private readonly holder = mintId();
  private readonly running = new Map<
    string,
    { readonly controller: AbortController; readonly done: Promise<unknown> }
  >();
  private stopping = false;

  constructor(private readonly parts: CompactorParts) {
    this.heads = new ConversationHeads(parts.adapter.state);
  }

  /**
   * Compacts the session in the background if it is due. Called after each settled turn. Does not access the store if
   * the session is not due.
   * @param known the head when the turn was claimed
   * @param settledAt by the store's clock
   */
  consider(task: CompactionTask, known: ConversationHead | null, seen: SeenConversation, settledAt: string): void {
    const head = known ?? FIRST_HEAD;
    if (this.stopping || this.running.has(task.sessionId) || this.running.size >= MAX_AT_ONCE) return;
    if (isResting(head, Date.parse(settledAt))) return;
    const holds = ({ head: { number, lease, failure }, now }: StoredHead): boolean =>
      number === head.number && !isResting({ lease, failure }, now());
    let cause: Cause = { orchestrator: task.orchestrator, seen, holds };
    try {
      if (!isDue(task.policy, task.orchestrator, head, seen, this.parts.tokens)) return;
    } catch (error) {
      // The application's token counter failed. This counts as a compaction failure and delays the next attempt.
      cause = { ...cause, error };
    }
    this.start(task.sessionId, (controller) => this.run(task, controller, cause)).catch((error: unknown) =>
      this.reportUnheld(task, error),
    );
  }

  /**
   * Compacts the session now, regardless of its size and earlier failures (BOT-45).
   * @throws CompactionError, ShuttingDownError, StoreUnavailableError
   */
  async compact(task: CompactionTask | RequestedTask): Promise<CompactionResult> {
    return this.start(task.sessionId, (controller) => this.run(task, controller, null));
  }

  /**
   * Calls `work` while this process holds the head.
   * @param stored the head, read just before
   * @throws CompactionError (`COMPACTION_BUSY`), ShuttingDownError, StoreUnavailableError
   */
  async whileHeld<T>(sessionId: string, stored: StoredHead, work: (held: HeldHead) => Promise<T>): Promise<T> {
    return this.start(sessionId, async () => {
      const held = await this.hold(sessionId, stored, () => undefined);
      try {
        return await work(held);
      } catch (error) {
        throw error instanceof HeadLostError ? compactionBusy(sessionId) : error;
      } finally {
        // The work is finished. If this fails, the lease expires.
        await held.end().catch(() => undefined);
      }
    });
  }

  /**
   * Undoes the latest compaction: returns to the previous summary, or to the whole log. Thresholds keep their counts,
   * so that the compaction is not repeated at once.
   * @returns the last position that is covered by a summary now; `null` if there was no compaction
   * @throws CompactionError (`COMPACTION_BUSY`), StoreUnavailableError
   */
  async restore(sessionId: string): Promise<{ readonly through: number } | null> {
    const stored = await this.heads.read(sessionId);
    if (isLeased(stored)) throw compactionBusy(sessionId);
    if (stored.head.previous === null) return null;
    return this.whileHeld(sessionId, stored, async (held) => {
      const { previous, ...earlier } = await this.heads.earlier(sessionId, held.head);
      const { through, summary, shown, hiddenThrough, takenBack } = earlier;
      const again = { through, summary, shown, hiddenThrough, takenBack, failure: null };
      await held.replace((head) => ({ ...head, ...again }), previous);
      return { through };
    });
  }

  /** Aborts the running compactions and waits for them. Another process resumes them after the next turn. */
  async stop(): Promise<void> {
    this.stopping = true;
    for (const [sessionId, { controller }] of this.running) controller.abort(new ShuttingDownError(sessionId));
    await this.idle();
  }

  /** Resolves when no compaction is running. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.running.values()].map(({ done }) => done));
  }

  private async start<T>(sessionId: string, work: (controller: AbortController) => Promise<T>): Promise<T> {
    if (this.stopping) throw new ShuttingDownError(sessionId);
    if (this.running.has(sessionId)) throw compactionBusy(sessionId);
    const controller = new AbortController();
    const done = work(controller).finally(() => this.running.delete(sessionId));
    this.running.set(sessionId, { controller, done });
    return done;
  }

  private async run(
    task: CompactionTask | RequestedTask,
    controller: AbortController,
    cause: Cause | null,
  ): Promise<CompactionResult> {
    const { sessionId } = task;
    const stored = await this.heads.read(sessionId);
    if (cause ? !cause.holds(stored) : await this.isEmpty(sessionId)) return NOTHING;
    const held = await this.hold(sessionId, stored, (error) => controller.abort(error));
    const run = new CompactionRun(this.parts, task, this.heads, held, controller.signal);
    try {
      if (cause && 'error' in cause) await during('load', () => Promise.reject(cause.error as Error));
      const result = await run.compact(() => {
        if (!cause) return;
        this.parts.emit({ type: 'compaction-suggested', orchestrator: cause.orchestrator, sessionId });
      });
      // If nothing could be compacted, the session is not due again at once.
      const futile = result.messages === 0 && cause;
      const last = (head: ConversationHead): ConversationHead =>
        futile ? withRestartedCounts(head, cause.orchestrator, cause.seen) : head;
      // The compaction is finished. If this fails, the lease expires.
      await held.end(last).catch(() => undefined);
      return result;
    } catch (error) {
      throw await this.failed(task, run, held, controller.signal, error);
    } finally {
      held.stop();
    }
  }

  private async hold(sessionId: string, stored: StoredHead, onLost: (error: HeadLostError) => void): Promise<HeldHead> {
    if (isLeased(stored)) throw compactionBusy(sessionId);
    const held = await HeldHead.take(this.heads, sessionId, stored, this.holder, this.parts.leaseMs, onLost);
    if (!held) throw compactionBusy(sessionId);
    return held;
  }

  private async isEmpty(sessionId: string): Promise<boolean> {
    return (await this.parts.adapter.conversations.window(sessionId, 1)).length === 0;
  }

  /** @returns the error that the command rejects with */
  private async failed(
    task: CompactionTask | RequestedTask,
    run: CompactionRun,
    held: HeldHead,
    signal: AbortSignal,
    error: unknown,
  ): Promise<Error> {
    const { sessionId } = task;
    const { phase, cause } = error instanceof PhaseError ? error : { phase: 'apply' as const, cause: error };
    const reason: unknown = signal.aborted ? signal.reason : cause;
    if (reason instanceof ShuttingDownError) {
      await held.end(run.charged).catch(() => undefined);
      return reason;
    }
    if (reason instanceof HeadLostError) {
      this.reportFailed(task, phase, reason, 0);
      return compactionBusy(sessionId);
    }
    // If the store fails, the lease expires.
    if (task.request) {
      await held.end(run.charged).catch(() => undefined);
      return compactionFailed(sessionId, phase, reason);
    }
    const count = (held.head.failure?.count ?? 0) + 1;
    const failure = toFailure(phase, reason, count, held.now(), this.parts.backoff);
    await held.end((head) => ({ ...run.charged(head), failure })).catch(() => undefined);
    this.reportFailed(task, phase, reason, count);
    this.logger.warn(
      `Could not compact session ${loggedId(sessionId)} (${phase}). Consecutive failures: ${count}.`,
      traceOf(reason),
    );
    return compactionFailed(sessionId, phase, reason);
  }

  /** Reports a failure from before the session was held. */
  private reportUnheld(task: CompactionTask, error: unknown): void {
    if (error instanceof CompactionError || error instanceof ShuttingDownError) return;
    this.reportFailed(task, 'load', error, 0);
    this.logger.warn(`Could not compact session ${loggedId(task.sessionId)}.`, traceOf(error));
  }

  private reportFailed(
    task: CompactionTask | RequestedTask,
    phase: CompactionPhase,
    error: unknown,
    failures: number,
  ): void {
    if (task.request) return;
    const { orchestrator, sessionId } = task;
    this.parts.emit({ type: 'compaction-failed', orchestrator, sessionId, phase, error, failures });
  }
}

/** Returns whether another process compacts the session, or its last failure was too recent. */
function isResting({ lease, failure }: Pick<ConversationHead, 'lease' | 'failure'>, now: number): boolean {
  return [lease?.until, failure?.retryAt].some((time) => time !== undefined && Date.parse(time) > now);
}
