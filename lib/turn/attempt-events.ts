import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { loggedId } from '../common/log-details.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { type TurnEventLog } from '../ledger/turn-event-log.js';
import { ATTEMPT, type NewTurnEvent, type TurnEvent } from '../ledger/turn-event.js';
import { TurnFencedError } from '../ledger/turn.errors.js';
import { attemptNumber } from '../ledger/turn.js';
import { type ClaimedTurn } from '../ledger/turn.store.js';
import { attemptMessages } from './attempt.messages.js';
import { type LocalEvents } from './local-events.js';
import { sizeOfEvents, TurnEventLimit } from './turn-event-limit.js';
import { TurnEventWriter } from './turn-event-writer.js';
import { type TurnLease } from './turn-lease.js';
import { type TurnEventSettings } from './turn.settings.js';

/** Page size for reading the turn's own events. */
const PAGE = 500;

/** The parts of an attempt that store its events. */
export interface AttemptEventSinks {
  readonly log: Pick<TurnEventLog, 'append' | 'read'>;
  readonly localEvents: LocalEvents;
  readonly lease: Pick<TurnLease, 'retrying'>;
  /** Called when another worker has the turn. */
  readonly onLost: (error: TurnFencedError) => void;
}

/** The events that one attempt emits, and those that the turn has stored so far. */
export class AttemptEvents {
  private readonly logger = new Logger(AttemptEvents.name);
  private readonly limit: TurnEventLimit;
  private readonly writer: TurnEventWriter;
  /** True if the limit knows the events of earlier attempts. */
  private hasCounted = false;
  /** The offset of the first event that this attempt has stored. */
  private first: number | null = null;

  constructor(
    private readonly claimed: Pick<ClaimedTurn, 'hold' | 'turn'>,
    private readonly settings: TurnEventSettings,
    private readonly sinks: AttemptEventSinks,
  ) {
    this.limit = new TurnEventLimit(settings.maxBytes, () => this.warnOfLimit());
    this.writer = new TurnEventWriter({
      turnId: claimed.turn.id,
      ...settings,
      limit: this.limit,
      store: (number, events) => this.store(number, events),
    });
  }

  /** See `emit` of AttemptHandle. */
  emit(event: NewTurnEvent): Promise<void> {
    return this.writer.add(event);
  }

  /** See `flush` of AttemptHandle. */
  flush(): Promise<void> {
    return this.writer.flush();
  }

  /** Returns the stored events of all attempts, with all that this one has emitted. @throws StoreUnavailableError */
  async stored(): Promise<readonly TurnEvent[]> {
    await this.flush();
    const stored: TurnEvent[] = [];
    for await (const page of this.pages()) stored.push(...page);
    if (this.first === null) this.count(sizeOfEvents(stored));
    return stored;
  }

  /** Accepts no more events. Resolves once all are stored or dropped. @param isComplete the attempt has succeeded */
  async close(isComplete: boolean): Promise<void> {
    if (isComplete) this.writer.addRest();
    await this.writer.close();
  }

  /** Drops events that are not stored. */
  drop(): void {
    this.writer.drop();
  }

  private async store(number: number, events: readonly NewTurnEvent[]): Promise<void> {
    const { hold, turn } = this.claimed;
    const { log, localEvents, lease, onLost } = this.sinks;
    const restart = { type: ATTEMPT, data: { attempt: attemptNumber(turn) } };
    try {
      await localEvents.store(turn.id, async () => {
        const batch = { number, events, restart };
        const last = await lease.retrying('append', () => log.append(hold, batch, this.settings.ttlMs));
        const first = last - events.length + 1;
        this.first ??= first;
        return events.map((event, at) => ({ ...event, offset: first + at }));
      });
    } catch (error) {
      if (TurnFencedError.isInstance(error)) onLost(error);
      throw error;
    }
    if (!this.hasCounted && this.first) await this.countBefore(this.first);
  }

  /** Counts the events before an offset: those of earlier attempts. */
  private async countBefore(offset: number): Promise<void> {
    let bytes = 0;
    try {
      if (offset > 1) {
        for await (const page of this.pages()) bytes += sizeOfEvents(page.filter((event) => event.offset < offset));
      }
      this.count(bytes);
    } catch (error) {
      // The batch is stored, so later events follow it. They are counted after the next batch.
      if (StoreUnavailableError.isInstance(error)) return;
      this.hasCounted = true;
      this.logger.error(attemptMessages.eventsNotCounted(loggedId(this.claimed.turn.id)), traceOf(error));
    }
  }

  private count(bytes: number): void {
    if (!this.hasCounted) this.limit.count(bytes);
    this.hasCounted = true;
  }

  private async *pages(): AsyncGenerator<readonly TurnEvent[], void> {
    for (let last = 0; ;) {
      const page = await this.sinks.log.read(this.claimed.turn.id, last, PAGE);
      last += page.length;
      yield page;
      if (page.length < PAGE) return;
    }
  }

  private warnOfLimit(): void {
    this.logger.warn(attemptMessages.tooManyEvents(loggedId(this.claimed.turn.id), this.settings.maxBytes));
  }
}
