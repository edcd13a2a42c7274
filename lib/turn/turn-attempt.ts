import { Logger } from '@nestjs/common';
import { withReceivedAnswers } from '../chat/received-answers.js';
import { stoppedAnswer } from '../chat/stopped-message.js';
import { chunksOf } from '../chat/ui-events.js';
import { backoffMs } from '../common/backoff.js';
import { traceOf } from '../common/error-trace.js';
import { type Instant } from '../common/instant.js';
import { assertWithin } from '../common/json.js';
import { StoreRejectedError } from '../common/sessions.error.js';
import { loggedId } from '../common/log-details.js';
import { withoutProxy } from '../common/thrown.js';
import { StateResetError } from '../ledger/state-reset.error.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { withoutWritesTo } from '../ledger/namespaces.js';
import { isPermanent, retryAfterMs, toErrorRecord } from '../ledger/turn-error-record.js';
import { HandedPromises } from './handed-promises.js';
import { type HandlerWaits } from './handler-waits.js';
import { identityOf } from '../ledger/session.js';
import { SessionNotFoundError } from '../ledger/session.errors.js';
import { ShuttingDownError, TurnFencedError } from '../ledger/turn.errors.js';
import { type NewTurnEvent, type TurnEvent } from '../ledger/turn-event.js';
import { AttemptEvents } from './attempt-events.js';
import { attemptMessages } from './attempt.messages.js';
import { type PartialOutcome, AwaitingSignal, type AttemptHandle, type TurnMeter } from './turn-runner.js';
import { type StateChange } from '../ledger/state.store.js';
import { type StoredStep } from '../ledger/turn-step.js';
import { type TurnSpending } from '../ledger/turn-usage.js';
import { TurnStoppedError } from './turn-stopped.error.js';
import { type TurnDependencies } from './turn-dependencies.js';
import {
  type ClaimedTurn,
  type ClaimRequest,
  type SettledTurn,
  type TurnSettlement,
  type TurnWait,
} from '../ledger/turn.store.js';
import { type CancelMode, type Turn, type TurnErrorRecord } from '../ledger/turn.js';
import { type TurnEventSettings } from './turn.settings.js';
import { type RunningTurn, runningTurn } from './running-turn.js';
import { AttemptSpending } from './attempt-spending.js';
import { AttemptStop, type Stop } from './attempt-stop.js';
import { TurnLease } from './turn-lease.js';
import { type NewMessage } from '../ledger/conversation.store.js';
import { interruptedMessages, messageId } from '../ledger/user-message.js';

const logger = new Logger('TurnAttempt');
/** How long a turn may take to settle after its handler has ended, also with `timeoutMs: false` (FIX-61). */
const SETTLE_MS = 60_000;

/** The error of an attempt, and where it was thrown. */
export interface AttemptFailure {
  readonly error: unknown;
  /** The intent and step; absent if the error was thrown outside of the orchestrator's code. */
  readonly place?: string;
}

/** How an attempt ended. */
export type AttemptOutcome =
  | {
      readonly type: 'settled';
      readonly settled: SettledTurn;
      /** Present if the turn has failed. */
      readonly failure?: AttemptFailure;
    }
  /**
   * This worker no longer holds the turn. `cancelled`: the store ended the turn instead of queueing its retry.
   * `waiting`: the turn awaits a signal, or its signal has already arrived. `released`: the turn is queued again. No
   * failure is counted. Workers are notified after `notifyAfterMs` milliseconds; null: they are not notified.
   */
  | {
      readonly type: 'returned';
      readonly why: 'cancelled' | 'waiting' | 'released';
      readonly notifyAfterMs: number | null;
    }
  /** The failure is counted, and the turn is queued again. It is retried after `retryInMs` milliseconds. */
  | { readonly type: 'failed'; readonly failure: AttemptFailure; readonly retryInMs: number }
  /**
   * The turn is queued again for another process. This one does not have the orchestrator, or only an older version or
   * one with fewer intents.
   */
  | { readonly type: 'unknown' }
  /**
   * Another worker has the turn, or the store did not answer in time. The outcome was not stored, as far as this worker
   * knows.
   */
  | { readonly type: 'lost'; readonly error: unknown };

/**
 * One attempt of a turn. The worker creates it for each claim, and calls {@link run} once. Meanwhile a timer calls
 * {@link keep}, which renews the lease. The runner of the orchestrator uses the attempt as its `AttemptHandle`. Public
 * members without a comment are described there.
 *
 * `run` calls the handler, and then settles the turn or lets it wait for a signal. A cancel, a shutdown, a lost lease
 * or the time limit stops the handler: `run` no longer waits for it, and `conclude` decides how the attempt ends.
 */
export class TurnAttempt implements AttemptHandle {
  private readonly lease: TurnLease;
  private readonly stop: AttemptStop;
  private readonly spending = new AttemptSpending();
  /** `null` until the handler emits or reads events. */
  private events: AttemptEvents | null = null;
  /** Called after this attempt has settled the turn, with any status. */
  private readonly settledListeners: ((turn: Turn) => void)[] = [];
  /** Completes the settlement of a cancelled turn whose messages stay, see `onKept`. Default: no change. */
  private completeKept = async (settlement: TurnSettlement): Promise<TurnSettlement> => settlement;
  /** Returns the report and messages so far, see `onUnfinished`. `null` until the runner has set it. */
  private partialOutcome: ((status: 'failed' | 'cancelled') => PartialOutcome) | null = null;
  /** The partial outcome when a cancel arrived. Later results of the handler do not count. */
  private outcomeAtCancel: PartialOutcome | undefined;
  /** The places where the orchestrator's code threw errors, for the log: `intent refund, step load order`. */
  private readonly places = new Map<unknown, string>();
  /** Returns what runs now, in the same form. Logged if the time limit is exceeded. */
  private whatRuns: () => string | undefined = () => undefined;
  /** Services such as `TurnService` find the calling turn in it. Emptied when the attempt ends. */
  private readonly running: RunningTurn;
  private readonly promises: HandedPromises;
  /** True if this process can run the turn, see `VersionHandoff`. Otherwise {@link run} only releases it. */
  readonly isKnown: boolean;

  /**
   * @param claimSentAt when the claim was sent: the lease began then or later
   * @param waits the waits of the handler for other turns, which release the slot of this visit
   * @param isWorkerStopped true when the process ends, so that handlers which still run end with it
   */
  constructor(
    private readonly claimed: ClaimedTurn,
    private readonly dependencies: Pick<
      TurnDependencies,
      'ledger' | 'events' | 'localEvents' | 'runner' | 'settings' | 'storeWatch' | 'telemetry' | 'versionHandoff'
    >,
    claimSentAt: Instant,
    private readonly waits: HandlerWaits,
    private readonly isWorkerStopped: () => boolean,
  ) {
    const { ledger, settings, runner, storeWatch, versionHandoff } = dependencies;
    const { id, sessionId, orchestrator, request } = claimed.turn;
    this.stop = new AttemptStop(
      id,
      settings,
      (error) => this.thrownIn(this.whatRuns(), error),
      (afterMs) => this.warnOfHandler(afterMs),
    );
    this.lease = new TurnLease(claimed.hold, ledger, settings.leaseMs, claimSentAt, {
      cancelled: (mode) => this.askToStop({ why: 'cancelled', mode }),
      lost: (error) => this.askToStop({ why: 'lost', error }),
      failed: (error) => storeWatch.failed(error),
      repeats: (operation, since, error) => storeWatch.outages.repeats(operation, since, error),
      recovered: () => storeWatch.outages.ended(),
    });
    this.promises = new HandedPromises(id, this.signal);
    this.running = {
      turnId: id,
      session: claimed.session && { ...identityOf(claimed.session), ledger },
      ledger,
      waitingSessions: [sessionId, ...(request.callers ?? [])],
      waits,
      promises: this.promises,
      beforeChildTurn: null,
    };
    this.isKnown = versionHandoff.accepts(claimed, runner.find(orchestrator), runner.isOutgrown(claimed));
  }

  /**
   * Runs the attempt to its end. Never rejects.
   * @param next returns a claim of the lane's next turn, for the commit that settles this one. Called again if the store
   * rejects that commit. Not called if the visit has no slot for that turn, because the handler has left a wait for
   * another turn running
   */
  async run(next: () => ClaimRequest | undefined): Promise<AttemptOutcome> {
    return this.runClaimed(() => (this.waits.isReleased ? undefined : next()));
  }

  private async runClaimed(next: () => ClaimRequest | undefined): Promise<AttemptOutcome> {
    // Another process may have the orchestrator, so the lane is offered again later.
    if (!this.isKnown) return this.returnUnbegun(this.dependencies.settings.reconcileMs, { type: 'unknown' });
    // This process was too slow (FIX-62). If another worker has claimed the turn since, its fence rejects the release.
    if (this.lease.hasEnded) return this.returnUnbegun(0, { type: 'returned', why: 'released', notifyAfterMs: 0 });

    this.stop.start();
    try {
      const outcome = await this.execute();
      this.lease.limit(SETTLE_MS);
      // From here on, no stop has an effect, and `checkCancelled` ignores the notification of this attempt's settle.
      this.end();
      if (this.events) await this.events.close(true);
      if (outcome instanceof AwaitingSignal) return await this.awaitSignal(outcome.wait);
      return { type: 'settled', settled: await this.settle(outcome, next()) };
    } catch (thrown) {
      const error = withoutProxy(thrown);
      // The log finds the place by this error.
      this.thrownIn(this.places.get(thrown), error);
      this.lease.limit(SETTLE_MS);
      this.stop.abandon('failed');
      return await this.conclude(error, next)
        .catch((failure: unknown) => this.failWithoutContent(failure, next))
        .catch((failure: unknown) => ({ type: 'lost', error: failure }) as const);
    } finally {
      this.end();
      this.events?.drop();
    }
  }

  /** Renews the lease and checks the time limit. Called every third of `leaseMs` while the attempt runs. */
  keep(): void {
    this.stop.watchLimit();
    void this.lease.renew();
  }

  /** Stops the handler, because this process stops. {@link run} then releases the turn for another worker. */
  shutDown(): void {
    this.askToStop({ why: 'shutdown' });
  }

  /** Checks whether the turn was cancelled, or removed with its session. Called when the turn has changed. */
  async checkCancelled(): Promise<void> {
    if (this.stop.isOver || this.stop.request) return;
    const { sessionId, turnId, fence } = this.claimed.hold;
    // While the store is unreachable, this worker keeps the turn.
    const turn = await this.dependencies.ledger.get(turnId).catch(() => undefined);
    if (turn === null) this.askToStop({ why: 'lost', error: new TurnFencedError(sessionId, turnId, fence) });
    else if (turn?.cancelMode) this.askToStop({ why: 'cancelled', mode: turn.cancelMode });
  }

  get signal(): AbortSignal {
    return this.stop.signal;
  }

  get telemetry(): Telemetry {
    return this.dependencies.telemetry;
  }

  hand<T>(call: string, promise: Promise<T>): Promise<T> {
    return runningTurn.getStore()?.isInner ? promise : this.promises.hand(call, promise);
  }

  ensureLease(): Promise<void> | undefined {
    return this.lease.renewIfEnded()?.then(() => this.signal.throwIfAborted());
  }

  assertOpen(): void {
    this.signal.throwIfAborted();
    if (this.stop.isOver) throw new TurnStoppedError('ended');
  }

  thrownIn(place: string | undefined, error: unknown): void {
    if (place !== undefined && !this.places.has(error)) this.places.set(error, place);
  }

  onLimit(whatRuns: () => string | undefined): void {
    this.whatRuns = whatRuns;
  }

  get maxReplyBytes(): number {
    return this.dependencies.settings.maxReplyBytes;
  }

  get maxStepBytes(): number {
    return this.dependencies.settings.maxStepBytes;
  }

  async write<T>(call: () => Promise<T>): Promise<T> {
    this.signal.throwIfAborted();
    await this.ensureLease();
    try {
      return await this.lease.retrying('append', call);
    } catch (error) {
      if (!SessionNotFoundError.isInstance(error)) throw error;
      const { sessionId, turnId, fence } = this.claimed.hold;
      throw new TurnFencedError(sessionId, turnId, fence);
    }
  }

  saveStep(step: StoredStep): Promise<StoredStep> {
    // Rejects a step that the handler did not await and that ended after the attempt. A step that ends between a stop
    // and the end of the attempt is stored.
    if (this.stop.isOver) this.assertOpen();
    const { kind, name, value } = step;
    // The parts of an iteration have separate limits.
    if (kind !== 'iteration') assertWithin(value, this.maxStepBytes, `The result of ${kind} ${name}`);
    const saved = this.spending.recordAlone((spending) =>
      this.lease.retrying('saveStep', () => this.dependencies.ledger.saveStep(this.claimed.hold, step, spending)),
    );
    return saved.catch((error: unknown) => {
      // The turn fails, whatever the handler does with the error: another attempt would repeat the effect of the step.
      if (StoreRejectedError.isInstance(error)) this.stop.interrupt(error);
      // This call may be the first to notice that another worker has the turn, or that its session was deleted.
      if (TurnFencedError.isInstance(error)) this.askToStop({ why: 'lost', error });
      throw error;
    });
  }

  onChildTurn(before: () => Promise<unknown> | null): void {
    this.running.beforeChildTurn = before;
  }

  onSettled(listener: (turn: Turn) => void): void {
    this.settledListeners.push(listener);
  }

  onKept(complete: (settlement: TurnSettlement) => Promise<TurnSettlement>): void {
    this.completeKept = complete;
  }

  onUnfinished(partialOutcome: (status: 'failed' | 'cancelled') => PartialOutcome): void {
    this.partialOutcome = partialOutcome;
  }

  onSpending(meter: TurnMeter): void {
    this.spending.measure(meter);
  }

  emit(event: NewTurnEvent): Promise<void> {
    const { events } = this.dependencies.settings;
    if (!events || this.stop.isOver || this.signal.aborted) return Promise.resolve();
    return this.eventsOf(events).emit(event);
  }

  async flush(): Promise<void> {
    await this.events?.flush();
  }

  async emitted(): Promise<readonly TurnEvent[]> {
    const { events } = this.dependencies.settings;
    return events ? this.eventsOf(events).stored() : [];
  }

  private eventsOf(settings: TurnEventSettings): AttemptEvents {
    const { events: log, localEvents } = this.dependencies;
    const onLost = (error: TurnFencedError): void => this.askToStop({ why: 'lost', error });
    return (this.events ??= new AttemptEvents(this.claimed, settings, { log, localEvents, lease: this.lease, onLost }));
  }

  private execute(): Promise<TurnSettlement | AwaitingSignal> {
    const { runner } = this.dependencies;
    const run = (): Promise<TurnSettlement | AwaitingSignal> => runner.run(this.claimed, this);
    return this.stop.run(
      () => runningTurn.run(this.running, run),
      () => {
        this.running.promises = null;
        this.running.session = null;
        this.promises.endHandler();
      },
    );
  }

  /** Releases a turn whose handler has not begun. No failure and no loss is counted. */
  private async returnUnbegun(delayMs: number, outcome: AttemptOutcome): Promise<AttemptOutcome> {
    try {
      await this.giveBack(delayMs);
      return outcome;
    } catch (error) {
      return { type: 'lost', error };
    }
  }

  /**
   * Decides how an attempt ends whose handler failed or was stopped, or whose settlement failed: as lost, failed,
   * released, cancelled or retried. The order of the checks is their precedence.
   */
  private async conclude(error: unknown, next: () => ClaimRequest | undefined): Promise<AttemptOutcome> {
    const { hold, turn } = this.claimed;
    const { ledger, settings, storeWatch } = this.dependencies;
    const { request } = this.stop;
    // The error may come from a store call of the handler, which `storeWatch` has not seen.
    storeWatch.failed(error);
    if (TurnFencedError.isInstance(error)) return { type: 'lost', error };
    if (request?.why === 'lost') return { type: 'lost', error: request.error };
    await this.events?.close(false);
    if (StoreRejectedError.isInstance(error)) return this.fail(error, next);
    // If the handler submitted a turn that was rejected because this process stops, another process runs the attempt
    // again.
    if (request?.why === 'shutdown' || ShuttingDownError.isInstance(error)) {
      await this.giveBack(0);
      return { type: 'returned', why: 'released', notifyAfterMs: null };
    }
    if (request?.why === 'cancelled') {
      return { type: 'settled', settled: await this.settle(await this.cancelled(request.mode), next()) };
    }
    const failures = turn.failures + 1;
    if (isPermanent(error) || failures >= settings.retry.attempts) return this.fail(error, next);
    const record = toErrorRecord(error);
    const retryInMs = Math.max(backoffMs(settings.retry.backoff, failures), retryAfterMs(error));
    const failure = { error: record, delayMs: retryInMs };
    const back = await this.record('retry', (spending) =>
      ledger.retry(hold, spending ? { ...failure, spending } : failure),
    );
    // The turn was cancelled, or its session expired, just before. The store has ended it instead, so its lane continues.
    if (back.status !== 'queued') return { type: 'returned', why: 'cancelled', notifyAfterMs: 0 };
    return { type: 'failed', failure: this.failureOf(error), retryInMs };
  }

  private async fail(error: unknown, next: () => ClaimRequest | undefined): Promise<AttemptOutcome> {
    const settled = await this.settle(this.failed(toErrorRecord(error)), next());
    return { type: 'settled', settled, failure: this.failureOf(error) };
  }

  private failureOf(error: unknown): AttemptFailure {
    const place = this.places.get(error);
    return place === undefined ? { error } : { error, place };
  }

  /**
   * Fails a turn with only this error and its tokens, because the store rejects its report or error record, too. Waits
   * while the store lacks a table, a function or a privilege: a retry would repeat the effects of the turn.
   * @throws `error` unless it is a StoreRejectedError
   */
  private async failWithoutContent(error: unknown, next: () => ClaimRequest | undefined): Promise<AttemptOutcome> {
    if (!StoreRejectedError.isInstance(error)) throw error;
    const { usage } = this.spent();
    const failed = { status: 'failed', error: toErrorRecord(error), messages: [], keepCheckpoints: 'all' } as const;
    const settled = await this.settle(usage ? { ...failed, usage } : failed, next(), true);
    return { type: 'settled', settled, failure: this.failureOf(error) };
  }

  /** Ends the attempt. The next one starts when the signal arrives, or now if the signal has arrived before. */
  private async awaitSignal(wait: TurnWait): Promise<AttemptOutcome> {
    const { ledger } = this.dependencies;
    const { hold } = this.claimed;
    try {
      const spending = this.spending.read();
      const waiting = spending ? { ...wait, spending } : wait;
      const { turn, received } = await this.lease.retrying('wait', () => ledger.wait(hold, waiting));
      // If the signal arrived earlier, `wait` records no tokens: the release does.
      if (received) await this.giveBack(0);
      else this.spending.recorded(spending);
      return { type: 'returned', why: 'waiting', notifyAfterMs: turn.status === 'waiting' ? null : 0 };
    } finally {
      this.stop.abandon('awaiting-signal');
    }
  }

  /** Settles the turn. Writes to state that was reset since the turn began are dropped. */
  private async settle(
    settlement: TurnSettlement,
    next?: ClaimRequest,
    waitsForOperator = false,
  ): Promise<SettledTurn> {
    const { hold } = this.claimed;
    const { sessionTtlMs } = this.dependencies.settings;
    for (let rest: TurnSettlement = { sessionTtlMs, ...settlement }; ;) {
      try {
        const settle = (): Promise<SettledTurn> => this.dependencies.ledger.settle(hold, rest, next);
        const settled = await this.lease.retrying('settle', settle, waitsForOperator);
        for (const listener of this.settledListeners) this.callListener(listener, settled.turn);
        return settled;
      } catch (error) {
        if (!StateResetError.isInstance(error)) throw error;
        rest = withoutWritesTo(rest, error.namespaces);
      }
    }
  }

  /** Calls a listener. The turn has settled, so errors are only logged. */
  private callListener(listener: (turn: Turn) => void, turn: Turn): void {
    try {
      listener(turn);
    } catch (error) {
      logger.error(`A listener failed after turn ${loggedId(turn.id)} had settled.`, traceOf(error));
    }
  }

  private failed(error: TurnErrorRecord): TurnSettlement {
    const partial = this.partialOutcome?.('failed');
    const report = partial ? { report: partial.report } : {};
    const spent = this.spent(partial?.change);
    return { status: 'failed', error, ...report, ...spent, messages: [], keepCheckpoints: 'all' };
  }

  /**
   * Returns the settlement of a cancelled turn. Messages stay in the conversation only with `interrupt`. If some stay,
   * the turn also replaces the turns that it was submitted to replace (AIS-07).
   */
  private async cancelled(mode: CancelMode): Promise<TurnSettlement> {
    const partial = this.outcomeAtCancel;
    const messages = mode === 'interrupt' ? await this.keptMessages(partial) : [];
    const report = partial ? { report: partial.report } : {};
    const spent = this.spent(partial?.change);
    const settlement: TurnSettlement = { status: 'cancelled', ...report, ...spent, messages, keepCheckpoints: 'all' };
    return messages.length > 0 ? this.completeKept(settlement) : settlement;
  }

  /**
   * Returns the messages that stay after an interrupt: the user's message, followed by the first of these that exists:
   * - the messages that the caller of the cancel passed as `keep`, unless they are a chat's answer;
   * - the messages of completed iterations, without `keep`;
   * - as much of a chat's answer as its clients have received (AIS-10);
   * - the chat's answer in `keep`.
   */
  private async keptMessages(partial: PartialOutcome | undefined): Promise<readonly NewMessage[]> {
    const { ledger, settings } = this.dependencies;
    if (!settings.logsConversations) return [];
    const { turn } = this.claimed;
    // The claimed turn is older than the cancel, which stores `keep`.
    const { keep } = (await this.lease.retrying('get', () => ledger.get(turn.id))) ?? turn;
    const given = keep ? interruptedMessages({ ...turn, keep }) : (partial?.messages ?? interruptedMessages(turn));
    if (keep ? !isAnswer(keep) : given.length > 1) return given;
    // Clients have received more of the answer than the caller who cancelled the turn has read.
    const chunks = chunksOf(await this.lease.retrying('read', () => this.emitted()));
    const readSignals = () => this.lease.retrying('signals', () => ledger.signals(turn.id));
    const shown = stoppedAnswer(await withReceivedAnswers(chunks, readSignals));
    return shown ? interruptedMessages({ ...turn, keep: [{ ...shown, id: messageId(turn.id, 1) }] }) : given;
  }

  /** Makes a store call that ends the attempt, with the tokens that are not recorded yet. */
  private async record<T>(operation: 'retry' | 'release', call: (spending?: TurnSpending) => Promise<T>): Promise<T> {
    return this.spending.record((spending) => this.lease.retrying(operation, () => call(spending)));
  }

  /**
   * Returns the tokens that are not recorded yet, for a settlement. Once it is stored, they count as recorded.
   * @param change another change of the document that counts the tokens: both become one change
   */
  private spent(change?: StateChange): Pick<TurnSettlement, 'usage' | 'stateChanges'> {
    const spending = this.spending.read();
    if (spending) this.onSettled(() => this.spending.recorded(spending));
    return AttemptSpending.settled(spending, change);
  }

  /**
   * Releases the turn to its lane, without a failure. Sends no notification.
   * @param delayMs how long reconcilers do not offer the lane, in milliseconds; 0: they offer it first
   */
  private async giveBack(delayMs: number): Promise<void> {
    await this.record('release', (spending) => this.dependencies.ledger.release(this.claimed.hold, delayMs, spending));
  }

  private warnOfHandler(afterMs: number): void {
    if (this.promises.keepsHandler || this.isWorkerStopped()) return;
    const runs = this.whatRuns();
    const place = runs === undefined ? '' : ` in ${runs}`;
    logger.warn(attemptMessages.stillRuns(loggedId(this.claimed.turn.id), place, afterMs / 1000));
  }

  /** Stops the handler, unless it has ended or was stopped before. */
  private askToStop(stop: Stop): void {
    if (!this.stop.ask(stop)) return;
    if (stop.why === 'cancelled') this.outcomeAtCancel = this.partialOutcome?.('cancelled');
    this.stop.interrupt(new TurnStoppedError(stop.why));
  }

  /** Ends the attempt. Connections that the handler has left open keep `running` alive, so it is emptied. */
  private end(): void {
    this.stop.end();
    this.running.turnId = '';
    this.running.ledger = null;
    this.running.waitingSessions = [];
    this.running.waits = null;
    this.running.beforeChildTurn = null;
    this.waits.close();
    this.promises.end();
  }
}

/** Returns whether the messages are a chat's answer: the parts of one UI message, and the results of its tool calls. */
function isAnswer([answer, ...results]: readonly NewMessage[]): boolean {
  const isParts = answer?.role === 'assistant' && Array.isArray(answer.content);
  return isParts && results.every(({ role }) => role === 'tool');
}
