import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Logger } from '@nestjs/common';
import { Observable } from 'rxjs';
import { outsideRequests } from '../common/background-work.js';
import { loggedId } from '../common/log-details.js';
import { traceOf } from '../common/error-trace.js';
import { SessionsError, StoreUnavailableError } from '../common/sessions.error.js';
import { type TurnEvent, type TurnEventMessage } from '../ledger/turn-event.js';
import { NothingToStreamError, TurnNotFoundError } from '../ledger/turn.errors.js';
import { isTerminal } from '../ledger/turn.js';
import { type TurnChanges } from '../ledger/turn.store.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { ChangesSubscription } from './changes-subscription.js';
import { type LocalEvents } from './local-events.js';
import { beginWait } from './running-turn.js';
import { StreamHeartbeat } from './stream-heartbeat.js';
import { type FeedSources, TurnEventFeed } from './turn-event-feed.js';
import { messageOf, PageSize } from './turn-event-page.js';
import { type EventResponse, TurnEventPace } from './turn-event-pace.js';

/** The pause before a read is retried while the store is unavailable. */
const RETRY_MS = 200;

export interface EventSources extends FeedSources {
  readonly changes: TurnChanges;
  readonly localEvents: LocalEvents;
  readonly telemetry: Telemetry;
}

interface OpenFeed {
  readonly turnId: string;
  readonly feed: TurnEventFeed;
  readonly unlisten: () => void;
  readers: number;
}

/** The readers of turn events in this process. Each keeps only its offset. */
export class TurnEventReaders {
  private readonly logger = new Logger(TurnEventReaders.name);
  private readonly feeds = new Map<string, OpenFeed>();
  private readonly subscription: ChangesSubscription;
  private closed = false;
  /** Stops streams that wait for clients which do not read. On shutdown they end without the remaining events. */
  private readonly streams = new Set<AbortController>();
  /** A feed runs outside the context of any request. */
  private readonly outsideRequests = outsideRequests();

  constructor(private readonly sources: EventSources) {
    this.subscription = new ChangesSubscription(sources.changes, (turnId) => this.feeds.get(turnId)?.feed.changed());
  }

  /** Yields events at the speed of the consumer. @throws TurnNotFoundError; in a handler as {@link beginWait} */
  async *events(turnId: string, after: number, signal: AbortSignal): AsyncGenerator<TurnEvent, void> {
    if (this.closed) return;
    const open = this.join(turnId);
    const { feed } = open;
    this.sources.telemetry.count('agent_sessions.streams', 1);
    let endWait: (() => Promise<void>) | undefined;
    const pageSize = new PageSize();
    try {
      const { sessionId } = await feed.ready;
      let wait: TurnEvent | null = null;
      for (let offset = after; !signal.aborted && !feed.isCut;) {
        let page = feed.after(offset);
        if (!page) {
          page = await this.read(turnId, offset, pageSize, signal);
          // The reader has not received the events before the end, so it gets no terminal event.
          if (!page) return;
          feed.share(page);
        }
        for (const event of page) {
          // Checked for each event: the reader may have stopped in the middle of a page.
          if (signal.aborted || feed.isCut) return;
          offset = event.offset;
          yield event;
        }
        if (page.length > 0) continue;
        // After a check, the same wait is another object.
        if (feed.wait && !isDeepStrictEqual(feed.wait, wait)) {
          wait = feed.wait;
          yield wait;
          continue;
        }
        if (!feed.isOver) {
          // The wait lasts until the iteration ends. Taking the slot again for each event could delay the event to the
          // end of the turn.
          endWait ??= await beginWait(this.sources.ledger, { sessionId, turnId });
          await feed.news(signal);
        } else {
          if (feed.end && offset < feed.end.offset) yield feed.end;
          return;
        }
      }
    } finally {
      this.sources.telemetry.count('agent_sessions.streams', -1);
      this.leave(open);
      await endWait?.();
    }
  }

  /**
   * Returns a stream that pauses while its client does not read (FIX-50).
   * @throws TurnNotFoundError; NothingToStreamError if no event follows this offset: it is that of the terminal event,
   * or later
   */
  async messages(
    turnId: string,
    after: number,
    response?: EventResponse | { readonly raw: EventResponse },
  ): Promise<Observable<TurnEventMessage>> {
    const turn = await this.sources.ledger.get(turnId);
    if (!turn) throw new TurnNotFoundError(turnId);
    // Read after the turn: if the turn has ended, this is its last event.
    if (after > 0 && isTerminal(turn.status) && after > (await this.sources.log.last(turnId))) {
      throw new NothingToStreamError(
        'TURN_EVENTS_ENDED',
        `Turn ${turnId} has ended, so no later events exist. Do not reconnect.`,
        turn,
      );
    }
    return new Observable((subscriber) => {
      const leaving = new AbortController();
      const waiting = new AbortController();
      this.streams.add(waiting);
      const pace = TurnEventPace.of(response);
      let last = after;
      const heartbeat = new StreamHeartbeat(pace, (comment) => subscriber.next({ id: String(last), comment }));
      const send = async (): Promise<void> => {
        for await (const event of this.events(turnId, after, leaving.signal)) {
          last = event.offset;
          subscriber.next(pace.send(messageOf(event)));
          heartbeat.sent();
          if (pace.isDue && !(await pace.pass(waiting.signal))) return;
        }
      };
      send().then(
        () => subscriber.complete(),
        (error: unknown) => {
          // The turn was deleted, or the store became unavailable. A client that reconnects gets the error.
          if (TurnNotFoundError.isInstance(error) || StoreUnavailableError.isInstance(error)) subscriber.complete();
          else if (SessionsError.isInstance(error)) subscriber.error(error);
          else {
            // Send a generic error, because Nest 11 sends its message to the client.
            this.logger.error(`The stream of turn ${loggedId(turnId)} failed.`, traceOf(error));
            subscriber.error(new Error('Internal server error'));
          }
        },
      );
      return () => {
        heartbeat.stop();
        leaving.abort();
        waiting.abort();
        this.streams.delete(waiting);
      };
    });
  }

  /** Ends every stream. Streams of open turns end without a terminal event. */
  async close(): Promise<void> {
    this.closed = true;
    for (const waiting of this.streams) waiting.abort();
    await Promise.all([...this.feeds.values()].map(({ feed }) => feed.close()));
  }

  /** @returns null if the store is unavailable and the reader has stopped */
  private async read(
    turnId: string,
    after: number,
    pageSize: PageSize,
    signal: AbortSignal,
  ): Promise<readonly TurnEvent[] | null> {
    for (;;) {
      try {
        const page = await this.sources.log.read(turnId, after, pageSize.limit);
        pageSize.learn(page);
        return page;
      } catch (error) {
        if (!StoreUnavailableError.isInstance(error)) throw error;
        if (this.closed || signal.aborted) return null;
        await delay(RETRY_MS);
      }
    }
  }

  private join(turnId: string): OpenFeed {
    const known = this.feeds.get(turnId);
    // Earlier readers may not have read for long, so the wait may have ended.
    if (known?.feed.wait) known.feed.changed();
    const open = known ?? this.open(turnId);
    open.readers += 1;
    return open;
  }

  private open(turnId: string): OpenFeed {
    const feed = new TurnEventFeed(turnId, this.sources, this.outsideRequests);
    const { localEvents, log } = this.sources;
    const appended = (last: number | null): void => {
      // Events of this process reach the feed through `localEvents`, without a read.
      if (!localEvents.isStoring(turnId)) feed.appended(last);
    };
    const ends = [
      localEvents.listen(turnId, (events) => feed.addLocal(events)),
      this.outsideRequests(() => log.subscribe?.(turnId, appended)),
    ];
    const open: OpenFeed = { turnId, feed, unlisten: () => ends.forEach((end) => end?.()), readers: 0 };
    this.feeds.set(turnId, open);
    this.subscription.open();
    // Its readers get the error. The next reader opens a new feed.
    feed.ready.catch(() => this.forget(open));
    return open;
  }

  private leave(open: OpenFeed): void {
    open.readers -= 1;
    if (open.readers === 0) this.forget(open);
  }

  private forget(open: OpenFeed): void {
    if (this.feeds.get(open.turnId) !== open) return;
    open.unlisten();
    this.feeds.delete(open.turnId);
    if (this.feeds.size === 0) this.subscription.close();
  }
}
