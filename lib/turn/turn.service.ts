import { Logger } from '@nestjs/common';
import { type Observable } from 'rxjs';
import { checkInput } from '../common/check-input.js';
import { traceOf } from '../common/error-trace.js';
import { assertId, assertName } from '../common/ids.js';
import { stringifyWithin, toJson, toJsonFields } from '../common/json.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { sha256 } from '../common/digests.js';
import { loggedId } from '../common/log-details.js';
import { onAbort } from '../common/on-abort.js';
import { repeatWhileUnavailable } from '../common/while-unavailable.js';
import { type NewMessage } from '../ledger/conversation.store.js';
import { type MessageDraft } from '../ledger/message.js';
import { SessionNotFoundError, SessionStateError } from '../ledger/session.errors.js';
import { isSameSession } from '../ledger/session.lifecycle.js';
import { observeSubmit } from './observe-turn.js';
import { LaneService } from './lane.service.js';
import {
  assertNoReentry,
  beforeChildTurn,
  handOut,
  knownSession,
  waitForTurn,
  type WaitingCaller,
} from './running-turn.js';
import { ShuttingDownError, TurnNotFoundError, TurnWaitTimeoutError } from '../ledger/turn.errors.js';
import {
  CancelOptions,
  ExecuteOptions,
  SubmitOptions,
  toKept,
  toTurnInput,
  type TurnInputLike,
  TurnListQuery,
  toTurnRequest,
  WaitOptions,
} from './turn.inputs.js';
import { type TurnEvent, type TurnEventMessage, toOffset } from '../ledger/turn-event.js';
import { type EventResponse } from './turn-event-pace.js';
import { type EventSources, TurnEventReaders } from './turn-event-readers.js';
import { type FailureReader, toTurnResult } from './to-turn-result.js';
import { type TurnResult } from './turn-result.js';
import { unknownOrchestrator } from './turn-runner.js';
import { type TurnDependencies } from './turn-dependencies.js';
import { type AcceptedTurn, type AcceptTurn } from '../ledger/turn.store.js';
import { isTerminal, TURN_STATUSES, type Turn, type TurnCommand, type TurnInput } from '../ledger/turn.js';
import { isAttemptedAgain } from './turn-stopped.error.js';
import { TurnStream } from './turn-stream.js';
import { TurnWaiter } from './turn-waiter.js';
import { type ReadyVisit, type TurnWorker } from './turn-worker.service.js';

const MAX_ATTRIBUTES_BYTES = 16_384;

/** The number of recently ended turns of a session that are searched for one that lost its worker. */
const RECENTLY_ENDED = 20;

/** The input of a turn that is a command. */
const EMPTY_INPUT: TurnInput = { text: '' };

/** A command with its submit options. */
export interface CommandOptions extends Pick<
  ExecuteOptions,
  'sessionId' | 'session' | 'force' | 'idempotencyKey' | 'whenBusy' | 'timeoutMs'
> {
  /** The operation on the session. */
  readonly command: TurnCommand;
  /** The turn's id. A command that is sent twice with the same id runs once. Default: generated. */
  readonly id?: string;
}

type Accepting = SubmitOptions & Partial<Pick<CommandOptions, 'command' | 'id'>>;

/** A turn to accept. */
interface Submission {
  readonly request: AcceptTurn;
  readonly options: Accepting;
}

/** An accepted turn, and the visit that this process has reserved a slot for. */
type Accepted = AcceptedTurn & { readonly visit: ReadyVisit | null };

/** The log if events are disabled. */
const NO_EVENTS = { read: () => Promise.resolve([]), last: () => Promise.resolve(0) };

/**
 * Submits, awaits, lists and cancels the turns of all sessions. Injectable.
 *
 * Input is validated before anything is stored (InvalidInputError, StateSerializationError, TooLargeError).
 */
export class TurnService {
  /** The lanes in which turns wait: inspect, pause and drain them. */
  readonly lanes: LaneService;
  private readonly logger = new Logger(TurnService.name);
  private readonly waiter: TurnWaiter;
  private readonly readers: TurnEventReaders;
  private readonly readFailure: FailureReader;
  private closing = false;

  /** @hidden */
  constructor(
    private readonly dependencies: TurnDependencies,
    private readonly worker: TurnWorker,
  ) {
    this.lanes = new LaneService(dependencies);
    const { ledger, changes, events, localEvents, settings, runner, telemetry } = dependencies;
    this.readFailure = (turn) => runner.readFailure(turn);
    this.waiter = new TurnWaiter(ledger, changes, (turnId) => worker.runs(turnId));
    worker.onAttemptEnd((turnId, turn) => this.waiter.onChange(turnId, turn));
    const log = settings.events ? events : NO_EVENTS;
    const isSessionOver: EventSources['isSessionOver'] = async ({ sessionId }) =>
      (await dependencies.sessions.get(sessionId))?.state === 'expired';
    const { maxSessionLifetimeMs } = settings;
    const sessionEndsAt: EventSources['sessionEndsAt'] = async ({ sessionId }) => {
      const session = maxSessionLifetimeMs === undefined ? null : await dependencies.sessions.get(sessionId);
      return session ? Date.parse(session.createdAt) + (maxSessionLifetimeMs ?? Infinity) : Infinity;
    };
    const { readFailure } = this;
    this.readers = new TurnEventReaders({
      ledger,
      changes,
      localEvents,
      log,
      telemetry,
      readFailure,
      isSessionOver,
      sessionEndsAt,
    });
  }

  /**
   * Adds a turn to the end of its session's lane and returns without waiting for it.
   * @param orchestrator the name of the orchestrator that handles it
   * @throws SessionsConfigurationError (`UNKNOWN_ORCHESTRATOR`), SessionNotFoundError, SessionStateError, IdempotencyConflictError,
   * LaneDrainingError, SessionBusyError, LaneFullError, ShuttingDownError; SessionsConfigurationError before
   * `onModuleInit` (FIX-71)
   */
  submit(orchestrator: string, input: TurnInputLike, options: SubmitOptions): Promise<Turn> {
    return handOut('turns.submit', async () =>
      this.accept(this.toSubmission(orchestrator, input, checkInput(SubmitOptions, options, 'options'))),
    );
  }

  /**
   * Submits a turn and waits for its result, whichever process runs it (TRN-10).
   * @throws as `submit`, and TurnFailedError, TurnCancelledError, TurnSupersededError by the turn's end,
   * TurnWaitTimeoutError after `timeoutMs`; SessionsConfigurationError before `onApplicationBootstrap`, unless the role
   * of this process is `submit` (FIX-71); inside a handler TurnReentryError for a turn of the same session, and
   * ProcessLimitError
   */
  execute(orchestrator: string, input: TurnInputLike, options: ExecuteOptions): Promise<TurnResult> {
    return handOut('turns.execute', async () => {
      const { timeoutMs, ...submit } = checkInput(ExecuteOptions, options, 'options');
      return this.perform(orchestrator, input, submit, timeoutMs);
    });
  }

  /**
   * Submits a turn and returns a stream of its events and its result, whichever process runs it. Never throws: the
   * stream's promises reject with the errors of `execute`.
   */
  stream(orchestrator: string, input: TurnInputLike, options: SubmitOptions): TurnStream {
    let result!: Promise<TurnResult>;
    const turn = new Promise<Turn>((resolve, reject) => {
      const perform = async (): Promise<TurnResult> =>
        this.perform(orchestrator, input, checkInput(SubmitOptions, options, 'options'), undefined, resolve);
      result = perform();
      result.catch(reject);
    });
    const hand = <T>(promise: Promise<T>): Promise<T> => handOut('turns.stream', () => promise);
    return new TurnStream(hand(turn), hand(result), (turnId) => this.readEvents(turnId));
  }

  /**
   * Waits for the session's started but unfinished turn: one that was interrupted by a crash, a stop or a failure, or
   * that is running. Its lane is offered to the workers at once. A turn of a live worker is only awaited, never started
   * twice (BOT-31). A turn that has not begun is not resumed: workers start it in its order. If no turn of the
   * orchestrator has begun and is open, and its latest turn had lost a worker, returns the result of that turn (FIX-14).
   * @returns `null` if no turn was interrupted. Either the open turn waits for a signal, or no turn of this
   * orchestrator has begun and is open, and its latest turn, among the last 20 that ended in the session, lost no worker
   * @throws InvalidInputError; otherwise as `execute`
   */
  resume(orchestrator: string, sessionId: string, options: WaitOptions = {}): Promise<TurnResult | null> {
    return handOut('turns.resume', async () => {
      const wait = checkInput(WaitOptions, options, 'options');
      const { head } = await this.lanes.get(sessionId);
      if (head?.orchestrator !== orchestrator || head.startedAt === undefined)
        return this.recovered(orchestrator, sessionId);
      if (head.status === 'waiting') return null;
      await this.dependencies.notifier.notify(sessionId);
      return this.result(head.id, { ...wait });
    });
  }

  /**
   * Submits a command and waits until it has run. `undo` and `fork` of a handle use it.
   * @throws as `execute`
   */
  async command(orchestrator: string, { timeoutMs, ...options }: CommandOptions): Promise<TurnResult> {
    return this.perform(orchestrator, EMPTY_INPUT, options, timeoutMs);
  }

  /**
   * Waits for a turn's result; resolves at once if the turn has ended. @throws TurnNotFoundError; otherwise as
   * `execute`
   */
  result(turnId: string, options: WaitOptions = {}): Promise<TurnResult> {
    return handOut('turns.result', async () => {
      const { timeoutMs } = checkInput(WaitOptions, options, 'options');
      const turn = await this.dependencies.ledger.get(checkedId(turnId));
      if (!turn) throw new TurnNotFoundError(turnId);
      if (isTerminal(turn.status)) return this.resultOf(turn);
      this.dependencies.start.assertWait(`Turn ${turnId}`);
      return waitForTurn(this.dependencies.ledger, async (caller) => {
        assertNoReentry(turn.sessionId, caller);
        await caller.awaits?.({ sessionId: turn.sessionId, turnId });
        return this.resultOf(turn, timeoutMs);
      });
    });
  }

  /** Returns the turn in any status, or `null`. */
  async get(turnId: string): Promise<Turn | null> {
    return this.dependencies.ledger.get(checkedId(turnId));
  }

  /** Lists the turns of a session in the order of its lane. */
  async list(query: TurnListQuery): Promise<Turn[]> {
    const checked = checkInput(TurnListQuery, query, 'query');
    assertId(checked.sessionId, 'query.sessionId');
    return this.dependencies.ledger.list({ ...checked });
  }

  /**
   * Cancels a turn. A queued or waiting turn is cancelled at once. A running one is asked to stop through its
   * AbortSignal and settles as cancelled soon after, also when its worker is gone. Has no effect on a turn that has
   * ended.
   * @param options `keep`: what stays of the turn in the conversation (AIS-07), see CancelOptions. Default: nothing
   * @returns the turn in its current state
   * @throws TurnNotFoundError; InvalidInputError, StateSerializationError, TooLargeError for `keep`
   */
  async cancel(turnId: string, options: CancelOptions = {}): Promise<Turn> {
    const { maxReplyBytes } = this.dependencies.settings;
    const { keep } = checkInput(CancelOptions, options, 'options');
    return this.cancelWith(turnId, toKept(checkedId(turnId), keep, maxReplyBytes));
  }

  /**
   * Cancels a turn, and keeps the answer that the clients of a chat have seen, whatever its size (AIS-34). The limits of
   * the turn's events and of its input bound it.
   * @internal
   */
  async interrupt(turnId: string, answer: MessageDraft): Promise<Turn> {
    return this.cancelWith(turnId, toKept(checkedId(turnId), [answer], Infinity));
  }

  /**
   * Sends a signal to a turn that waits for it, or will wait for it. `turn.waitFor(name)` then resolves with the
   * payload, in any process (TRN-13). The first payload of a name counts.
   * @returns the turn in its current state, and whether this payload counts
   * @throws TurnNotFoundError; TurnSettledError if the turn has ended
   */
  async signal(turnId: string, name: string, payload: unknown = null): Promise<{ turn: Turn; accepted: boolean }> {
    assertName(name, 'signal name');
    const value = toJson(payload, 'The payload');
    stringifyWithin(value, this.dependencies.settings.maxInputBytes, 'The payload');
    const { turn, accepted, notify } = await this.dependencies.ledger.signal(checkedId(turnId), name, value);
    if (notify) await this.dependencies.notifier.notify(turn.sessionId);
    return { turn, accepted };
  }

  /**
   * Returns the events that a turn's handler emits, from any process, and finally how the turn ended. Return it from an
   * `@Sse()` handler (TRN-32). It completes without `settled` when this process stops, the turn is deleted, or its
   * session is revoked while the turn runs.
   *
   * The stream pauses while its client does not read, so that at most 1 MiB waits for it. In a handler, it waits for the
   * turn as `readEvents` does.
   * @param options `after`: the client's Last-Event-ID header, unchanged, or an offset. Default: from the first event.
   * `response`: the response that the stream is written to, `@Res({ passthrough: true })`. If absent, the stream
   * follows the messages that Nest writes, which does not work if the handler copies or filters messages
   * @throws TurnNotFoundError; InvalidInputError; SessionsConfigurationError before the application has started
   * (FIX-71); NothingToStreamError (204) if the client has already received `settled`
   */
  async events(
    turnId: string,
    options: {
      readonly after?: string | number | undefined;
      readonly response?: EventResponse | { readonly raw: EventResponse } | undefined;
    } = {},
  ): Promise<Observable<TurnEventMessage>> {
    const { after, response } = options;
    this.dependencies.start.assertWait(`The end of turn ${turnId}`);
    const messages = await this.readers.messages(checkedId(turnId), toOffset(after), response);
    // Fastify's reply contains Node's response.
    if (response) this.dependencies.responses.add('raw' in response ? response.raw : response);
    return messages;
  }

  /**
   * Returns the same events without HTTP, as fast as they are consumed (TRN-33). Aborting the signal ends the
   * iteration. In a handler, reading the events of another turn that is open waits for that turn, from the first event
   * that is not stored yet until the iteration ends (FIX-86).
   * @throws InvalidInputError; SessionsConfigurationError before the application has started (FIX-71); the iteration
   * TurnNotFoundError, and in a handler TurnReentryError and ProcessLimitError
   */
  readEvents(
    turnId: string,
    options: { readonly after?: string | number | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): AsyncIterable<TurnEvent> {
    const { after, signal = new AbortController().signal } = options;
    this.dependencies.start.assertWait(`The end of turn ${turnId}`);
    return this.readers.events(checkedId(turnId), toOffset(after), signal);
  }

  /** Rejects new turns. `close` notifies callers that are waiting. */
  stopIntake(): void {
    this.closing = true;
  }

  /** Rejects all waits with ShuttingDownError, and ends every stream of events, and of answers. */
  async close(): Promise<void> {
    this.dependencies.contexts.close();
    await Promise.all([this.waiter.close(), this.readers.close()]);
    this.dependencies.responses.close();
  }

  /** @param onAccepted receives the turn before its result is known */
  private async perform(
    orchestrator: string,
    input: TurnInputLike,
    options: Accepting,
    timeoutMs: number | undefined,
    onAccepted: (turn: Turn) => void = () => undefined,
  ): Promise<TurnResult> {
    const submission = this.toSubmission(orchestrator, input, options);
    return waitForTurn(this.dependencies.ledger, async (caller) => {
      const turn = await this.acceptAwaited(submission, caller);
      onAccepted(turn);
      return this.resultOf(turn, timeoutMs);
    });
  }

  /** Accepts a turn that the caller waits for. */
  private async acceptAwaited({ request, options }: Submission, caller: WaitingCaller): Promise<Turn> {
    this.dependencies.start.assertWait(`A turn of ${request.orchestrator}`);
    assertNoReentry(request.sessionId, caller);
    const { sessions: callers } = caller;
    const called = callers.length === 0 ? request : { ...request, request: { ...request.request, callers } };
    return this.accept({ request: called, options }, caller);
  }

  /** Returns the result of the orchestrator's latest turn, if that turn lost a worker. */
  private async recovered(orchestrator: string, sessionId: string): Promise<TurnResult | null> {
    const status = TURN_STATUSES.filter(isTerminal);
    const ended = await this.dependencies.ledger.list({ sessionId, status, order: 'desc', limit: RECENTLY_ENDED });
    const latest = ended.find((turn) => turn.orchestrator === orchestrator && turn.startedAt !== undefined);
    return latest && latest.lost > 0 ? this.resultOf(latest) : null;
  }

  private async resultOf(turn: Turn, timeoutMs?: number): Promise<TurnResult> {
    const settled = await this.waiter.settled(turn, timeoutMs);
    if (!settled) throw new TurnWaitTimeoutError(turn.sessionId, turn.id, timeoutMs ?? 0);
    // The turn may have run in another process.
    this.dependencies.contexts.drop(turn.id);
    return toTurnResult(settled, this.readFailure);
  }

  /** @param waiting the caller, if it waits for the turn; its `awaits` checks that this closes no cycle */
  private async accept({ request, options }: Submission, waiting?: WaitingCaller): Promise<Turn> {
    const { sessionId, signal } = options;
    const { contexts } = this.dependencies;
    if (options.replaces !== undefined) await this.assertReplaceable(options.replaces, request);
    // Rejects a turn that cannot end before the handler that waits for it.
    const awaiting = waiting?.awaits?.({ sessionId, turnId: request.id });
    const deciding = beforeChildTurn();
    if (awaiting || deciding) await Promise.all([awaiting, deciding]);
    // Before accept: a worker of this process may claim the turn before accept has returned here.
    contexts.keep(request.id, options);
    if (waiting) this.waiter.expect(request.id);
    const drop = (): void => {
      contexts.drop(request.id);
      this.waiter.forget(request.id);
    };
    const accepted = await this.acceptChecked(request).catch((error: unknown) => {
      drop();
      throw error;
    });
    const { turn } = accepted;
    try {
      if (turn.id !== request.id) {
        drop();
        if (waiting?.awaits) await waiting.awaits({ sessionId, turnId: turn.id });
        // The caller repeats the call, perhaps after a crash: later attempts use the values that it passes now.
        if (!isTerminal(turn.status)) contexts.keep(turn.id, options);
      }
    } finally {
      // Also if the wait was refused: the visit holds a slot, and may have claimed the turn.
      await this.startVisit(accepted);
    }
    if (signal) this.cancelOnAbort(turn, signal);
    return turn;
  }

  /** Runs the turn in the slot that was reserved for it, or notifies a worker. */
  private async startVisit({ turn, notify, claimed, visit }: Accepted): Promise<void> {
    if (visit && (claimed || notify)) return visit.begin(claimed);
    visit?.leave();
    if (notify) await this.dependencies.notifier.notify(turn.sessionId);
  }

  /**
   * Validates and copies what the caller submits. Call it before any await, so that later changes by the caller do not
   * affect the turn. @throws ShuttingDownError, InvalidInputError, SessionsConfigurationError, TooLargeError
   */
  private toSubmission(orchestrator: string, input: TurnInputLike, options: Accepting): Submission {
    if (this.closing) throw new ShuttingDownError();
    return { request: this.toAcceptRequest(orchestrator, input, options), options };
  }

  private toAcceptRequest(orchestrator: string, input: TurnInputLike, options: Accepting): AcceptTurn {
    const { settings, runner, foreignSessions, ledger, sessions } = this.dependencies;
    const { generateId, idempotencyTtlMs, logsConversations, maxInputBytes, maxSessionLifetimeMs } = settings;
    const { sessionId, idempotencyKey: key, whenBusy = settings.whenBusy } = options;
    assertId(sessionId, 'sessionId');
    const known = runner.find(orchestrator);
    if (!known) this.dependencies.start.assertOrchestrators(orchestrator);
    if (!known) throw unknownOrchestrator(orchestrator, runner.names());
    const turnInput = options.command ? EMPTY_INPUT : toTurnInput(input, maxInputBytes);
    options.signal?.throwIfAborted();
    const attributes = toJsonFields(options.attributes ?? {}, 'attributes');
    stringifyWithin(attributes, MAX_ATTRIBUTES_BYTES, 'The attributes');
    const given = logsConversations ? options : { ...options, unlogged: true };
    const idempotency = key !== undefined && {
      key,
      hash: hashOf(orchestrator, turnInput, options.replaces),
      ttlMs: idempotencyTtlMs,
    };
    const required = options.session ?? knownSession(ledger, sessions)(sessionId);
    return {
      id: options.id ?? generateId(),
      sessionId,
      orchestrator,
      version: known.version,
      request: toTurnRequest(turnInput, given, maxInputBytes),
      attributes,
      whenBusy,
      maxQueued: settings.maxQueuedPerSession,
      ...(idempotency ? { idempotency } : {}),
      ...(maxSessionLifetimeMs === undefined ? {} : { maxSessionLifetimeMs }),
      ...(foreignSessions ? { foreignSession: true } : {}),
      ...(required ? { requireSession: { createdAt: required.createdAt, userId: required.userId } } : {}),
    };
  }

  private async acceptChecked(request: AcceptTurn): Promise<Accepted> {
    await this.assertForeignSession(request);
    const { telemetry, ledger } = this.dependencies;
    const visit = this.worker.prepare(request.sessionId, request.id);
    try {
      const withClaim = visit ? { claim: visit.claim, ...request } : request;
      return { visit, ...(await observeSubmit(telemetry, withClaim, (observed) => ledger.accept(observed))) };
    } catch (error) {
      if (StoreUnavailableError.isInstance(error) && error.maybeApplied) visit?.findOut();
      else visit?.leave();
      throw error;
    }
  }

  /**
   * @throws TurnNotFoundError unless the turn is one of this session and orchestrator. A fork cannot be replaced: its
   * messages are those of many turns, and its state stays
   */
  private async assertReplaceable(turnId: string, { sessionId, orchestrator }: AcceptTurn): Promise<void> {
    const turn = await this.dependencies.ledger.get(turnId);
    const isOwn = turn?.sessionId === sessionId && turn.orchestrator === orchestrator;
    if (!isOwn || turn.request.command?.type === 'fork') throw new TurnNotFoundError(turnId);
  }

  private async assertForeignSession({ sessionId, requireSession }: AcceptTurn): Promise<void> {
    if (!this.dependencies.foreignSessions) return;
    const session = await this.dependencies.sessions.get(sessionId);
    if (!session || (requireSession && !isSameSession(session, requireSession))) {
      throw new SessionNotFoundError(sessionId);
    }
    if (session.state === 'expired') throw new SessionStateError(sessionId, 'expired', 'accept a turn');
  }

  private async cancelWith(turnId: string, keep: readonly NewMessage[] | undefined): Promise<Turn> {
    const { ledger, notifier } = this.dependencies;
    const { turn, notify } = await ledger.cancel(turnId, keep ? 'interrupt' : 'cancel', keep);
    if (notify) await notifier.notify(turn.sessionId);
    return turn;
  }

  private cancelOnAbort(turn: Turn, signal: AbortSignal): void {
    if (isTerminal(turn.status)) return;
    const over = new AbortController();
    const stopWaiting = onAbort(signal, () => {
      // The signal of a handler whose turn is retried: its next attempt finds the turn by the idempotency key.
      if (isAttemptedAgain(signal)) return;
      repeatWhileUnavailable(() => this.cancel(turn.id), over.signal).catch((error: unknown) =>
        this.logger.error(
          `Turn ${loggedId(turn.id)} was not cancelled when its signal was aborted. Cancel it again.`,
          traceOf(error),
        ),
      );
    });
    // A signal that outlives its turns must not collect their listeners.
    void this.waiter
      .settled(turn)
      .catch(() => undefined)
      .finally(() => {
        stopWaiting();
        over.abort();
      });
  }
}

function checkedId(turnId: string): string {
  assertId(turnId, 'turnId');
  return turnId;
}

/** Returns a hash that shows whether an idempotency key is reused with the same input. */
function hashOf(orchestrator: string, input: TurnInput, replaces?: string): string {
  return sha256(JSON.stringify(replaces === undefined ? [orchestrator, input] : [orchestrator, input, replaces]));
}
