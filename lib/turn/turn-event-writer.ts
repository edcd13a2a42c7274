import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { loggedId } from '../common/log-details.js';
import { type NewTurnEvent } from '../ledger/turn-event.js';
import { TurnFencedError } from '../ledger/turn.errors.js';
import { type SizedEvent, type TurnEventLimit } from './turn-event-limit.js';

/** Bytes that may wait to be stored before `emit` makes its caller wait. */
const HIGH_WATER_BYTES = 1_048_576;
/** The maximum size of a batch, if the store is slower than the handler. */
const MAX_BATCH_BYTES = 262_144;

export interface TurnEventWriterOptions {
  readonly turnId: string;
  readonly batchMs: number;
  readonly batchBytes: number;
  readonly limit: TurnEventLimit;
  /** Resolves once the batch is stored; rejects if it cannot be stored. */
  readonly store: (number: number, events: readonly NewTurnEvent[]) => Promise<void>;
}

/**
 * Stores the events of one attempt in order, in batches. The first event is stored at once. `batchMs` separates the
 * starts of the following batches, unless `batchBytes` are waiting. One batch is written at a time, so that it can be
 * sent again unchanged. If a batch cannot be stored, later events are dropped, because gaps are not
 * allowed.
 */
export class TurnEventWriter {
  private readonly logger = new Logger(TurnEventWriter.name);
  private waiting: SizedEvent[] = [];
  private waitingBytes = 0;
  /** Includes the batch that is being stored. */
  private unstoredBytes = 0;
  private number = 0;
  /** The number of events so far. */
  private added = 0;
  /** The number of events that are stored or dropped. */
  private ended = 0;
  private timer: NodeJS.Timeout | null = null;
  /** When the next batch may start, unless it is full. */
  private nextAt = 0;
  private storing: Promise<void> | null = null;
  private closed = false;
  /** Resolve the calls of `add` that wait for the store. */
  private blocked: (() => void)[] = [];

  constructor(private readonly options: TurnEventWriterOptions) {}

  /** Adds an event. Resolves at once, or when the buffer is below its limit. Never rejects. */
  add(event: NewTurnEvent): Promise<void> {
    if (this.closed) return Promise.resolve();
    this.queue(this.options.limit.admit(event));
    if (this.unstoredBytes <= HIGH_WATER_BYTES) return Promise.resolve();
    return new Promise((resolve) => this.blocked.push(resolve));
  }

  /** Adds the events that the limit holds back. */
  addRest(): void {
    if (!this.closed) this.queue(this.options.limit.rest());
  }

  /** Stores the events that were added so far at once. Resolves once they are stored or dropped. */
  async flush(): Promise<void> {
    const { added } = this;
    while (this.ended < added) {
      if (!this.storing) this.storeNext();
      await this.storing;
    }
  }

  /** Accepts no more events. Resolves once all are stored or dropped. */
  async close(): Promise<void> {
    this.closed = true;
    this.schedule();
    while (this.storing) await this.storing;
  }

  /** Drops events that are not stored. */
  drop(): void {
    this.closed = true;
    this.waiting = [];
    this.ended = this.added;
    this.waitingBytes = 0;
    this.unstoredBytes = 0;
    this.stopTimer();
    this.unblock();
  }

  private queue(events: readonly SizedEvent[]): void {
    for (const { bytes } of events) {
      this.waitingBytes += bytes;
      this.unstoredBytes += bytes;
    }
    this.waiting.push(...events);
    this.added += events.length;
    this.schedule();
  }

  private schedule(): void {
    if (this.storing || this.waiting.length === 0) return;
    if (this.closed || this.waitingBytes >= this.options.batchBytes) this.storeNext();
    // Even without a pause, events of the same event loop tick share a batch.
    else this.timer ??= setTimeout(() => this.storeNext(), Math.max(0, this.nextAt - performance.now()));
  }

  private storeNext(): void {
    this.stopTimer();
    this.nextAt = performance.now() + this.options.batchMs;
    const { events, bytes } = this.takeBatch();
    this.number += 1;
    this.storing = this.options
      .store(this.number, events)
      .then(
        () => {
          this.ended += events.length;
          this.unstoredBytes -= bytes;
          if (this.unstoredBytes <= HIGH_WATER_BYTES) this.unblock();
        },
        (error: unknown) => this.failed(error),
      )
      .then(() => {
        this.storing = null;
        this.schedule();
      });
  }

  private takeBatch(): { events: NewTurnEvent[]; bytes: number } {
    let count = 0;
    let bytes = 0;
    while (count < this.waiting.length && (count === 0 || bytes + this.waiting[count].bytes <= MAX_BATCH_BYTES)) {
      bytes += this.waiting[count].bytes;
      count += 1;
    }
    this.waitingBytes -= bytes;
    return { events: this.waiting.splice(0, count).map(({ event }) => event), bytes };
  }

  private failed(error: unknown): void {
    this.drop();
    // The attempt that now holds the turn emits the events again.
    if (TurnFencedError.isInstance(error)) return;
    this.logger.error(
      `Could not store events of turn ${loggedId(this.options.turnId)}; its attempt continues without them.`,
      traceOf(error),
    );
  }

  private stopTimer(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  private unblock(): void {
    for (const resolve of this.blocked.splice(0)) resolve();
  }
}
