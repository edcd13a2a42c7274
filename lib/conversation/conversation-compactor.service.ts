import { Logger } from '@nestjs/common';
import { type Backoff } from '../common/backoff.js';
import { traceOf } from '../common/error-trace.js';
import { mintId } from '../common/ids.js';
import { hashed } from '../common/log-id.js';
import { ShuttingDownError } from '../ledger/turn.errors.js';
import { CompactionBusyError, CompactionFailedError, type CompactionPhase } from './compaction.errors.js';
import { during, PhaseError, toFailure } from './compaction-failure.js';
import {
  CompactionRun,
  type CompactionResult,
  type CompactionTask,
  NOTHING,
  type RequestedTask,
  type RunParts,
} from './compaction-run.js';
import { countedAnew, isDue, type SeenConversation } from './compaction-thresholds.js';
import { type ConversationHead, FIRST_HEAD } from './conversation-head.js';
import { ConversationHeads, type StoredHead } from './conversation-heads.js';
import { HeadLostError, HeldHead, isLeased } from './held-head.js';

/** Sessions that this process compacts at once; what is one too many is due again after its next turn. */
const MAX_AT_ONCE = 32;

export interface CompactorParts extends RunParts {
  /** Milliseconds for which a session is held without renewing. */
  readonly leaseMs: number;
  readonly backoff?: Backoff;
}

/** Why a turn leads to a compaction. */
interface Cause {
  readonly orchestrator: string;
  readonly seen: SeenConversation;
  /** Whether it still does, by the head as it is now. */
  readonly holds: (stored: StoredHead) => boolean;
  /** What failed where it was to be found out. */
  readonly error?: unknown;
}

/**
 * Puts summaries in the place of old messages (BOT-41 to BOT-45): beside the turns, one process at a time for a session, while
 * turns go on. The log stays as it is; what changes is the head through which it is read.
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
   * Compacts the session if it is due, in the background. Called after each settled turn; asks the store for nothing as long as
   * it is not.
   * @param known the head that the turn was claimed with
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
      // A counter of the application's own. It is a failure like others, after which there is a pause.
      cause = { ...cause, error };
    }
    this.start(task.sessionId, (controller) => this.run(task, controller, cause)).catch((error: unknown) =>
      this.tellUnheld(task, error),
    );
  }

  /**
   * Compacts the session now, whatever its size and whatever failed before (BOT-45).
   * @throws CompactionBusyError, CompactionFailedError, ShuttingDownError, StoreUnavailableError
   */
  async compact(task: CompactionTask | RequestedTask): Promise<CompactionResult> {
    return this.start(task.sessionId, (controller) => this.run(task, controller, null));
  }

  /**
   * Does something to a head while nobody else does.
   * @param stored as it was read just now
   * @throws CompactionBusyError, ShuttingDownError, StoreUnavailableError
   */
  async whileHeld<T>(sessionId: string, stored: StoredHead, work: (held: HeldHead) => Promise<T>): Promise<T> {
    return this.start(sessionId, async () => {
      const held = await this.hold(sessionId, stored, () => undefined);
      try {
        return await work(held);
      } catch (error) {
        throw error instanceof HeadLostError ? new CompactionBusyError(sessionId) : error;
      } finally {
        // What was to be done is done, or not. When this fails, the lease lapses.
        await held.end().catch(() => undefined);
      }
    });
  }

  /**
   * Back to the summary before, or to the whole log: the latest compaction is taken back. Thresholds count on from where they
   * are, so that it is not done again at once.
   * @returns the position up to which messages are behind a summary now; `null` when there was no compaction
   * @throws CompactionBusyError, StoreUnavailableError
   */
  async restore(sessionId: string): Promise<{ readonly through: number } | null> {
    const stored = await this.heads.read(sessionId);
    if (isLeased(stored)) throw new CompactionBusyError(sessionId);
    if (stored.head.previous === null) return null;
    return this.whileHeld(sessionId, stored, async (held) => {
      const { previous, ...earlier } = await this.heads.earlier(sessionId, held.head);
      const { through, summary, shown, hiddenThrough, takenBack } = earlier;
      const again = { through, summary, shown, hiddenThrough, takenBack, failure: null };
      await held.replace((head) => ({ ...head, ...again }), previous);
      return { through };
    });
  }

  /** What is under way is stopped, and waited for; another process goes on after the next turn. */
  async stop(): Promise<void> {
    this.stopping = true;
    for (const [sessionId, { controller }] of this.running) controller.abort(new ShuttingDownError(sessionId));
    await this.idle();
  }

  /** Resolves once nothing is under way. */
  async idle(): Promise<void> {
    await Promise.allSettled([...this.running.values()].map(({ done }) => done));
  }

  private async start<T>(sessionId: string, work: (controller: AbortController) => Promise<T>): Promise<T> {
    if (this.stopping) throw new ShuttingDownError(sessionId);
    if (this.running.has(sessionId)) throw new CompactionBusyError(sessionId);
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
      // What cannot be compacted is not due again at once.
      const futile = result.messages === 0 && cause;
      const last = (head: ConversationHead): ConversationHead =>
        futile ? countedAnew(head, cause.orchestrator, cause.seen) : head;
      // It is done. When this fails, the lease lapses.
      await held.end(last).catch(() => undefined);
      return result;
    } catch (error) {
      throw await this.failed(task, run, held, controller.signal, error);
    } finally {
      held.stop();
    }
  }

  private async hold(sessionId: string, stored: StoredHead, onLost: (error: HeadLostError) => void): Promise<HeldHead> {
    if (isLeased(stored)) throw new CompactionBusyError(sessionId);
    const held = await HeldHead.take(this.heads, sessionId, stored, this.holder, this.parts.leaseMs, onLost);
    if (!held) throw new CompactionBusyError(sessionId);
    return held;
  }

  private async isEmpty(sessionId: string): Promise<boolean> {
    return (await this.parts.adapter.conversations.window(sessionId, 1)).length === 0;
  }

  /** @returns what the command rejects with */
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
      this.tellFailed(task, phase, reason, 0);
      return new CompactionBusyError(sessionId);
    }
    // When the store fails, the lease lapses.
    if (task.request) {
      await held.end(run.charged).catch(() => undefined);
      return new CompactionFailedError(sessionId, phase, reason);
    }
    const count = (held.head.failure?.count ?? 0) + 1;
    const failure = toFailure(phase, reason, count, held.now(), this.parts.backoff);
    await held.end((head) => ({ ...run.charged(head), failure })).catch(() => undefined);
    this.tellFailed(task, phase, reason, count);
    this.logger.warn(
      `Could not compact session ${hashed(sessionId)} (${phase}, for the ${count}. time).`,
      traceOf(reason),
    );
    return new CompactionFailedError(sessionId, phase, reason);
  }

  /** Of what failed before the session was held, nobody has been told. */
  private tellUnheld(task: CompactionTask, error: unknown): void {
    const isTold = [CompactionFailedError, CompactionBusyError, ShuttingDownError].some(
      (type) => error instanceof type,
    );
    if (isTold) return;
    this.tellFailed(task, 'load', error, 0);
    this.logger.warn(`Could not compact session ${hashed(task.sessionId)}.`, traceOf(error));
  }

  private tellFailed(
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

/** Somebody is at it, or it failed a moment ago. */
function isResting({ lease, failure }: Pick<ConversationHead, 'lease' | 'failure'>, now: number): boolean {
  return [lease?.until, failure?.retryAt].some((time) => time !== undefined && Date.parse(time) > now);
}
