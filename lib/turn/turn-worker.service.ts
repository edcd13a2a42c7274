import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { type Instant } from '../common/instant.js';
import { loggedId } from '../common/log-details.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { emitActivity } from '../session/session-events.js';
import { observeAttempt } from './observe-turn.js';
import { compareVersions } from './version-handoff.js';
import { AwaitedTurns } from './awaited-turns.js';
import { HandlerWaits, WaitingParents } from './handler-waits.js';
import { FailureLog } from './failure-log.js';
import { LaneClaims, type SentClaim } from './lane-claims.js';
import { RunningAttempts } from './running-attempts.js';
import { ShutdownLog } from './shutdown-log.js';
import { type AttemptOutcome, TurnAttempt } from './turn-attempt.js';
import { renewEveryMs } from './turn-lease.js';
import { type VisitSlot } from '../ledger/turn-queue.js';
import { type TurnDependencies } from './turn-dependencies.js';
import { type ClaimedTurn, type ClaimRequest, type SettledTurn } from '../ledger/turn.store.js';
import { type Turn } from '../ledger/turn.js';
import { workerMessages } from './worker.messages.js';

/** The maximum duration of a visit, even if fewer turns than `maxTurnsPerVisit` ran. */
const MAX_VISIT_MS = 100;
/**
 * How often running turns are checked for a cancel by another process, if notifications do not reach the whole store
 * (TRN-09).
 */
const CANCEL_POLL_MS = 500;
/** Failed visits within this time belong to one outage, even if other lanes are visited meanwhile. */
const OUTAGE_GAP_MS = 60_000;

/** A visit that is prepared for a turn that is being accepted. */
export interface ReadyVisit {
  /** The claim to send with the accept. */
  readonly claim: ClaimRequest;
  /** @param claimed the result of that claim; if absent, the claim is sent now */
  begin(claimed?: ClaimedTurn): void;
  /** Checks a claim whose outcome is unknown. */
  findOut(): void;
  /** Releases the visit without work. */
  leave(): void;
}

/**
 * Runs turns. It visits the lane of each session that the queue notifies, claims and runs its head, and continues with
 * the turn that settling returns, up to a fairness limit (TRN-03, TRN-04).
 */
export class TurnWorker {
  private readonly logger = new Logger(TurnWorker.name);
  private readonly failures: FailureLog;
  private readonly shutdown = new ShutdownLog(this.logger);
  private readonly claims: LaneClaims;
  private readonly attempts: RunningAttempts;
  private readonly waitingParents: WaitingParents;
  /** Turns that are being accepted here with a claim. The value is true if a notification arrived since. */
  private readonly accepting = new Map<string, boolean>();
  /** The orchestrators that {@link warnUnknown} has warned of. */
  private readonly warned = new Set<string>();
  private attemptEnded: (turnId: string, turn?: Turn) => void = () => undefined;
  private unsubscribe: (() => void) | null = null;
  private poll: NodeJS.Timeout | null = null;
  /** The visits that failed because the store was unavailable, by `performance.now()`. */
  private readonly outage = { since: 0, lastAt: -Infinity };
  private stopping = false;
  private graceOver = false;
  private stopped = false;

  constructor(private readonly dependencies: TurnDependencies) {
    this.failures = new FailureLog(this.logger, dependencies.settings.retry);
    this.claims = new LaneClaims(dependencies, this.failures);
    this.attempts = new RunningAttempts(renewEveryMs(dependencies.settings));
    this.waitingParents = new WaitingParents(dependencies.settings.maxWaitingParents);
  }

  async start(): Promise<void> {
    const { changes, queue, storeWatch } = this.dependencies;
    this.unsubscribe = changes.subscribe((turnId) => this.onChange(turnId));
    if (changes.reach !== 'store') this.poll = setInterval(() => this.checkCancelled(), CANCEL_POLL_MS);
    storeWatch.onChange((isUsable) => void this.holdQueue(!isUsable));
    await queue.process((sessionId, slot) => this.visit(sessionId, slot));
  }

  /**
   * Stops claiming, and leaves notifications to other workers. Running turns continue. Call it before anything else
   * stops.
   */
  async claimNoMore(): Promise<void> {
    this.stopping = true;
    this.claims.stop();
    if (this.unsubscribe) await this.holdQueue(true);
  }

  /**
   * Stops claiming. Running turns get `shutdownGraceMs`; then they are stopped and released for another worker
   * (TRN-14).
   */
  async stop(): Promise<void> {
    await this.claimNoMore();
    const { queue, runner, settings, storeWatch } = this.dependencies;
    this.shutdown.begins(this.attempts.list().length, settings.shutdownGraceMs);
    storeWatch.stop();
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
      this.stopped = true;
      clearTimeout(timer);
      this.unsubscribe?.();
      if (this.poll) clearInterval(this.poll);
    }
  }

  /** True while this worker starts no turns. */
  private get isHeld(): boolean {
    return this.stopping || !this.dependencies.storeWatch.isUsable;
  }

  /** Leaves notifications in the queue, or to other processes, while the store cannot store turns. */
  private async holdQueue(isHeld: boolean): Promise<void> {
    const { queue } = this.dependencies;
    try {
      await (isHeld ? queue.pause() : this.stopping ? undefined : queue.resume());
    } catch (error) {
      this.logger.error(`Could not ${isHeld ? 'pause' : 'resume'} the queue.`, traceOf(error));
    }
  }

  private checkCancelled(): void {
    for (const attempt of this.attempts.list()) void attempt.checkCancelled();
  }

  /** @param listener called when an attempt here has ended, with the turn if it has settled */
  onAttemptEnd(listener: (turnId: string, turn?: Turn) => void): void {
    this.attemptEnded = listener;
  }

  /** Returns true if an attempt of the turn runs here. */
  runs(turnId: string): boolean {
    return this.attempts.get(turnId) !== undefined;
  }

  /**
   * Prepares a visit of the lane without a notification, if this process has a free slot; otherwise returns `null`, and
   * the caller must notify.
   * @param turnId the turn that is about to be accepted. Do not await anything before that
   */
  prepare(sessionId: string, turnId: string): ReadyVisit | null {
    if (this.isHeld) return null;
    const first = this.claims.next();
    const reserved = this.dependencies.queue.reserve?.(sessionId);
    if (!reserved) return null;
    this.accepting.set(turnId, false);
    const end = (): void => void this.accepting.delete(turnId);
    const visit = (slot?: VisitSlot, claimed?: ClaimedTurn): Promise<void> =>
      this.visit(sessionId, slot, first, claimed).finally(end);
    return {
      claim: first.request,
      begin: (claimed) => reserved.visit((slot) => visit(slot, claimed)),
      findOut: () =>
        reserved.visit(async (slot) => {
          // The same claim returns the same result. If the call fails, the lane is found after its lease has lapsed.
          const claimed = await this.dependencies.ledger.claim(sessionId, first.request).catch(() => null);
          if (claimed) await visit(slot, claimed);
          else end();
        }),
      leave: () => {
        end();
        reserved.release();
      },
    };
  }

  private onChange(turnId: string): void {
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
      if (StoreUnavailableError.isInstance(error) && error.reason === 'outage')
        return this.storeFailed(sessionId, error);
      this.logger.error(
        `Could not visit the lane of session ${loggedId(sessionId)}; it will be offered again.`,
        traceOf(error),
      );
    }
  }

  /** Logs failures of visits as one outage while they follow each other: thousands of lanes may wait (FIX-61). */
  private storeFailed(sessionId: string, error: StoreUnavailableError): void {
    const now = performance.now();
    if (now - this.outage.lastAt > OUTAGE_GAP_MS) this.outage.since = now;
    this.outage.lastAt = now;
    const call = `claim of session ${loggedId(sessionId)}`;
    this.dependencies.storeWatch.outages.repeats(call, this.outage.since, error);
  }

  /** @param given the result of the first claim, if it was already sent */
  private async runLane(
    sessionId: string,
    slot: VisitSlot | undefined,
    first: SentClaim,
    given?: ClaimedTurn,
  ): Promise<void> {
    if (this.isHeld && !given) return;
    const visitEnds = performance.now() + MAX_VISIT_MS;
    // Not counted in `next`, which an attempt calls for each of its settlements.
    let turns = 0;
    let last = first;
    const next = (): ClaimRequest | undefined => {
      if (this.isHeld || turns >= this.dependencies.settings.maxTurnsPerVisit || performance.now() >= visitEnds)
        return undefined;
      last = this.claims.next();
      return last.request;
    };
    let claimed = given ?? null;
    if (!claimed) {
      const head = await this.claims.head(sessionId, first, slot);
      if (!head) return;
      try {
        turns += 1;
        claimed = await this.runTurn(head.claimed, head.sentAt, head.slotOf(slot), next);
      } finally {
        head.ended();
      }
    }
    while (claimed) {
      turns += 1;
      claimed = await this.runTurn(claimed, last.sentAt, slot, next);
    }
  }

  /** @returns the lane's next turn, if settling returned one */
  private async runTurn(
    claimed: ClaimedTurn,
    claimSentAt: Instant,
    slot: VisitSlot | undefined,
    next: () => ClaimRequest | undefined,
  ): Promise<ClaimedTurn | null> {
    const { sessionId, turnId } = claimed.hold;
    const awaited = new AwaitedTurns(this.dependencies.ledger, claimed.hold);
    const waits = new HandlerWaits(this.waitingParents, slot, awaited);
    const attempt = new TurnAttempt(claimed, this.dependencies, claimSentAt, waits, () => this.stopped);
    if (attempt.isKnown) this.dependencies.recovery.begins(claimed.turn);
    this.attempts.add(turnId, attempt);
    // The claim was in flight when the other attempts were stopped.
    if (this.graceOver) attempt.shutDown();
    // A cancel may have arrived before the attempt existed.
    if (claimed.turn.cancelMode || this.accepting.get(turnId)) void attempt.checkCancelled();
    const run = (): Promise<AttemptOutcome> => attempt.run(next);
    let outcome: AttemptOutcome;
    try {
      outcome = await (attempt.isKnown ? observeAttempt(this.dependencies.telemetry, claimed, run) : run());
    } finally {
      this.attempts.remove(turnId, attempt);
    }
    this.attemptEnded(turnId, outcome.type === 'settled' ? outcome.settled.turn : undefined);
    if (this.stopping) this.shutdown.ended(claimed.turn, outcome);
    switch (outcome.type) {
      case 'settled':
        this.conclude(outcome.settled);
        if (this.dependencies.foreignSessions) await this.touchForeignSession(outcome.settled.turn);
        if (outcome.settled.turn.status === 'failed') this.failures.last(claimed.turn, outcome.failure);
        // The lane goes to the end of the queue, because others have waited.
        if (outcome.settled.notify) await this.dependencies.notifier.notify(sessionId);
        return outcome.settled.next;
      case 'failed':
        this.failures.retried(claimed.turn, outcome.failure, outcome.retryInMs);
        await this.dependencies.notifier.notify(sessionId, outcome.retryInMs);
        return null;
      case 'returned':
        if (outcome.notifyAfterMs !== null) await this.dependencies.notifier.notify(sessionId, outcome.notifyAfterMs);
        return null;
      case 'unknown':
        this.dependencies.recovery.passes(claimed.turn);
        this.warnUnknown(claimed);
        // The turn was claimed while it was accepted, so no other worker was notified.
        if (this.accepting.has(turnId)) await this.dependencies.notifier.notify(sessionId);
        return null;
      case 'lost':
        this.logger.warn(
          `Turn ${loggedId(turnId)} is no longer held by this worker; its result was not stored.`,
          traceOf(outcome.error),
        );
        return null;
    }
  }

  /** Warns once per orchestrator and version or structure, not at every offer. */
  private warnUnknown({ turn, checkpoint }: ClaimedTurn): void {
    const { orchestrator } = turn;
    const version = newer(turn.version, checkpoint?.version ?? turn.version);
    const known = this.dependencies.runner.find(orchestrator);
    const hasVersion = known !== undefined && compareVersions(known.version, version) >= 0;
    const wanted = hasVersion ? `version ${version} with more intents` : `version ${version} or newer`;
    if (this.warned.has(`${orchestrator} ${wanted}`)) return;
    this.warned.add(`${orchestrator} ${wanted}`);
    this.logger.warn(workerMessages.notRunHere(orchestrator, wanted, known?.version, hasVersion));
  }

  private conclude({ turn, sessionChange }: SettledTurn): void {
    const { contexts, recovery, sessions } = this.dependencies;
    contexts.drop(turn.id);
    recovery.ends(turn);
    if (sessionChange) emitActivity(sessions.events, sessionChange);
  }

  /** Best effort: settling touches the session only if both are in one store. */
  private async touchForeignSession({ sessionId, status }: Turn): Promise<void> {
    if (status === 'failed' || status === 'cancelled') return;
    try {
      await this.dependencies.sessions.touch(sessionId);
    } catch (error) {
      this.logger.warn(`Could not touch session ${loggedId(sessionId)} after its turn settled.`, traceOf(error));
    }
  }
}

function newer(a: string, b: string): string {
  return compareVersions(a, b) < 0 ? b : a;
}
