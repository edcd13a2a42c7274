import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { hashed } from '../common/log-id.js';
import { type NewTurnEvent } from '../ledger/turn-event.js';
import { TurnFencedError } from '../ledger/turn.errors.js';

/** Bytes that may wait to be stored before `emit` lets its caller wait. */
const HIGH_WATER_BYTES = 1_048_576;
/** Of one batch, when the store is slower than the handler. */
const MAX_BATCH_BYTES = 262_144;

export interface TurnEventWriterOptions {
  readonly turnId: string;
  readonly batchMs: number;
  readonly batchBytes: number;
  /** Resolves once the batch is stored; rejects when it never will be. */
  readonly store: (number: number, events: readonly NewTurnEvent[]) => Promise<void>;
}

interface Waiting {
  readonly event: NewTurnEvent;
  readonly bytes: number;
}

/**
 * Stores what one attempt emits, in order: batches of `batchMs` or `batchBytes`, one under way at a time, so that it can be
 * sent again as it is. When one cannot be stored, what follows is dropped: there must be no gap.
 */
export class TurnEventWriter {
  private readonly logger = new Logger(TurnEventWriter.name);
  private waiting: Waiting[] = [];
  private waitingBytes = 0;
  /** Those of the batch under way included. */
  private unstoredBytes = 0;
  private number = 0;
  private timer: NodeJS.Timeout | null = null;
  private storing: Promise<void> | null = null;
  private closed = false;
  private held: (() => void)[] = [];

  constructor(private readonly options: TurnEventWriterOptions) {}

  /** Resolves at once, or when there is room again. Never rejects. */
  add(event: NewTurnEvent): Promise<void> {
    if (this.closed) return Promise.resolve();
    const bytes = Buffer.byteLength(JSON.stringify(event));
    this.waiting.push({ event, bytes });
    this.waitingBytes += bytes;
    this.unstoredBytes += bytes;
    this.schedule();
    if (this.unstoredBytes <= HIGH_WATER_BYTES) return Promise.resolve();
    return new Promise((resolve) => this.held.push(resolve));
  }

  /** Takes nothing more. Resolves once all is stored or dropped. */
  async close(): Promise<void> {
    this.closed = true;
    this.schedule();
    while (this.storing) await this.storing;
  }

  /** Forgets what is not stored. */
  drop(): void {
    this.closed = true;
    this.waiting = [];
    this.waitingBytes = 0;
    this.unstoredBytes = 0;
    this.stopTimer();
    this.letGo();
  }

  private schedule(): void {
    if (this.storing || this.waiting.length === 0) return;
    if (this.closed || this.waitingBytes >= this.options.batchBytes) this.storeNext();
    else this.timer ??= setTimeout(() => this.storeNext(), this.options.batchMs);
  }

  private storeNext(): void {
    this.stopTimer();
    const { events, bytes } = this.takeBatch();
    this.number += 1;
    this.storing = this.options
      .store(this.number, events)
      .then(
        () => {
          this.unstoredBytes -= bytes;
          if (this.unstoredBytes <= HIGH_WATER_BYTES) this.letGo();
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
    // Whoever has the turn now emits anew.
    if (error instanceof TurnFencedError) return;
    this.logger.error(
      `Events of turn ${hashed(this.options.turnId)} could not be stored; its attempt goes on without them.`,
      traceOf(error),
    );
  }

  private stopTimer(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  private letGo(): void {
    for (const resolve of this.held.splice(0)) resolve();
  }
}
