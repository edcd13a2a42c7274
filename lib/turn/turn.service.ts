import { type Observable } from 'rxjs';
import { checkInput } from '../common/check-input.js';
import { assertId, assertName } from '../common/ids.js';
import { stringifyWithin, toJson, toJsonFields } from '../common/json.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { sha256 } from '../common/sha-256.js';
import { SessionNotFoundError, SessionStateError } from '../ledger/session.errors.js';
import { observeSubmit } from './observe-turn.js';
import { type Awaits } from './handler-waits.js';
import { LaneService } from './lane.service.js';
import { handOut, waitForTurn, waitingSessions } from './running-turn.js';
import {
  ShuttingDownError,
  TurnNotFoundError,
  TurnReentryError,
  TurnWaitTimeoutError,
  UnknownOrchestratorError,
} from '../ledger/turn.errors.js';
import {
  ExecuteOptions,
  SubmitOptions,
  toTurnInput,
  type TurnInputLike,
  TurnListQuery,
  toTurnRequest,
  WaitOptions,
} from './turn.inputs.js';
import { type TurnEvent, type TurnEventMessage, toOffset } from '../ledger/turn-event.js';
import { type EventResponse } from './turn-event-pace.js';
import { type EventSources, TurnEventReaders } from './turn-event-readers.js';
import { type FailureReader, toTurnResult, type TurnResult } from './turn-result.js';
import { type TurnRuntime } from './turn-runtime.js';
import { type AcceptedTurn, type AcceptTurn } from '../ledger/turn.store.js';
import { isTerminal, TURN_STATUSES, type Turn, type TurnCommand, type TurnInput } from '../ledger/turn.js';
import { TurnStream } from './turn-stream.js';
import { TurnWaiter } from './turn-waiter.js';
import { type ReadyVisit, type TurnWorker } from './turn-worker.service.js';

const MAX_ATTRIBUTES_BYTES = 16_384;

/** How many of the turns that ended last in a session are searched for one that lost its worker. */
const RECENTLY_ENDED = 20;

/** Of a turn that is a command. */
const NOTHING_SAID: TurnInput = { text: '' };

/** A command, and how it is submitted. */
export interface CommandOptions extends Pick<
  ExecuteOptions,
  'sessionId' | 'force' | 'idempotencyKey' | 'whenBusy' | 'timeoutMs'
> {
  /** What to do with the session. */
  readonly command: TurnCommand;
  /** The turn's, so that the same command sent twice is carried out once. Default: minted. */
  readonly id?: string;
}

type Accepting = SubmitOptions & Partial<Pick<CommandOptions, 'command' | 'id'>>;

/** The log while events are switched off. */
const NO_EVENTS = { read: () => Promise.resolve([]), last: () => Promise.resolve(0) };

/**
 * The turns of every session: submit them, wait for them, look at them, cancel them. Injectable.
 *
 * Input is checked before anything is stored (InvalidInputError, StateSerializationError, TooLargeError).
 */
export class TurnService {
  /** The lanes in which turns wait: look at them, pause and drain them. */
  readonly lanes: LaneService;
  private readonly waiter: TurnWaiter;
  private readonly readers: TurnEventReaders;
  private readonly readFailure: FailureReader;
  private closing = false;

  /** @hidden */
  constructor(
    private readonly runtime: TurnRuntime,
    private readonly worker: TurnWorker,
  ) {
    this.lanes = new LaneService(runtime);
    const { ledger, hints, events, stored, settings, runner, telemetry } = runtime;
    this.readFailure = (turn) => runner.readFailure(turn);
    this.waiter = new TurnWaiter(ledger, hints, (turnId) => worker.runs(turnId));
    worker.onAttemptEnd((turnId, turn) => this.waiter.hear(turnId, turn));
    const log = settings.events ? events : NO_EVENTS;
    const isSessionOver: EventSources['isSessionOver'] = async ({ sessionId }) =>
      (await runtime.sessions.get(sessionId))?.state === 'expired';
    const { maxSessionLifetimeMs } = settings;
    const sessionEndsAt: EventSources['sessionEndsAt'] = async ({ sessionId }) => {
      const session = maxSessionLifetimeMs === undefined ? null : await runtime.sessions.get(sessionId);
      return session ? Date.parse(session.createdAt) + (maxSessionLifetimeMs ?? Infinity) : Infinity;
    };
    const { readFailure } = this;
    this.readers = new TurnEventReaders({
      ledger,
      hints,
      stored,
      log,
      telemetry,
      readFailure,
      isSessionOver,
      sessionEndsAt,
    });
  }

  /**
   * Puts a turn at the end of its session's lane and returns at once.
   * @param orchestrator the name of the one that handles it
   * @throws UnknownOrchestratorError, SessionNotFoundError, SessionStateError, IdempotencyConflictError,
   * LaneDrainingError, SessionBusyError, LaneFullError, ShuttingDownError
   */
  submit(orchestrator: string, input: TurnInputLike, options: SubmitOptions): Promise<Turn> {
    return handOut('turns.submit', async () =>
      this.accept(orchestrator, input, checkInput(SubmitOptions, options, 'options'), []),
    );
  }

  /**
   * Submits a turn and waits for its result, whichever process runs it (TRN-10).
   * @throws as `submit`, and TurnFailedError, TurnCancelledError, TurnSupersededError by the turn's end,
   * TurnWaitTimeoutError after `timeoutMs`; inside a handler TurnReentryError for a turn of the same session, and
   * TooManyWaitingParentsError
   */
  execute(orchestrator: string, input: TurnInputLike, options: ExecuteOptions): Promise<TurnResult> {
    return handOut('turns.execute', async () => {
      const { timeoutMs, ...submit } = checkInput(ExecuteOptions, options, 'options');
      return this.perform(orchestrator, input, submit, timeoutMs);
    });
  }

  /**
   * Submits a turn whose events and result are waited for, whichever process runs it. Never throws: what `execute` throws,
   * the stream's promises reject with.
   */
  stream(orchestrator: string, input: TurnInputLike, options: SubmitOptions): TurnStream {
    let result!: Promise<TurnResult>;
    const turn = new Promise<Turn>((resolve, reject) => {
      result = waitForTurn(async (awaits) => {
        const checked = checkInput(SubmitOptions, options, 'options');
        const accepted = await this.acceptAwaited(orchestrator, input, checked, awaits);
        resolve(accepted);
        return this.resultOf(accepted);
      });
      result.catch(reject);
    });
    return new TurnStream(turn, result, (turnId) => this.readEvents(turnId));
  }

  /**
   * Waits for the turn of a session that was begun and is not over: one that a crash, a stop or a failure interrupted, or that
   * runs; its lane is offered to the workers at once. Nothing is begun twice: a live worker's turn is only waited for (BOT-31).
   * When none is open and the orchestrator's latest turn had lost a worker, it is over by now: returns its result (FIX-14).
   * @returns `null` when there is none: the open turn waits for a signal; or no turn of this orchestrator is open, and its
   * latest one, among the last 20 that ended in the session, lost no worker
   * @throws InvalidInputError; otherwise as `execute`
   */
  resume(orchestrator: string, sessionId: string, options: WaitOptions = {}): Promise<TurnResult | null> {
    return handOut('turns.resume', async () => {
      const wait = checkInput(WaitOptions, options, 'options');
      const { head } = await this.lanes.get(sessionId);
      if (head?.orchestrator !== orchestrator || head.startedAt === undefined)
        return this.recovered(orchestrator, sessionId);
      if (head.status === 'waiting') return null;
      await this.runtime.bell.ring(sessionId);
      return this.result(head.id, { ...wait });
    });
  }

  /**
   * Submits a command and waits until it is carried out: what `undo` and `fork` of a handle are made of.
   * @throws as `execute`
   */
  async command(orchestrator: string, { timeoutMs, ...options }: CommandOptions): Promise<TurnResult> {
    return this.perform(orchestrator, NOTHING_SAID, options, timeoutMs);
  }

  /** Waits for a turn's end; resolves at once when it is over. @throws TurnNotFoundError; otherwise as `execute` */
  result(turnId: string, options: WaitOptions = {}): Promise<TurnResult> {
    return handOut('turns.result', async () => {
      const { timeoutMs } = checkInput(WaitOptions, options, 'options');
      const turn = await this.runtime.ledger.get(checkedId(turnId));
      if (!turn) throw new TurnNotFoundError(turnId);
      if (isTerminal(turn.status)) return this.resultOf(turn);
      assertNoReentry(turn.sessionId);
      return waitForTurn(async (awaits) => {
        await awaits?.({ sessionId: turn.sessionId, turnId });
        return this.resultOf(turn, timeoutMs);
      });
    });
  }

  /** The turn in any status, or `null`. */
  async get(turnId: string): Promise<Turn | null> {
    return this.runtime.ledger.get(checkedId(turnId));
  }

  /** Turns of a session in the order of its lane. */
  async list(query: TurnListQuery): Promise<Turn[]> {
    const checked = checkInput(TurnListQuery, query, 'query');
    assertId(checked.sessionId, 'query.sessionId');
    return this.runtime.ledger.list({ ...checked });
  }

  /**
   * Cancels a turn: at once when it is queued or waiting; a running one is asked to stop through its AbortSignal and
   * settles as cancelled soon after. Without effect on a turn that is over.
   * @returns the turn as it stands now
   * @throws TurnNotFoundError
   */
  async cancel(turnId: string): Promise<Turn> {
    const { turn, ring } = await this.runtime.ledger.cancel(checkedId(turnId), 'cancel');
    if (ring) await this.runtime.bell.ring(turn.sessionId);
    return turn;
  }

  /**
   * Gives a turn what it waits for, or will wait for: `turn.waitFor(name)` then resolves with the payload, in whichever
   * process (TRN-13). The first payload of a name counts.
   * @returns the turn as it stands now, and whether this payload counts
   * @throws TurnNotFoundError; TurnSettledError when the turn is over
   */
  async signal(turnId: string, name: string, payload: unknown = null): Promise<{ turn: Turn; accepted: boolean }> {
    assertName(name, 'signal name');
    const value = toJson(payload, 'The payload');
    stringifyWithin(value, this.runtime.settings.maxInputBytes, 'The payload');
    const { turn, accepted, ring } = await this.runtime.ledger.signal(checkedId(turnId), name, value);
    if (ring) await this.runtime.bell.ring(turn.sessionId);
    return { turn, accepted };
  }

  /**
   * What a turn's handler emits, from whichever process, and at last how the turn ended: for an `@Sse()` handler to return
   * (TRN-32). It completes without `settled` when this process stops, the turn is deleted, or its session is revoked while the
   * turn runs.
   *
   * The stream pauses while its client does not read, so that at most 1 MiB waits for it.
   * @param options `after`: the client's Last-Event-ID header as it comes, or an offset; left out: from the first event.
   * `response`: the response that the stream is written to, `@Res({ passthrough: true })`. Left out, the stream follows the messages
   * that Nest writes, which it cannot do for messages that the handler copies or filters
   * @throws TurnNotFoundError; InvalidInputError; TurnEventsEndedError (204) for a client that has had `settled`
   */
  async events(
    turnId: string,
    options: {
      readonly after?: string | number | undefined;
      readonly response?: EventResponse | { readonly raw: EventResponse } | undefined;
    } = {},
  ): Promise<Observable<TurnEventMessage>> {
    const { after, response } = options;
    return this.readers.messages(checkedId(turnId), toOffset(after), response);
  }

  /**
   * The same without HTTP, as fast as it is asked for (TRN-33). Aborting the signal ends it.
   * @throws InvalidInputError; the iteration TurnNotFoundError
   */
  readEvents(
    turnId: string,
    options: { readonly after?: string | number | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): AsyncIterable<TurnEvent> {
    const { after, signal = new AbortController().signal } = options;
    return this.readers.events(checkedId(turnId), toOffset(after), signal);
  }

  /** Takes no more turns; those that wait for one are told by `close`. */
  stopIntake(): void {
    this.closing = true;
  }

  /** Ends the waiting of every caller with ShuttingDownError, and every stream of events. */
  async close(): Promise<void> {
    this.runtime.contexts.close();
    await Promise.all([this.waiter.close(), this.readers.close()]);
  }

  private perform(
    orchestrator: string,
    input: TurnInputLike,
    options: Accepting,
    timeoutMs: number | undefined,
  ): Promise<TurnResult> {
    return waitForTurn(async (awaits) => {
      const turn = await this.acceptAwaited(orchestrator, input, options, awaits);
      return this.resultOf(turn, timeoutMs);
    });
  }

  private async acceptAwaited(
    orchestrator: string,
    input: TurnInputLike,
    options: Accepting,
    awaits: Awaits | undefined,
  ): Promise<Turn> {
    assertNoReentry(options.sessionId);
    return this.accept(orchestrator, input, options, waitingSessions(), { awaits });
  }

  /** The result of the orchestrator's latest turn, if that turn lost a worker. */
  private async recovered(orchestrator: string, sessionId: string): Promise<TurnResult | null> {
    const status = TURN_STATUSES.filter(isTerminal);
    const ended = await this.runtime.ledger.list({ sessionId, status, order: 'desc', limit: RECENTLY_ENDED });
    const latest = ended.find((turn) => turn.orchestrator === orchestrator && turn.startedAt !== undefined);
    return latest && latest.lost > 0 ? this.resultOf(latest) : null;
  }

  private async resultOf(turn: Turn, timeoutMs?: number): Promise<TurnResult> {
    const settled = await this.waiter.settled(turn, timeoutMs);
    if (!settled) throw new TurnWaitTimeoutError(turn.sessionId, turn.id, timeoutMs ?? 0);
    // It may have run in another process.
    this.runtime.contexts.drop(turn.id);
    return toTurnResult(settled, this.readFailure);
  }

  private async accept(
    orchestrator: string,
    input: TurnInputLike,
    options: Accepting,
    callers: readonly string[],
    waiting?: { readonly awaits: Awaits | undefined },
  ): Promise<Turn> {
    if (this.closing) throw new ShuttingDownError();
    const { sessionId, signal } = options;
    assertId(sessionId, 'sessionId');
    const known = this.runtime.runner.find(orchestrator);
    if (!known) throw new UnknownOrchestratorError(orchestrator, this.runtime.runner.names());
    const turnInput = options.command ? NOTHING_SAID : toTurnInput(input, this.runtime.settings.maxInputBytes);
    signal?.throwIfAborted();

    // Copied before anything is awaited: what the caller changes after the call does not reach the turn.
    const request = this.toAcceptRequest(orchestrator, known.version, turnInput, options, callers);
    // A turn that cannot end before the handler that waits for it is not accepted.
    if (waiting?.awaits) await waiting.awaits({ sessionId, turnId: request.id });
    // Before accept: a worker of this process may claim the turn before accept has returned here.
    this.runtime.contexts.keep(request.id, options);
    if (waiting) this.waiter.expect(request.id);
    const drop = (): void => {
      this.runtime.contexts.drop(request.id);
      this.waiter.forget(request.id);
    };
    const { turn, ring, claimed, visit } = await this.acceptChecked(request).catch((error: unknown) => {
      drop();
      throw error;
    });
    if (turn.id !== request.id) {
      drop();
      if (waiting?.awaits) await waiting.awaits({ sessionId, turnId: turn.id });
      // The same caller again, perhaps after a crash: attempts that are still to come have what it gives now.
      if (!isTerminal(turn.status)) this.runtime.contexts.keep(turn.id, options);
    }
    if (visit && (claimed || ring)) visit.begin(claimed);
    else {
      visit?.leave();
      if (ring) await this.runtime.bell.ring(sessionId);
    }
    if (signal) this.cancelOnAbort(turn, signal);
    return turn;
  }

  private toAcceptRequest(
    orchestrator: string,
    version: string,
    input: TurnInput,
    options: Accepting,
    callers: readonly string[],
  ): AcceptTurn {
    const {
      generateId,
      idempotencyTtlMs,
      logsConversations,
      maxInputBytes,
      maxQueuedPerSession,
      maxSessionLifetimeMs,
    } = this.runtime.settings;
    const { sessionId, idempotencyKey: key, whenBusy = this.runtime.settings.whenBusy } = options;
    const attributes = toJsonFields(options.attributes ?? {}, 'attributes');
    stringifyWithin(attributes, MAX_ATTRIBUTES_BYTES, 'The attributes');
    return {
      id: options.id ?? generateId(),
      sessionId,
      orchestrator,
      version,
      request: toTurnRequest(
        input,
        logsConversations ? options : { ...options, unlogged: true },
        callers,
        maxInputBytes,
      ),
      attributes,
      whenBusy,
      maxQueued: maxQueuedPerSession,
      ...(key === undefined
        ? {}
        : { idempotency: { key, hash: hashOf(orchestrator, input), ttlMs: idempotencyTtlMs } }),
      ...(maxSessionLifetimeMs === undefined ? {} : { maxSessionLifetimeMs }),
      ...(this.runtime.foreignSessions ? { foreignSession: true } : {}),
    };
  }

  /** @returns the visit that was kept ready for the turn as well */
  private async acceptChecked(request: AcceptTurn): Promise<AcceptedTurn & { readonly visit: ReadyVisit | null }> {
    await this.assertForeignSession(request.sessionId);
    const { telemetry, ledger } = this.runtime;
    const visit = this.worker.prepare(request.sessionId, request.id);
    try {
      const brought = visit ? { claim: visit.claim, ...request } : request;
      return { visit, ...(await observeSubmit(telemetry, brought, (observed) => ledger.accept(observed))) };
    } catch (error) {
      if (error instanceof StoreUnavailableError && error.maybeApplied) visit?.findOut();
      else visit?.leave();
      throw error;
    }
  }

  private async assertForeignSession(sessionId: string): Promise<void> {
    if (!this.runtime.foreignSessions) return;
    const session = await this.runtime.sessions.get(sessionId);
    if (!session) throw new SessionNotFoundError(sessionId);
    if (session.state === 'expired') throw new SessionStateError(sessionId, 'expired', 'accept a turn');
  }

  private cancelOnAbort(turn: Turn, signal: AbortSignal): void {
    if (isTerminal(turn.status)) return;
    const cancel = (): void => void this.cancel(turn.id).catch(() => undefined);
    signal.addEventListener('abort', cancel, { once: true });
    if (signal.aborted) cancel();
    // A signal that outlives its turns must not collect their listeners.
    void this.waiter
      .settled(turn)
      .catch(() => undefined)
      .finally(() => signal.removeEventListener('abort', cancel));
  }
}

function assertNoReentry(sessionId: string): void {
  if (waitingSessions().includes(sessionId)) throw new TurnReentryError(sessionId);
}

function checkedId(turnId: string): string {
  assertId(turnId, 'turnId');
  return turnId;
}

/** Tells whether an idempotency key comes back with the same message. */
function hashOf(orchestrator: string, input: TurnInput): string {
  return sha256(JSON.stringify([orchestrator, input]));
}
