import { isDeepStrictEqual } from 'node:util';
import { Logger } from '@nestjs/common';
import { type OutsideRequests, outsideRequests } from '../common/background-work.js';
import { loggedId } from '../common/log-details.js';
import { traceOf } from '../common/error-trace.js';
import { deepFreeze, type JsonObject } from '../common/json.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { type TurnEventLog } from '../ledger/turn-event-log.js';
import { SETTLED, type TurnEvent, WAITING } from '../ledger/turn-event.js';
import { TurnNotFoundError } from '../ledger/turn.errors.js';
import { isTerminal, type Turn, type TurnStatus } from '../ledger/turn.js';
import { type TurnLedger } from '../ledger/turn.store.js';
import { lengthOf, PageSize } from './turn-event-page.js';
import { type FailureReader, toTurnEnd, toTurnWaiting } from './to-turn-result.js';

/** Polling interval for events from other processes, if the store does not notify. */
const POLL_MS = 100;
/** Polling interval if the store notifies, because notifications can be lost, or while the turn waits for a signal. */
const RARE_POLL_MS = 500;
/** The interval of checks of the turn if no notification arrives, and the pause after an unexpected error. */
const LEDGER_POLL_MS = 1000;
/** The turn is checked once after this time without an event of another process: its end often follows the last one. */
const QUIET_MS = 150;
/** The number of events that a reader takes from the buffer at once. */
const TAKEN_AT_ONCE = 64;
/** The limit of the buffer that serves readers which keep up, in characters. A batch of the largest size fits. */
const TAIL_LENGTH = 524_288;

/** The sources of a feed. */
export interface FeedSources {
  readonly ledger: Pick<TurnLedger, 'get'>;
  readonly log: Pick<TurnEventLog, 'read' | 'last' | 'subscribe'>;
  readonly readFailure: FailureReader;
  /** Returns true if the turn's session has ended. */
  readonly isSessionOver: (turn: Turn) => Promise<boolean>;
  /**
   * Returns when the lifetime of the turn's session ends, in milliseconds by this process's clock; Infinity for never.
   */
  readonly sessionEndsAt: (turn: Turn) => Promise<number>;
}

/**
 * The newest events of one turn, for all of its readers in this process. One read serves all of them, and reads stop
 * when no reader is waiting (TRN-33). Readers that have fallen behind read the log themselves.
 */
export class TurnEventFeed {
  /** The terminal event, once the turn has ended and its last event is known. */
  end: TurnEvent | null = null;
  /** The derived event of a turn that waits for a signal, while no event is known after it. */
  wait: TurnEvent | null = null;
  /** True if no more events follow: the turn has ended or was deleted, or the process stops. */
  isOver = false;
  /**
   * True if readers receive no more events, even stored ones: the turn was deleted, or its session was revoked (NST-18)
   * or has exceeded its lifetime.
   */
  isCut = false;
  /** Resolves with the turn when the feed knows the end of the log. @throws TurnNotFoundError, StoreUnavailableError */
  readonly ready: Promise<Pick<Turn, 'sessionId'>>;
  private begun = false;
  private last = 0;
  /** The newest events, without gaps, up to `last`. */
  private readonly tail: TurnEvent[] = [];
  private tailLength = 0;
  private readonly pageSize = new PageSize();
  private status: TurnStatus = 'queued';
  private ledgerDueAt = 0;
  private quietAt = Infinity;
  private sessionEndsAt = Infinity;
  /** True if this process has stored events since the last check. */
  private hasLocalEvents = false;
  private readonly waiting = new Set<() => void>();
  private readonly logger = new Logger(TurnEventFeed.name);
  private hasFailed = false;
  private following = false;
  private hurried = false;
  private endPause: (() => void) | null = null;

  constructor(
    private readonly turnId: string,
    private readonly place: FeedSources,
    private readonly outside: OutsideRequests = outsideRequests(),
  ) {
    this.ready = this.begin();
  }

  /** Returns the buffered events after an offset; null if the buffer does not reach back to it. */
  after(offset: number): readonly TurnEvent[] | null {
    if (offset >= this.last) return [];
    const [first] = this.tail;
    if (!first || offset < first.offset - 1) return null;
    const from = offset - first.offset + 1;
    return this.tail.slice(from, from + TAKEN_AT_ONCE);
  }

  /** Resolves when there may be new events. */
  news(signal: AbortSignal): Promise<void> {
    if (this.isOver || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.waiting.add(wake);
      signal.addEventListener('abort', wake);
      // Shared by all readers, so it must not run in the context of the first one.
      if (!this.following) void this.outside(() => this.follow());
    });
  }

  /** Adds events that this process has just stored. */
  addLocal(events: readonly TurnEvent[]): void {
    if (!this.begun || this.isOver) return;
    if (events[0].offset > this.last + 1) {
      // Another process has stored events before these.
      this.hurry();
      return;
    }
    this.hasLocalEvents = true;
    this.take(events);
  }

  /** Adds events that a reader has read from the log, so that they are not read again (FIX-85). */
  share(events: readonly TurnEvent[]): void {
    if (!this.begun || this.isOver || events.length === 0 || events[0].offset > this.last + 1) return;
    const { last, wait } = this;
    this.take(events);
    // The events may be newer than the wait, so check the turn again.
    if (wait && this.last > last) this.changed();
  }

  /** Called when a process has appended events, up to an offset; `null` if that is unknown. */
  appended(last: number | null): void {
    if (last !== null && last <= this.last) return;
    this.hasLocalEvents = false;
    this.hurry();
  }

  /** Called when the turn has changed. */
  changed(): void {
    this.ledgerDueAt = 0;
    this.hurry();
  }

  /** Ends the feed, after a last check for stored events. */
  async close(): Promise<void> {
    this.ledgerDueAt = 0;
    await this.ready.then(() => this.check()).catch(() => undefined);
    this.finish(this.end);
  }

  private async begin(): Promise<Pick<Turn, 'sessionId'>> {
    const turn = await this.place.ledger.get(this.turnId);
    if (!turn) throw new TurnNotFoundError(this.turnId);
    // Read after the turn: if the turn has ended, this is its last event.
    this.last = await this.place.log.last(this.turnId);
    this.sessionEndsAt = await this.place.sessionEndsAt(turn);
    this.begun = true;
    if (await this.isRevoked(turn)) this.cut();
    // Events may have been read that are newer than the wait: the next check decides.
    else if (turn.status !== 'waiting') this.note(turn);
    this.cutAtSessionEnd();
    return { sessionId: turn.sessionId };
  }

  private async follow(): Promise<void> {
    this.following = true;
    while (this.waiting.size > 0 && !this.isOver) {
      const pauseMs = await this.check().then(
        () => this.pollMs,
        (error: unknown) => this.failed(error),
      );
      await this.pause(pauseMs);
    }
    this.following = false;
  }

  /** Schedules another check after an error. @returns the pause before it */
  private failed(error: unknown): number {
    this.ledgerDueAt = 0;
    // The store is temporarily unavailable.
    if (StoreUnavailableError.isInstance(error)) return this.pollMs;
    if (!this.hasFailed) {
      this.logger.error(`Could not read the events of turn ${loggedId(this.turnId)}; retrying.`, traceOf(error));
    }
    this.hasFailed = true;
    return LEDGER_POLL_MS;
  }

  private async check(): Promise<void> {
    if (this.isOver) return;
    const turn = await this.readTurnIfDue();
    if (turn === null || (turn && (await this.isRevoked(turn)))) {
      this.cut();
      return;
    }
    // Read after the turn: no events are stored after a turn has ended.
    const { last } = this;
    const isDue = turn !== undefined || !this.hasLocalEvents;
    const hasMore = isDue && (await this.readPage());
    this.hasLocalEvents = false;
    if (hasMore) {
      if (turn) this.ledgerDueAt = 0;
      // Readers that have taken this page get the next one without a pause.
      this.hurry();
    }
    // The events may be newer than the wait, so check the turn again.
    else if (turn?.status === 'waiting' && this.last > last) this.changed();
    else if (turn) this.note(turn);
    this.cutAtSessionEnd();
  }

  /** Stops at the end of the session's lifetime. Events of an ended turn remain readable. */
  private cutAtSessionEnd(): void {
    if (!this.isOver && Date.now() > this.sessionEndsAt) this.cut();
  }

  /** Reads the turn. Returns `undefined` if no check is due. */
  private async readTurnIfDue(): Promise<Turn | null | undefined> {
    const now = performance.now();
    if (now < this.ledgerDueAt && now < this.quietAt) return undefined;
    // Set before the read, so that a notification during the read causes another check.
    this.ledgerDueAt = now + LEDGER_POLL_MS;
    this.quietAt = Infinity;
    return this.place.ledger.get(this.turnId);
  }

  /** Returns true if the session was revoked. Does not wait until the worker has stopped the turn. */
  private async isRevoked(turn: Turn): Promise<boolean> {
    return turn.cancelMode !== undefined && this.place.isSessionOver(turn);
  }

  /**
   * Reads one page. The next one is read when a reader has taken this page: pages that are read ahead could leave the
   * buffer before a reader takes them, and would be read again. @returns true if more events may follow
   */
  private async readPage(): Promise<boolean> {
    const events = await this.place.log.read(this.turnId, this.last, this.pageSize.limit);
    if (events.length > 0) this.quietAt = performance.now() + QUIET_MS;
    this.take(events);
    return this.pageSize.learn(events);
  }

  private note(turn: Turn): void {
    this.status = turn.status;
    this.noteWait(turn);
    if (isTerminal(turn.status)) {
      const end = toTurnEnd(turn, this.place.readFailure) as object as JsonObject;
      this.finish({ offset: this.last + 1, type: SETTLED, data: end });
    }
  }

  /** Reports a wait once, and again when it changes. */
  private noteWait(turn: Turn): void {
    if (turn.status !== 'waiting') {
      this.wait = null;
      return;
    }
    const data = toTurnWaiting(turn) as object as JsonObject;
    if (isDeepStrictEqual(this.wait?.data, data)) return;
    this.wait = deepFreeze({ offset: this.last, type: WAITING, data });
    this.wake();
  }

  private take(events: readonly TurnEvent[]): void {
    const fresh = events.filter(({ offset }) => offset > this.last);
    if (fresh.length === 0) return;
    // New events prove that the turn was running a moment ago.
    this.status = 'running';
    this.wait = null;
    if (fresh[0].offset !== this.last + 1) this.skipTo(fresh[0].offset - 1);
    for (const event of fresh) {
      // Readers share the event.
      deepFreeze(event);
      this.tail.push(event);
      this.tailLength += lengthOf(event);
    }
    this.last = fresh[fresh.length - 1].offset;
    let dropped = 0;
    for (; this.tailLength > TAIL_LENGTH; dropped += 1) this.tailLength -= lengthOf(this.tail[dropped]);
    this.tail.splice(0, dropped);
    this.wake();
  }

  private skipTo(offset: number): void {
    if (offset <= this.last) return;
    this.tail.length = 0;
    this.tailLength = 0;
    this.last = offset;
    this.wake();
  }

  private cut(): void {
    this.isCut = true;
    this.finish(null);
  }

  private finish(end: TurnEvent | null): void {
    this.end = end && deepFreeze(end);
    this.isOver = true;
    this.hurry();
    this.wake();
  }

  private wake(): void {
    for (const wake of [...this.waiting]) wake();
  }

  private hurry(): void {
    this.hurried = true;
    this.endPause?.();
  }

  private get pollMs(): number {
    return this.place.log.subscribe || this.status === 'waiting' ? RARE_POLL_MS : POLL_MS;
  }

  private async pause(ms: number): Promise<void> {
    if (!this.hurried) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.endPause = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
      this.endPause = null;
    }
    this.hurried = false;
  }
}
