import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { backoffMs, longestBackoffMs } from '../common/backoff.js';
import { traceOf } from '../common/error-trace.js';
import { assertWithin } from '../common/json.js';
import { hashed } from '../common/log-id.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { StateResetError } from '../ledger/state-reset.error.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { withoutWritesTo } from '../ledger/written-namespaces.js';
import { isPermanent, toErrorRecord } from '../ledger/turn-error-record.js';
import { HandedPromises } from './handed-promises.js';
import { type HandlerWaits } from './handler-waits.js';
import { ShuttingDownError, TurnFencedError, TurnTimeoutError } from '../ledger/turn.errors.js';
import { ATTEMPT, type NewTurnEvent } from '../ledger/turn-event.js';
import { TurnEventWriter } from './turn-event-writer.js';
import { type AttemptAccount, Parked, type TurnControl, type TurnMeter } from './turn-runner.js';
import { type StoredStep } from '../ledger/turn-step.js';
import { type TurnSpending } from '../ledger/turn-usage.js';
import { type TurnSettings } from './turn.settings.js';
import { TurnStoppedError } from './turn-stopped.error.js';
import { type TurnRuntime } from './turn-runtime.js';
import {
  type ClaimedTurn,
  type ClaimRequest,
  type SettledTurn,
  type TurnSettlement,
  type TurnWait,
} from '../ledger/turn.store.js';
import { attemptNumber, type CancelMode, type Turn, type TurnErrorRecord } from '../ledger/turn.js';
import { type RunningTurn, runningTurn } from './running-turn.js';
import { compareVersions } from './compare-versions.js';
import { interruptedMessages } from '../ledger/user-message.js';

const logger = new Logger('TurnAttempt');

/** Between two tries of a store call, at most: the store must be found again before the lease is over. */
const MAX_PAUSE_MS = 250;

/** How often the lease of a running attempt is renewed. */
export function keepEveryMs({ leaseMs }: Pick<TurnSettings, 'leaseMs'>): number {
  return leaseMs / 3;
}

/** How an attempt ended. */
export type AttemptOutcome =
  | {
      readonly type: 'settled';
      readonly settled: SettledTurn;
      /** What was thrown, when the turn has failed. */
      readonly error?: unknown;
    }
  /** Back in its lane; ring after this time. */
  | {
      readonly type: 'returned';
      readonly why: 'cancelled' | 'waiting' | 'released';
      readonly ringAfterMs: number | null;
    }
  /** Back in its lane too, and tried again after this time. */
  | { readonly type: 'failed'; readonly error: unknown; readonly retryInMs: number }
  /** Back in its lane for another process: this one does not know the orchestrator, or only a version that is too old. */
  | { readonly type: 'unknown' }
  /** Somebody else's now, or the store could not be told in time. Nothing was written. */
  | { readonly type: 'lost'; readonly error: unknown };

/** Why an attempt's signal is aborted. */
type Stop =
  | { readonly why: 'cancelled'; readonly mode: CancelMode }
  | { readonly why: 'shutdown' }
  | { readonly why: 'lost'; readonly error: unknown };

/**
 * One attempt of a claimed turn: runs it while the lease is renewed, then settles it, or puts it back into its lane for
 * a retry or for another worker.
 */
export class TurnAttempt implements TurnControl {
  private readonly controller = new AbortController();
  private stop: Stop | null = null;
  /** Rejects what waits for the handler: one that does not listen to the signal is not waited for. */
  private giveUp: (reason: Error) => void = () => {};
  /** When it has taken too long, by `performance.now()`, and the timer for that once it is near. */
  private limitAt = Infinity;
  private limit: NodeJS.Timeout | undefined;
  private leaseEnd: number;
  /** Under way for steps that found the lease ended. */
  private renewing: Promise<void> | null = null;
  private over = false;
  private writer: TurnEventWriter | null = null;
  private readonly settledListeners: ((turn: Turn) => void)[] = [];
  private account: ((status: 'failed' | 'cancelled') => AttemptAccount) | null = null;
  private meter: TurnMeter | null = null;
  /** A step that is being stored records tokens. */
  private isRecording = false;
  /** What the attempt had to show for itself when it was cancelled. */
  private stopped: AttemptAccount | undefined;
  private readonly running: RunningTurn;
  private readonly promises: HandedPromises;
  /** Whether it is for this process to run; else it is put back for others. */
  readonly isKnown: boolean;

  /**
   * @param claimSentAt when the claim was sent, by `performance.now()`: the lease ran from then at the latest
   * @param waits those of the handler
   */
  constructor(
    private readonly claimed: ClaimedTurn,
    private readonly runtime: TurnRuntime,
    claimSentAt: number,
    private readonly waits: HandlerWaits,
  ) {
    this.leaseEnd = claimSentAt + runtime.settings.leaseMs;
    const { sessionId, request } = claimed.turn;
    this.promises = new HandedPromises(claimed.turn.id);
    this.running = { waitingSessions: [sessionId, ...(request.callers ?? [])], waits, promises: this.promises };
    this.isKnown = this.canRun();
  }

  /** @param next asks for the lane's next turn in the commit that settles this one; not asked without a slot to run it in */
  async run(next: () => ClaimRequest | undefined): Promise<AttemptOutcome> {
    return this.runOnce(() => (this.waits.isReleased ? undefined : next()));
  }

  private async runOnce(next: () => ClaimRequest | undefined): Promise<AttemptOutcome> {
    const { hold, turn } = this.claimed;
    if (!this.isKnown) {
      // Another process may know it: nothing is counted, and the lane is offered again in a while.
      await this.giveBack(this.runtime.settings.reconcileMs);
      return { type: 'unknown' };
    }
    if (performance.now() >= this.leaseEnd) {
      return { type: 'lost', error: new TurnFencedError(hold.sessionId, turn.id, hold.fence) };
    }

    this.limitAt = performance.now() + (this.runtime.settings.timeoutMs ?? Infinity);
    this.watchLimit();
    try {
      const outcome = await this.execute();
      // From here on the handler is done: it cannot be stopped any more, and its own settle is no news.
      this.end();
      if (this.writer) await this.writer.close();
      if (outcome instanceof Parked) return await this.park(outcome.wait);
      return { type: 'settled', settled: await this.settle(outcome, next()) };
    } catch (error) {
      // What the handler left running has nothing to go on for.
      this.controller.abort(new TurnStoppedError('failed'));
      return await this.conclude(error, next).catch((failure: unknown) => ({ type: 'lost', error: failure }) as const);
    } finally {
      this.end();
      this.writer?.drop();
      clearTimeout(this.limit);
    }
  }

  /** Called every {@link keepEveryMs} while it runs. */
  keep(): void {
    this.watchLimit();
    void this.renew();
  }

  /** Asks the handler to stop, and gives the turn back when it does. */
  shutDown(): void {
    this.abort({ why: 'shutdown' });
  }

  /** Looks whether somebody cancelled the turn, or removed it with its session: called on a hint that it changed. */
  async checkCancelled(): Promise<void> {
    if (this.over || this.stop) return;
    const { sessionId, turnId, fence } = this.claimed.hold;
    // While the store is away the turn is ours.
    const turn = await this.runtime.ledger.get(turnId).catch(() => undefined);
    if (turn === null) this.abort({ why: 'lost', error: new TurnFencedError(sessionId, turnId, fence) });
    else if (turn?.cancelMode) this.abort({ why: 'cancelled', mode: turn.cancelMode });
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get telemetry(): Telemetry {
    return this.runtime.telemetry;
  }

  hand<T>(call: string, promise: Promise<T>): Promise<T> {
    return this.promises.hand(call, promise);
  }

  ensureLease(): Promise<void> | undefined {
    return performance.now() < this.leaseEnd ? undefined : (this.renewing ??= this.renewEnded());
  }

  get maxReplyBytes(): number {
    return this.runtime.settings.maxReplyBytes;
  }

  saveStep(step: StoredStep, before?: StoredStep): Promise<StoredStep> {
    const { kind, name, value } = step;
    // The parts of an iteration have limits of their own.
    if (kind !== 'iteration') assertWithin(value, this.runtime.settings.maxStepBytes, `The result of ${kind} ${name}`);
    // One write at a time: two that arrive in another order than they were sent would leave the smaller number.
    if (!this.isRecording && this.meter?.read()) return this.saveWithTokens(step, before);
    return this.whileLeased(() => this.runtime.ledger.saveStep(this.claimed.hold, step, before));
  }

  onSettled(listener: (turn: Turn) => void): void {
    this.settledListeners.push(listener);
  }

  onUnfinished(account: (status: 'failed' | 'cancelled') => AttemptAccount): void {
    this.account = account;
  }

  onSpending(meter: TurnMeter): void {
    this.meter = meter;
  }

  emit(event: NewTurnEvent): Promise<void> {
    const { events } = this.runtime.settings;
    if (!events || this.over || this.controller.signal.aborted) return Promise.resolve();
    this.writer ??= new TurnEventWriter({
      turnId: this.claimed.turn.id,
      ...events,
      store: (number, batch) => this.storeEvents(number, batch, events.ttlMs),
    });
    return this.writer.add(event);
  }

  private canRun(): boolean {
    const { turn, checkpoint } = this.claimed;
    const known = this.runtime.runner.find(turn.orchestrator);
    if (!known || compareVersions(known.version, turn.version) < 0) return false;
    const isBehind = checkpoint !== null && compareVersions(known.version, checkpoint.version) < 0;
    return !isBehind || turn.request.force === true || !this.isFresh();
  }

  /**
   * Whether a worker of another version may still come for the turn: for as long as the longest pause between attempts, from
   * when it was first offered to this process.
   */
  private isFresh(): boolean {
    const { leaseMs, reconcileMs, retry } = this.runtime.settings;
    const pauseMs = longestBackoffMs(retry.backoff);
    // Longer than between two offers to this process, also where several take turns at them.
    const awayMs = pauseMs + leaseMs + 10 * reconcileMs;
    return this.runtime.passed.offeredFor(this.claimed, awayMs, performance.now()) < pauseMs;
  }

  private execute(): Promise<TurnSettlement | Parked> {
    return new Promise((resolve, reject) => {
      this.giveUp = reject;
      // Stopped before it began.
      if (this.stop) throw new TurnStoppedError(this.stop.why);
      const run = (): Promise<TurnSettlement | Parked> => this.runtime.runner.run(this.claimed, this);
      // Two callbacks, not `finally`, which would make three promises more for each turn.
      runningTurn.run(this.running, run).then(
        (result) => {
          this.running.promises = null;
          resolve(result);
        },
        (error: Error) => {
          this.running.promises = null;
          reject(error);
        },
      );
    });
  }

  /** What follows from an attempt that did not settle. */
  private async conclude(error: unknown, next: () => ClaimRequest | undefined): Promise<AttemptOutcome> {
    const { hold, turn } = this.claimed;
    if (error instanceof TurnFencedError) return { type: 'lost', error };
    if (this.stop?.why === 'lost') return { type: 'lost', error: this.stop.error };
    await this.writer?.close();
    // A handler whose own turn was refused, because this process stops, is served by another one.
    if (this.stop?.why === 'shutdown' || error instanceof ShuttingDownError) {
      await this.giveBack(0);
      return { type: 'returned', why: 'released', ringAfterMs: null };
    }
    if (this.stop?.why === 'cancelled') {
      return { type: 'settled', settled: await this.settle(this.cancelled(this.stop.mode), next()) };
    }
    const failures = turn.failures + 1;
    const record = toErrorRecord(error);
    if (isPermanent(error) || failures >= this.runtime.settings.retry.attempts) {
      return { type: 'settled', settled: await this.settle(this.failed(record), next()), error };
    }
    const retryInMs = backoffMs(this.runtime.settings.retry.backoff, failures);
    const failure = { error: record, delayMs: retryInMs };
    const back = await this.recording((spending) =>
      this.runtime.ledger.retry(hold, spending ? { ...failure, spending } : failure),
    );
    // Cancelled a moment ago, it has ended instead, and its lane goes on.
    if (back.status !== 'queued') return { type: 'returned', why: 'cancelled', ringAfterMs: 0 };
    return { type: 'failed', error, retryInMs };
  }

  /** Ends the attempt until the signal comes; one that came early is there when the turn is claimed again. */
  private async park(wait: TurnWait): Promise<AttemptOutcome> {
    const { ledger } = this.runtime;
    const { hold } = this.claimed;
    try {
      // Without the answer of an early signal: then the release records them.
      const spending = this.meter?.read();
      const parking = spending ? { ...wait, spending } : wait;
      const { turn, received } = await this.whileLeased(() => ledger.wait(hold, parking));
      if (received) await this.giveBack(0);
      else if (spending) this.meter?.recorded(spending);
      return { type: 'returned', why: 'waiting', ringAfterMs: turn.status === 'waiting' ? null : 0 };
    } finally {
      // What the handler left running has nothing to write for any more.
      this.controller.abort(new TurnStoppedError('parked'));
    }
  }

  private async storeEvents(number: number, events: readonly NewTurnEvent[], ttlMs: number): Promise<void> {
    const { hold, turn } = this.claimed;
    const restart = { type: ATTEMPT, data: { attempt: attemptNumber(turn) } };
    try {
      const batch = { number, events, restart };
      const last = await this.whileLeased(() => this.runtime.events.append(hold, batch, ttlMs));
      const first = last - events.length + 1;
      const stored = events.map((event, at) => ({ ...event, offset: first + at }));
      this.runtime.stored.tell(turn.id, stored);
    } catch (error) {
      if (error instanceof TurnFencedError) this.abort({ why: 'lost', error });
      throw error;
    }
  }

  /** What belongs to state that was reset since the turn began is left out. */
  private async settle(settlement: TurnSettlement, next?: ClaimRequest): Promise<SettledTurn> {
    const { hold } = this.claimed;
    const { sessionTtlMs } = this.runtime.settings;
    for (let rest: TurnSettlement = { sessionTtlMs, ...settlement }; ;) {
      try {
        const settled = await this.whileLeased(() => this.runtime.ledger.settle(hold, rest, next));
        for (const listener of this.settledListeners) this.tell(listener, settled.turn);
        return settled;
      } catch (error) {
        if (!(error instanceof StateResetError)) throw error;
        rest = withoutWritesTo(rest, error.namespaces);
      }
    }
  }

  /** The turn has settled, whatever a listener throws. */
  private tell(listener: (turn: Turn) => void, turn: Turn): void {
    try {
      listener(turn);
    } catch (error) {
      logger.error(`What follows turn ${hashed(turn.id)} failed.`, traceOf(error));
    }
  }

  private failed(error: TurnErrorRecord): TurnSettlement {
    const account = this.account?.('failed');
    const report = account ? { report: account.report } : {};
    return { status: 'failed', error, ...report, ...this.spent(), messages: [], keepCheckpoints: 'all' };
  }

  /** An interrupted turn keeps the user's message and what was complete; the others keep nothing. */
  private cancelled(mode: CancelMode): TurnSettlement {
    const account = this.stopped;
    const stays = mode === 'interrupt' && this.runtime.settings.logsConversations;
    const messages = stays ? (account?.messages ?? interruptedMessages(this.claimed.turn)) : [];
    const report = account ? { report: account.report } : {};
    return { status: 'cancelled', ...report, ...this.spent(), messages, keepCheckpoints: 'all' };
  }

  private async saveWithTokens(step: StoredStep, before: StoredStep | undefined): Promise<StoredStep> {
    const { ledger } = this.runtime;
    this.isRecording = true;
    try {
      return await this.recording((spending) => ledger.saveStep(this.claimed.hold, step, before, spending));
    } finally {
      this.isRecording = false;
    }
  }

  /** Makes a store call that records the tokens which are not recorded yet. */
  private async recording<T>(call: (spending?: TurnSpending) => Promise<T>): Promise<T> {
    const spending = this.meter?.read() ?? undefined;
    const result = await this.whileLeased(() => call(spending));
    if (spending) this.meter?.recorded(spending);
    return result;
  }

  /** The same tokens, as a settlement has them. */
  private spent(): Pick<TurnSettlement, 'usage' | 'stateChanges'> {
    const spending = this.meter?.read();
    if (!spending) return {};
    this.onSettled(() => this.meter?.recorded(spending));
    // No attempt follows that could repeat them.
    const { places: _, ...usage } = spending.usage;
    const { change } = spending;
    return change ? { usage, stateChanges: [change] } : { usage };
  }

  /** Nothing is rung: the reconciler of whoever can run the turn finds it, and this process cannot. */
  private async giveBack(delayMs: number): Promise<void> {
    await this.recording((spending) => this.runtime.ledger.release(this.claimed.hold, delayMs, spending));
  }

  /** @throws the reason of the abort when another worker has the turn, or the store does not answer */
  private async renewEnded(): Promise<void> {
    await this.renew();
    this.renewing = null;
    this.controller.signal.throwIfAborted();
  }

  private async renew(): Promise<void> {
    const sentAt = performance.now();
    try {
      const { cancelMode } = await this.runtime.ledger.renew(this.claimed.hold, this.runtime.settings.leaseMs);
      this.leaseEnd = sentAt + this.runtime.settings.leaseMs;
      if (cancelMode) this.abort({ why: 'cancelled', mode: cancelMode });
    } catch (error) {
      const lost = error instanceof TurnFencedError || performance.now() >= this.leaseEnd;
      if (lost) this.abort({ why: 'lost', error });
    }
  }

  private end(): void {
    this.over = true;
    this.running.waitingSessions = [];
    this.running.waits = null;
    this.waits.close();
    this.promises.end();
  }

  private abort(stop: Stop): void {
    if (this.over || this.stop) return;
    this.stop = stop;
    // What a handler that was left running completes from now on is not part of it.
    if (stop.why === 'cancelled') this.stopped = this.account?.('cancelled');
    this.interrupt(new TurnStoppedError(stop.why));
  }

  private interrupt(reason: Error): void {
    this.controller.abort(reason);
    this.giveUp(reason);
  }

  /** A limit has no timer before it is near: most attempts are over long before. */
  private watchLimit(): void {
    const { settings } = this.runtime;
    const leftMs = this.limitAt - performance.now();
    if (this.limit || this.over || leftMs > keepEveryMs(settings)) return;
    const error = new TurnTimeoutError(this.claimed.turn.id, settings.timeoutMs ?? 0);
    this.limit = setTimeout(() => this.interrupt(error), leftMs);
  }

  /** Repeats a store call that failed for want of a connection, as long as the turn is certainly ours. */
  private async whileLeased<T>(call: () => Promise<T>): Promise<T> {
    for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof StoreUnavailableError) || performance.now() + pauseMs >= this.leaseEnd) throw error;
        await delay(pauseMs);
      }
    }
  }
}
