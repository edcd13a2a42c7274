import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { deepFreeze, type JsonObject } from '../common/json.js';
import { hashed } from '../common/log-id.js';
import { type OutsideRequests, outsideRequests } from '../common/outside-requests.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { SETTLED, type TurnEvent } from '../ledger/turn-event.js';
import { type TurnEventLog } from '../ledger/turn-event-log.js';
import { messageOf } from './turn-event-message.js';
import { type FailureReader, toTurnEnd } from './turn-result.js';
import { TurnNotFoundError } from '../ledger/turn.errors.js';
import { type TurnLedger } from '../ledger/turn.store.js';
import { isTerminal, type Turn, type TurnStatus } from '../ledger/turn.js';

/** Between looks for what another process stores, and while the turn waits for somebody. */
const POLL_MS = 100;
const WAITING_POLL_MS = 500;
/** Between looks at the turn itself, when no hint tells that it changed; and after a look that failed, though the store was there. */
const LEDGER_POLL_MS = 1000;
/** Events that are read at once. */
export const PAGE = 64;
/** What readers that keep up are served from. */
const TAIL_EVENTS = 256;
const TAIL_BYTES = 262_144;

/** Where the feed looks. */
export interface EventPlace {
  readonly ledger: Pick<TurnLedger, 'get'>;
  readonly log: Pick<TurnEventLog, 'read' | 'last'>;
  readonly readFailure: FailureReader;
  /** Whether the turn's session is over. */
  readonly isSessionOver: (turn: Turn) => Promise<boolean>;
  /** When the lifetime of the turn's session ends, in milliseconds by this process's clock; Infinity: never. */
  readonly sessionEndsAt: (turn: Turn) => Promise<number>;
}

/**
 * The newest events of one turn, for all of its readers in this process: one read for all of them, while somebody waits for
 * news (TRN-33). Those who have fallen behind read the log themselves.
 */
export class TurnEventFeed {
  /** The terminal event, once the turn is over and its last event is known. */
  end: TurnEvent | null = null;
  /** Nothing more comes: the turn is over or gone, or the process stops. */
  isOver = false;
  /** Nobody is given any more of it, stored or not: the turn is gone, its session was revoked (NST-18) or has outlived its lifetime. */
  isCut = false;
  /** Resolves when the feed knows where the log ends. @throws TurnNotFoundError, StoreUnavailableError */
  readonly ready: Promise<void>;
  private begun = false;
  private last = 0;
  /** Without gaps, up to `last`. */
  private readonly tail: TurnEvent[] = [];
  private tailBytes = 0;
  private status: TurnStatus = 'queued';
  private ledgerDueAt = 0;
  private sessionEndsAt = Infinity;
  /** Stored events came from this process since the last look. */
  private wasTold = false;
  private readonly waiting = new Set<() => void>();
  private readonly logger = new Logger(TurnEventFeed.name);
  private hasFailed = false;
  private following = false;
  private hurried = false;
  private endPause: (() => void) | null = null;

  constructor(
    private readonly turnId: string,
    private readonly place: EventPlace,
    private readonly outside: OutsideRequests = outsideRequests(),
  ) {
    this.ready = this.begin();
  }

  /** What is kept after an offset; null when that is not all that there is. */
  after(offset: number): readonly TurnEvent[] | null {
    if (offset >= this.last) return [];
    const [first] = this.tail;
    if (!first || offset < first.offset - 1) return null;
    const from = offset - first.offset + 1;
    return this.tail.slice(from, from + PAGE);
  }

  /** Resolves when there may be something new. */
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
      // The look of all readers is not the first one's.
      if (!this.following) void this.outside(() => this.follow());
    });
  }

  /** Takes what this process has just stored. */
  tell(events: readonly TurnEvent[]): void {
    if (!this.begun || this.isOver) return;
    if (events[0].offset > this.last + 1) {
      // Somebody else has stored something before.
      this.hurry();
      return;
    }
    this.wasTold = true;
    this.take(events);
  }

  /** The turn has changed. */
  hint(): void {
    this.ledgerDueAt = 0;
    this.hurry();
  }

  /** Ends the feed, after a last look for what has just been stored. */
  async close(): Promise<void> {
    this.ledgerDueAt = 0;
    await this.ready.then(() => this.look()).catch(() => undefined);
    this.finish(this.end);
  }

  private async begin(): Promise<void> {
    const turn = await this.place.ledger.get(this.turnId);
    if (!turn) throw new TurnNotFoundError(this.turnId);
    // After the turn: of one that is over, this is then the last event of all.
    this.last = await this.place.log.last(this.turnId);
    this.sessionEndsAt = await this.place.sessionEndsAt(turn);
    this.begun = true;
    if (await this.isRevoked(turn)) this.cut();
    else this.note(turn);
    this.cutAtSessionEnd();
  }

  private async follow(): Promise<void> {
    this.following = true;
    while (this.waiting.size > 0 && !this.isOver) {
      const pauseMs = await this.look().then(
        () => this.pollMs,
        (error: unknown) => this.failed(error),
      );
      await this.pause(pauseMs);
    }
    this.following = false;
  }

  /** The next look finds what was missed. @returns how long until then */
  private failed(error: unknown): number {
    this.ledgerDueAt = 0;
    // The store is away for a moment.
    if (error instanceof StoreUnavailableError) return this.pollMs;
    if (!this.hasFailed) {
      this.logger.error(
        `Events of turn ${hashed(this.turnId)} could not be read; they are tried again.`,
        traceOf(error),
      );
    }
    this.hasFailed = true;
    return LEDGER_POLL_MS;
  }

  private async look(): Promise<void> {
    if (this.isOver) return;
    const turn = await this.lookAtTurn();
    if (turn === null || (turn && (await this.isRevoked(turn)))) {
      this.cut();
      return;
    }
    // After the turn: of one that is over, nothing is stored any more.
    if (turn || !this.wasTold) await this.readOn();
    this.wasTold = false;
    if (turn) this.note(turn);
    this.cutAtSessionEnd();
  }

  /** The events of a turn that is over stay readable. */
  private cutAtSessionEnd(): void {
    if (!this.isOver && Date.now() > this.sessionEndsAt) this.cut();
  }

  /** `undefined`: not yet. */
  private async lookAtTurn(): Promise<Turn | null | undefined> {
    if (performance.now() < this.ledgerDueAt) return undefined;
    // Before it is read: a hint that comes meanwhile asks for another look.
    this.ledgerDueAt = performance.now() + LEDGER_POLL_MS;
    return this.place.ledger.get(this.turnId);
  }

  /** Its worker may be slow to hear that it must stop, and nobody waits for that. */
  private async isRevoked(turn: Turn): Promise<boolean> {
    return turn.cancelMode !== undefined && this.place.isSessionOver(turn);
  }

  private async readOn(): Promise<void> {
    for (let read = 0; read < TAIL_EVENTS; read += PAGE) {
      const events = await this.place.log.read(this.turnId, this.last, PAGE);
      this.take(events);
      if (events.length < PAGE) return;
    }
    // Nobody has waited for a while. What does not fit into the tail is for the readers.
    this.skipTo(await this.place.log.last(this.turnId));
  }

  private note(turn: Turn): void {
    this.status = turn.status;
    if (isTerminal(turn.status)) {
      const end = toTurnEnd(turn, this.place.readFailure) as object as JsonObject;
      this.finish({ offset: this.last + 1, type: SETTLED, data: end });
    }
  }

  private take(events: readonly TurnEvent[]): void {
    const fresh = events.filter(({ offset }) => offset > this.last);
    if (fresh.length === 0) return;
    // It must have been, a moment ago.
    this.status = 'running';
    if (fresh[0].offset !== this.last + 1) this.skipTo(fresh[0].offset - 1);
    for (const event of fresh) {
      // Readers share it.
      deepFreeze(event);
      this.tail.push(event);
      this.tailBytes += bytesOf(event);
    }
    this.last = fresh[fresh.length - 1].offset;
    while (this.tail.length > TAIL_EVENTS || this.tailBytes > TAIL_BYTES) {
      this.tailBytes -= bytesOf(this.tail.shift() as TurnEvent);
    }
    this.wake();
  }

  private skipTo(offset: number): void {
    if (offset <= this.last) return;
    this.tail.length = 0;
    this.tailBytes = 0;
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
    return this.status === 'waiting' ? WAITING_POLL_MS : POLL_MS;
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

function bytesOf(event: TurnEvent): number {
  return messageOf(event).data?.length ?? 0;
}
