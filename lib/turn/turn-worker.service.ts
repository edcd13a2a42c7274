import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { hashed } from '../common/log-id.js';
import { emitActivity } from '../session/session-events.js';
import { observeAttempt } from './observe-turn.js';
import { compareVersions } from './compare-versions.js';
import { AwaitedTurns } from './awaited-turns.js';
import { HandlerWaits, WaitingParents } from './handler-waits.js';
import { FailureLog } from './failure-log.js';
import { LaneClaims, type SentClaim } from './lane-claims.js';
import { RunningAttempts } from './running-attempts.js';
import { type AttemptOutcome, keepEveryMs, TurnAttempt } from './turn-attempt.js';
import { type VisitSlot } from '../ledger/turn-queue.js';
import { type TurnRuntime } from './turn-runtime.js';
import { type ClaimedTurn, type ClaimRequest, type SettledTurn } from '../ledger/turn.store.js';
import { type Turn } from '../ledger/turn.js';

/** A visit ends after this long even when fewer turns than `maxTurnsPerVisit` ran. */
const MAX_VISIT_MS = 100;
/** How often running turns are looked at for a cancel of another process, where no hint tells of it (TRN-09). */
const CANCEL_POLL_MS = 500;

/** A visit that is kept ready for a turn that is being accepted. */
export interface ReadyVisit {
  /** What it claims the lane with. */
  readonly claim: ClaimRequest;
  /** @param claimed what that claim gave; left out: it was not made, and is sent now */
  begin(claimed?: ClaimedTurn): void;
  /** For a claim of which nobody knows whether it was made. */
  findOut(): void;
  /** There is nothing to do. */
  leave(): void;
}

/**
 * Runs turns: visits the lane of each session that the queue rings for, claims its head, runs it, and goes on with the
 * turn that settling hands over, up to a fairness bound (TRN-03, TRN-04).
 */
export class TurnWorker {
  private readonly logger = new Logger(TurnWorker.name);
  private readonly failures: FailureLog;
  private readonly claims: LaneClaims;
  private readonly attempts: RunningAttempts;
  private readonly waitingParents: WaitingParents;
  /** Turns that are being accepted here with a claim, and whether somebody changed them since. */
  private readonly accepting = new Map<string, boolean>();
  private readonly unknown = new Set<string>();
  private attemptEnded: (turnId: string, turn?: Turn) => void = () => undefined;
  private unsubscribe: (() => void) | null = null;
  private poll: NodeJS.Timeout | null = null;
  private stopping = false;
  private graceOver = false;

  constructor(private readonly runtime: TurnRuntime) {
    this.failures = new FailureLog(this.logger, runtime.settings.retry);
    this.claims = new LaneClaims(runtime, this.failures);
    this.attempts = new RunningAttempts(keepEveryMs(runtime.settings));
    this.waitingParents = new WaitingParents(runtime.settings.maxWaitingParents);
  }

  async start(): Promise<void> {
    const { hints } = this.runtime;
    this.unsubscribe = hints.subscribe((turnId) => this.hear(turnId));
    if (hints.reach !== 'store') this.poll = setInterval(() => this.checkCancelled(), CANCEL_POLL_MS);
    await this.runtime.queue.process((sessionId, slot) => this.visit(sessionId, slot));
  }

  /** From here on, before anything else stops. */
  claimNoMore(): void {
    this.stopping = true;
  }

  /** No new claims; what runs gets `shutdownGraceMs`, then is stopped and released for another worker (TRN-14). */
  async stop(): Promise<void> {
    this.claimNoMore();
    const { queue, runner, settings } = this.runtime;
    await queue.pause();
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.graceOver = true;
        for (const attempt of this.attempts.list()) attempt.shutDown();
        resolve();
      }, settings.shutdownGraceMs);
    });
    try {
      await queue.close();
      await Promise.race([runner.idle(), grace]);
    } finally {
      clearTimeout(timer);
      this.unsubscribe?.();
      if (this.poll) clearInterval(this.poll);
    }
  }

  private checkCancelled(): void {
    for (const attempt of this.attempts.list()) void attempt.checkCancelled();
  }

  /** @param listener is told of every attempt here when it has ended, and given the turn if that has settled */
  onAttemptEnd(listener: (turnId: string, turn?: Turn) => void): void {
    this.attemptEnded = listener;
  }

  /** Whether an attempt of the turn runs here. */
  runs(turnId: string): boolean {
    return this.attempts.get(turnId) !== undefined;
  }

  /**
   * A visit of the lane without a ring, when this process has room for one now; `null`: somebody must ring.
   * @param turnId of the turn that is about to be accepted: nothing may be waited for until then
   */
  prepare(sessionId: string, turnId: string): ReadyVisit | null {
    if (this.stopping) return null;
    const first = this.claims.next();
    const place = this.runtime.queue.reserve?.(sessionId);
    if (!place) return null;
    this.accepting.set(turnId, false);
    const end = (): void => void this.accepting.delete(turnId);
    const visit = (slot?: VisitSlot, claimed?: ClaimedTurn): Promise<void> =>
      this.visit(sessionId, slot, first, claimed).finally(end);
    return {
      claim: first.request,
      begin: (claimed) => place.visit((slot) => visit(slot, claimed)),
      findOut: () =>
        place.visit(async (slot) => {
          // The same claim gives the same answer. Without one, nothing is told and the lane is found when its lease has lapsed.
          const claimed = await this.runtime.ledger.claim(sessionId, first.request).catch(() => null);
          if (claimed) await visit(slot, claimed);
          else end();
        }),
      leave: () => {
        end();
        place.leave();
      },
    };
  }

  private hear(turnId: string): void {
    void this.attempts.get(turnId)?.checkCancelled();
    if (this.accepting.has(turnId)) this.accepting.set(turnId, true);
  }

  private async visit(
    sessionId: string,
    slot: VisitSlot | undefined,
    first = this.claims.next(),
    claimed?: ClaimedTurn,
  ): Promise<void> {
    try {
      await this.runLane(sessionId, slot, first, claimed);
    } catch (error) {
      this.logger.error(
        `Could not visit the lane of session ${hashed(sessionId)}; it will be offered again.`,
        traceOf(error),
      );
    }
  }

  /** @param given what the first claim gave, when it was sent already */
  private async runLane(
    sessionId: string,
    slot: VisitSlot | undefined,
    first: SentClaim,
    given?: ClaimedTurn,
  ): Promise<void> {
    if (this.stopping && !given) return;
    const visitEnds = performance.now() + MAX_VISIT_MS;
    let turns = 0;
    let last = first;
    const next = (): ClaimRequest | undefined => {
      turns += 1;
      if (this.stopping || turns >= this.runtime.settings.maxTurnsPerVisit || performance.now() >= visitEnds)
        return undefined;
      last = this.claims.next();
      return last.request;
    };
    let claimed = given ?? null;
    if (!claimed) {
      const head = await this.claims.head(sessionId, first);
      if (!head) return;
      try {
        claimed = await this.runTurn(head.claimed, head.sentAt, head.slotOf(slot), next);
      } finally {
        head.ended();
      }
    }
    while (claimed) claimed = await this.runTurn(claimed, last.sentAt, slot, next);
  }

  /** @returns the lane's next turn when it was handed over */
  private async runTurn(
    claimed: ClaimedTurn,
    claimSentAt: number,
    slot: VisitSlot | undefined,
    next: () => ClaimRequest | undefined,
  ): Promise<ClaimedTurn | null> {
    const { sessionId, turnId } = claimed.hold;
    const awaited = new AwaitedTurns(this.runtime.ledger, claimed.hold);
    const waits = new HandlerWaits(this.waitingParents, slot, awaited);
    const attempt = new TurnAttempt(claimed, this.runtime, claimSentAt, waits);
    if (attempt.isKnown) this.runtime.recovery.begins(claimed.turn);
    this.attempts.add(turnId, attempt);
    // Its claim was under way when the others were stopped.
    if (this.graceOver) attempt.shutDown();
    // Somebody asked it to stop before there was an attempt to tell.
    if (claimed.turn.cancelMode || this.accepting.get(turnId)) void attempt.checkCancelled();
    const run = (): Promise<AttemptOutcome> => attempt.run(next);
    let outcome: AttemptOutcome;
    try {
      outcome = await (attempt.isKnown ? observeAttempt(this.runtime.telemetry, claimed, run) : run());
    } finally {
      this.attempts.remove(turnId, attempt);
    }
    this.attemptEnded(turnId, outcome.type === 'settled' ? outcome.settled.turn : undefined);
    switch (outcome.type) {
      case 'settled':
        this.conclude(outcome.settled);
        if (this.runtime.foreignSessions) await this.touchForeignSession(outcome.settled.turn);
        if (outcome.settled.turn.status === 'failed') this.failures.last(claimed.turn, outcome.error);
        // This lane goes to the back; the others have waited.
        if (outcome.settled.ring) await this.runtime.bell.ring(sessionId);
        return outcome.settled.next;
      case 'failed':
        this.failures.retried(claimed.turn, outcome.error, outcome.retryInMs);
        await this.runtime.bell.ring(sessionId, outcome.retryInMs);
        return null;
      case 'returned':
        if (outcome.ringAfterMs !== null) await this.runtime.bell.ring(sessionId, outcome.ringAfterMs);
        return null;
      case 'unknown':
        this.runtime.recovery.passes(claimed.turn);
        this.warnUnknown(claimed);
        // It was claimed as it was accepted, so nobody else was offered it.
        if (this.accepting.has(turnId)) await this.runtime.bell.ring(sessionId);
        return null;
      case 'lost':
        this.logger.warn(
          `Turn ${hashed(turnId)} is no longer held by this worker; its result was not stored.`,
          traceOf(outcome.error),
        );
        return null;
    }
  }

  /** Once for each, not at every offer. */
  private warnUnknown({ turn, checkpoint }: ClaimedTurn): void {
    const { orchestrator } = turn;
    const version = newer(turn.version, checkpoint?.version ?? turn.version);
    const wanted = `${orchestrator} ${version}`;
    if (this.unknown.has(wanted)) return;
    this.unknown.add(wanted);
    this.logger.warn(
      `A turn waits for orchestrator ${orchestrator}, version ${version} or newer, which this process does not have. ` +
        'It is left to other processes; register the orchestrator with SessionsModule.forFeature([...]).',
    );
  }

  private conclude({ turn, sessionChange }: SettledTurn): void {
    const { contexts, recovery, sessions } = this.runtime;
    contexts.drop(turn.id);
    recovery.ends(turn);
    if (sessionChange) emitActivity(sessions.events, sessionChange);
  }

  /** Best effort: settle touches the session only when both are in one store. */
  private async touchForeignSession({ sessionId, status }: Turn): Promise<void> {
    if (status === 'failed' || status === 'cancelled') return;
    try {
      await this.runtime.sessions.touch(sessionId);
    } catch (error) {
      this.logger.warn(`Could not touch session ${hashed(sessionId)} after its turn settled.`, traceOf(error));
    }
  }
}

function newer(a: string, b: string): string {
  return compareVersions(a, b) < 0 ? b : a;
}
