import { setImmediate as nextTask, setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { Observable } from 'rxjs';
import { traceOf } from '../common/error-trace.js';
import { hashed } from '../common/log-id.js';
import { outsideRequests } from '../common/outside-requests.js';
import { SessionsError, StoreUnavailableError } from '../common/sessions.error.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type StoredEvents } from './stored-events.js';
import { type TurnEvent, type TurnEventMessage } from './turn-event.js';
import { type EventPlace, PAGE, TurnEventFeed } from './turn-event-feed.js';
import { messageOf } from './turn-event-message.js';
import { TurnEventsEndedError, TurnNotFoundError } from './turn.errors.js';
import { type TurnHints } from './turn.store.js';
import { isTerminal } from './turn.js';

/** A proxy between us and the client may close what is silent for longer. */
const HEARTBEAT_MS = 15_000;
/** Before a page is asked for again, while the store is away. */
const RETRY_MS = 200;
/** After so many characters connections get the time to send them: an Observable is not told when it must wait. */
const BURST = 65_536;

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
  /** Neither hints nor looks for news belong to the request that happened to read first. */
  private readonly outsideRequests = outsideRequests();

  constructor(private readonly sources: EventSources) {}

  /** In pages, as fast as they are asked for. */
  async *pages(turnId: string, after: number, signal: AbortSignal): AsyncGenerator<readonly TurnEvent[], void> {
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
        if (page.length > 0) {
          offset = page[page.length - 1].offset;
          yield page;
        } else if (feed.isOver) {
          if (feed.end && offset < feed.end.offset) yield [feed.end];
          return;
        } else {
          await feed.news(signal);
        }
      }
    } finally {
      this.sources.telemetry.count('agent_sessions.streams', -1);
      this.leave(open);
    }
  }

  async *events(turnId: string, after: number, signal: AbortSignal): AsyncGenerator<TurnEvent, void> {
    for await (const page of this.pages(turnId, after, signal)) {
      for (const event of page) {
        if (signal.aborted) return;
        yield event;
      }
    }
  }

  /** @throws TurnNotFoundError; TurnEventsEndedError when nothing comes after this offset, the terminal event's or a later one */
  async messages(turnId: string, after: number): Promise<Observable<TurnEventMessage>> {
    const turn = await this.sources.ledger.get(turnId);
    if (!turn) throw new TurnNotFoundError(turnId);
    // After the turn: of one that is over, this is the last event of all.
    if (after > 0 && isTerminal(turn.status) && after > (await this.sources.log.last(turnId))) {
      throw new TurnEventsEndedError(turn.sessionId, turnId);
    }
    return new Observable((subscriber) => {
      const leaving = new AbortController();
      let last = after;
      const heartbeat = setInterval(() => subscriber.next({ id: String(last), comment: '' }), HEARTBEAT_MS);
      const send = async (): Promise<void> => {
        let burst = 0;
        for await (const event of this.events(turnId, after, leaving.signal)) {
          last = event.offset;
          const message = messageOf(event);
          subscriber.next(message);
          burst += message.data?.length ?? 0;
          if (burst < BURST) continue;
          burst = 0;
          await nextTask();
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
      };
    });
  }

  /** Ends every stream, of turns that are not over without a terminal event. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.feeds.values()].map(({ feed }) => feed.close()));
  }

  /** @returns null when the store is away and nobody waits for it any more */
  private async read(turnId: string, after: number, signal: AbortSignal): Promise<readonly TurnEvent[] | null> {
    for (;;) {
      try {
        return await this.sources.log.read(turnId, after, PAGE);
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
