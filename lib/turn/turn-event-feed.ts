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
/** The turn is checked early if this time has passed since the last read with events: its end often follows them. */
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
 * Buffers the newest events of one turn for its readers in this process (TRN-33). `TurnEventReaders` creates a feed for
 * the first reader of a turn, and drops it after the last one. A reader gets events from `after`. When it has all, it
 * waits in `news`. While a reader waits, the feed checks for events at intervals: one read serves all readers. It does
 * not read while no reader waits. Readers that are behind the buffer read the log themselves.
 *
 * The log does not contain the end and the waits of a turn. The feed reads the turn too, and derives them.
 */
export class TurnEventFeed {
  /** The terminal event (`SETTLED`), once the turn has ended and its last stored event is known. */
  end: TurnEvent | null = null;
  /** The event of a turn that waits for a signal (`WAITING`). Null once the turn may have continued. */
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
  /** True once `last` has been read. Events that arrive earlier are ignored: readers find them in the log. */
  private knowsLast = false;
  /** The offset of the newest known event. */
  private last = 0;
  /** The newest events, without gaps, up to `last`. */
  private readonly tail: TurnEvent[] = [];
  /** The size of `tail`, in characters. */
  private tailLength = 0;
  private readonly pageSize = new PageSize();
  /** The status of the turn as last known. It decides the polling interval. */
  private status: TurnStatus = 'queued';
  /** When a check must read the turn again, in milliseconds of `performance.now()`. 0: at the next check. */
  private ledgerDueAt = 0;
  /** The same for one early read of the turn, {@link QUIET_MS} after the last events that were read from the log. */
  private quietAt = Infinity;
  /** In milliseconds of `Date.now()`. */
  private sessionEndsAt = Infinity;
  /** True if this process has stored events since the last check. The next check then does not read the log. */
  private hasLocalEvents = false;
  /** The functions that wake the readers which wait in `news`. */
  private readonly waitingReaders = new Set<() => void>();
  private readonly logger = new Logger(TurnEventFeed.name);
  /** True once an unexpected error has been logged. Later ones of this feed are not logged. */
  private hasLoggedError = false;
  private isFollowing = false;
  /** True if the next check must not wait for the end of a pause. */
  private skipsPause = false;
  /** Ends the current pause between two checks. */
  private endPause: (() => void) | null = null;

  constructor(
    private readonly turnId: string,
    private readonly sources: FeedSources,
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

  /** Resolves when there may be new events, or the feed is over. Starts the checks if no other reader waits. */
  news(signal: AbortSignal): Promise<void> {
    if (this.isOver || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        this.waitingReaders.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.waitingReaders.add(wake);
      signal.addEventListener('abort', wake);
      // The loop serves all readers, so it must not run in the context of the first one.
      if (!this.isFollowing) void this.outside(() => this.follow());
    });
  }

  /** Adds events that an attempt in this process has just stored, so that they are not read from the log. */
  addLocal(events: readonly TurnEvent[]): void {
    if (!this.knowsLast || this.isOver) return;
    if (events[0].offset > this.last + 1) {
      // Earlier events are missing, from another process or written by the store (`ATTEMPT`), so read the log.
      this.skipPause();
      return;
    }
    this.hasLocalEvents = true;
    this.addNew(events);
  }

  /** Adds events that a reader has read from the log, so that they are not read again (FIX-85). */
  share(events: readonly TurnEvent[]): void {
    if (!this.knowsLast || this.isOver || events.length === 0 || events[0].offset > this.last + 1) return;
    const { last, wait } = this;
    this.addNew(events);
    // The turn may have continued after the wait, or not, so read it again.
    if (wait && this.last > last) this.changed();
  }

  /** Called when the store notifies of events of any process, up to an offset; `null` if the offset is unknown. */
  appended(last: number | null): void {
    if (last !== null && last <= this.last) return;
    this.hasLocalEvents = false;
    this.skipPause();
  }

  /** Called when the turn may have changed: the next check reads it again. */
  changed(): void {
    this.wait = null;
    this.ledgerDueAt = 0;
    this.skipPause();
  }

  /** Ends the feed when the process stops, after a last check for stored events. */
  async close(): Promise<void> {
    this.ledgerDueAt = 0;
    await this.ready.then(() => this.check()).catch(() => undefined);
    this.finish(this.end);
  }

  private async begin(): Promise<Pick<Turn, 'sessionId'>> {
    const turn = await this.sources.ledger.get(this.turnId);
    if (!turn) throw new TurnNotFoundError(this.turnId);
    // Read after the turn: if the turn has ended, this is its last event.
    this.last = await this.sources.log.last(this.turnId);
    this.sessionEndsAt = await this.sources.sessionEndsAt(turn);
    this.knowsLast = true;
    if (await this.isRevoked(turn)) this.cut();
    // The turn may have continued after it was read, and before `last` was read. The next check reads it again.
    else if (turn.status !== 'waiting') this.applyTurn(turn);
    this.cutAtSessionEnd();
    return { sessionId: turn.sessionId };
  }

  /** Checks at intervals while readers wait. */
  private async follow(): Promise<void> {
    this.isFollowing = true;
    while (this.waitingReaders.size > 0 && !this.isOver) {
      const pauseMs = await this.check().then(
        () => this.pollMs,
        (error: unknown) => this.failed(error),
      );
      await this.pause(pauseMs);
    }
    this.isFollowing = false;
  }

  /** Schedules another check after an error. @returns the pause before it */
  private failed(error: unknown): number {
    this.ledgerDueAt = 0;
    // The store is temporarily unavailable.
    if (StoreUnavailableError.isInstance(error)) return this.pollMs;
    if (!this.hasLoggedError) {
      this.logger.error(`Could not read the events of turn ${loggedId(this.turnId)}; retrying.`, traceOf(error));
    }
    this.hasLoggedError = true;
    return LEDGER_POLL_MS;
  }

  /**
   * Reads the turn, if that is due, then a page of its log. No events are stored after a turn has ended, so this order
   * ensures that the page contains the last ones. Readers must not get the end or a wait before an event that precedes
   * it, so the turn is applied only if the page is the last one.
   */
  private async check(): Promise<void> {
    if (this.isOver) return;
    const { last } = this;
    const turn = await this.readTurnIfDue();
    if (turn === null || (turn && (await this.isRevoked(turn)))) {
      this.cut();
      return;
    }
    const isDue = turn !== undefined || !this.hasLocalEvents;
    const hasMore = isDue && (await this.readPage());
    this.hasLocalEvents = false;
    if (hasMore) {
      // The turn is not applied yet, so read it again with the next page.
      if (turn) this.ledgerDueAt = 0;
      // Readers that have taken this page get the next one without a pause.
      this.skipPause();
    }
    // The turn may have continued after it was read: events have arrived, or `changed` was called. So read it again.
    else if (turn?.status === 'waiting' && (this.last > last || this.ledgerDueAt === 0)) this.changed();
    else if (turn) this.applyTurn(turn);
    this.cutAtSessionEnd();
  }

  /** Cuts the feed at the end of the session's lifetime. Events of an ended turn remain readable. */
  private cutAtSessionEnd(): void {
    if (!this.isOver && Date.now() > this.sessionEndsAt) this.cut();
  }

  /** Reads the turn. Returns `undefined` if that is not due, `null` if the turn was deleted. */
  private async readTurnIfDue(): Promise<Turn | null | undefined> {
    const now = performance.now();
    if (now < this.ledgerDueAt && now < this.quietAt) return undefined;
    // Set before the read, so that a notification during the read causes another check.
    this.ledgerDueAt = now + LEDGER_POLL_MS;
    this.quietAt = Infinity;
    return this.sources.ledger.get(this.turnId);
  }

  /** Returns true if the session was revoked, even if the worker has not stopped the turn yet (NST-18). */
  private async isRevoked(turn: Turn): Promise<boolean> {
    return turn.cancelMode !== undefined && this.sources.isSessionOver(turn);
  }

  /**
   * Reads one page. The next one is read when a reader has taken this page: pages that are read ahead could leave the
   * buffer before a reader takes them, and would be read again. @returns true if more events may follow
   */
  private async readPage(): Promise<boolean> {
    const events = await this.sources.log.read(this.turnId, this.last, this.pageSize.limit);
    if (events.length > 0) this.quietAt = performance.now() + QUIET_MS;
    this.addNew(events);
    return this.pageSize.learn(events);
  }

  /** Updates the feed from a turn whose events are all known. */
  private applyTurn(turn: Turn): void {
    this.status = turn.status;
    this.wait = null;
    if (turn.status === 'waiting') {
      const data = toTurnWaiting(turn) as object as JsonObject;
      this.wait = deepFreeze({ offset: this.last, type: WAITING, data });
      this.wake();
    }
    if (isTerminal(turn.status)) {
      const end = toTurnEnd(turn, this.sources.readFailure) as object as JsonObject;
      this.finish({ offset: this.last + 1, type: SETTLED, data: end });
    }
  }

  /** Adds the events that are newer than `last`, and drops the oldest ones that exceed the buffer. */
  private addNew(events: readonly TurnEvent[]): void {
    const fresh = events.filter(({ offset }) => offset > this.last);
    if (fresh.length === 0) return;
    // New events prove that the turn was running a moment ago.
    this.status = 'running';
    this.wait = null;
    if (fresh[0].offset > this.last + 1) {
      // The log has a gap. The buffer must not have gaps.
      this.tail.length = 0;
      this.tailLength = 0;
    }
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

  /** Ends the feed without a terminal event, see `isCut`. */
  private cut(): void {
    this.isCut = true;
    this.finish(null);
  }

  /** Ends the feed. @param end the terminal event; null if the turn has not ended, or readers must not receive it */
  private finish(end: TurnEvent | null): void {
    this.end = end && deepFreeze(end);
    this.isOver = true;
    this.skipPause();
    this.wake();
  }

  private wake(): void {
    for (const wake of [...this.waitingReaders]) wake();
  }

  /** Makes the next check start at once. */
  private skipPause(): void {
    this.skipsPause = true;
    this.endPause?.();
  }

  private get pollMs(): number {
    return this.sources.log.subscribe || this.status === 'waiting' ? RARE_POLL_MS : POLL_MS;
  }

  /** Waits before the next check, until `skipPause` is called; not at all if it was called during the last check. */
  private async pause(ms: number): Promise<void> {
    if (!this.skipsPause) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.endPause = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
      this.endPause = null;
    }
    this.skipsPause = false;
  }
}
