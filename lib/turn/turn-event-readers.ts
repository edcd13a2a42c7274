import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { Observable } from 'rxjs';
import { traceOf } from '../common/error-trace.js';
import { hashed } from '../common/log-id.js';
import { outsideRequests } from '../common/outside-requests.js';
import { SessionsError, StoreUnavailableError } from '../common/sessions.error.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type StoredEvents } from './stored-events.js';
import { type TurnEvent, type TurnEventMessage } from '../ledger/turn-event.js';
import { type EventPlace, PAGE, TurnEventFeed } from './turn-event-feed.js';
import { messageOf } from './turn-event-message.js';
import { type EventResponse, TurnEventPace } from './turn-event-pace.js';
import { TurnEventsEndedError, TurnNotFoundError } from '../ledger/turn.errors.js';
import { type TurnHints } from '../ledger/turn.store.js';
import { isTerminal } from '../ledger/turn.js';

/** A proxy between us and the client may close what is silent for longer. */
const HEARTBEAT_MS = 15_000;
/** Before a page is asked for again, while the store is away. */
const RETRY_MS = 200;
/** Characters of a page of the log that a reader keeps; it reads the rest again. */
const PAGE_LENGTH = 131_072;

export interface EventSources extends EventPlace {
  readonly hints: TurnHints;
  readonly stored: StoredEvents;
  readonly telemetry: Telemetry;
}

interface OpenFeed {
  readonly turnId: string;
  readonly feed: TurnEventFeed;
  readonly unlisten: () => void;
  readers: number;
}

/** Those of this process who read the events of turns; each keeps nothing but its offset. */
export class TurnEventReaders {
  private readonly logger = new Logger(TurnEventReaders.name);
  private readonly feeds = new Map<string, OpenFeed>();
  private unsubscribe: (() => void) | null = null;
  private closed = false;
  /** Ends the waiting of streams whose clients do not read: on shutdown they end without the rest. */
  private readonly streams = new Set<AbortController>();
  /** Neither hints nor looks for news belong to the request that happened to read first. */
  private readonly outsideRequests = outsideRequests();

  constructor(private readonly sources: EventSources) {}

  /** Yields events as fast as they are asked for. */
  async *events(turnId: string, after: number, signal: AbortSignal): AsyncGenerator<TurnEvent, void> {
    if (this.closed) return;
    const open = this.join(turnId);
    const { feed } = open;
    this.sources.telemetry.count('agent_sessions.streams', 1);
    try {
      await feed.ready;
      for (let offset = after; !signal.aborted && !feed.isCut;) {
        const page = feed.after(offset) ?? (await this.read(turnId, offset, signal));
        // It has not seen what comes before the end.
        if (!page) return;
        for (const event of page) {
          // Checked for each event: the reader may have stopped in the middle of a page.
          if (signal.aborted || feed.isCut) return;
          offset = event.offset;
          yield event;
        }
        if (page.length > 0) continue;
        if (!feed.isOver) await feed.news(signal);
        else {
          if (feed.end && offset < feed.end.offset) yield feed.end;
          return;
        }
      }
    } finally {
      this.sources.telemetry.count('agent_sessions.streams', -1);
      this.leave(open);
    }
  }

  /**
   * Returns a stream that pauses while its client does not read (FIX-50).
   * @throws TurnNotFoundError; TurnEventsEndedError when nothing comes after this offset, the terminal event's or a later one
   */
  async messages(
    turnId: string,
    after: number,
    response?: EventResponse | { readonly raw: EventResponse },
  ): Promise<Observable<TurnEventMessage>> {
    const turn = await this.sources.ledger.get(turnId);
    if (!turn) throw new TurnNotFoundError(turnId);
    // After the turn: of one that is over, this is the last event of all.
    if (after > 0 && isTerminal(turn.status) && after > (await this.sources.log.last(turnId))) {
      throw new TurnEventsEndedError(turn.sessionId, turnId);
    }
    return new Observable((subscriber) => {
      const leaving = new AbortController();
      const waiting = new AbortController();
      this.streams.add(waiting);
      const pace = TurnEventPace.of(response);
      let last = after;
      const heartbeat = setInterval(() => {
        if (!pace.isFull) subscriber.next({ id: String(last), comment: '' });
      }, HEARTBEAT_MS);
      const send = async (): Promise<void> => {
        for await (const event of this.events(turnId, after, leaving.signal)) {
          last = event.offset;
          subscriber.next(pace.send(messageOf(event)));
          if (pace.isDue && !(await pace.pass(waiting.signal))) return;
        }
      };
      send().then(
        () => subscriber.complete(),
        (error: unknown) => {
          // Deleted, or the store is away, since a moment ago: whoever comes again is told.
          if (error instanceof TurnNotFoundError || error instanceof StoreUnavailableError) subscriber.complete();
          else if (error instanceof SessionsError) subscriber.error(error);
          else {
            // Nest 11 sends the message to the client.
            this.logger.error(`The stream of turn ${hashed(turnId)} has failed.`, traceOf(error));
            subscriber.error(new Error('Internal server error'));
          }
        },
      );
      return () => {
        clearInterval(heartbeat);
        leaving.abort();
        waiting.abort();
        this.streams.delete(waiting);
      };
    });
  }

  /** Ends every stream, of turns that are not over without a terminal event. */
  async close(): Promise<void> {
    this.closed = true;
    for (const waiting of this.streams) waiting.abort();
    await Promise.all([...this.feeds.values()].map(({ feed }) => feed.close()));
  }

  /** @returns null when the store is away and nobody waits for it any more */
  private async read(turnId: string, after: number, signal: AbortSignal): Promise<readonly TurnEvent[] | null> {
    for (;;) {
      try {
        return within(await this.sources.log.read(turnId, after, PAGE), PAGE_LENGTH);
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
        if (this.closed || signal.aborted) return null;
        await delay(RETRY_MS);
      }
    }
  }

  private join(turnId: string): OpenFeed {
    const open = this.feeds.get(turnId) ?? this.open(turnId);
    open.readers += 1;
    return open;
  }

  private open(turnId: string): OpenFeed {
    const feed = new TurnEventFeed(turnId, this.sources, this.outsideRequests);
    const unlisten = this.sources.stored.listen(turnId, (events) => feed.tell(events));
    const open: OpenFeed = { turnId, feed, unlisten, readers: 0 };
    this.feeds.set(turnId, open);
    this.unsubscribe ??= this.outsideRequests(() =>
      this.sources.hints.subscribe((changed) => this.feeds.get(changed)?.feed.hint()),
    );
    // Its readers are told; whoever comes next tries anew.
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
    if (this.feeds.size > 0) return;
    this.unsubscribe?.();
    this.unsubscribe = null;
  }
}

/** The first events of a page, of at most so many characters; at least one event. */
function within(page: readonly TurnEvent[], maxLength: number): readonly TurnEvent[] {
  let length = 0;
  const end = page.findIndex((event, at) => (length += messageOf(event).data?.length ?? 0) > maxLength && at > 0);
  return end === -1 ? page : page.slice(0, end);
}
