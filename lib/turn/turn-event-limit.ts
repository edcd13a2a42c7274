import { HeldChunks } from '../chat/held-chunks.js';
import { type UIChunk } from '../chat/ui-message.js';
import { isIterationEvent, toUIEvents, UIEventReader } from '../chat/ui-events.js';
import { type NewTurnEvent } from '../ledger/turn-event.js';

/** An event to store. */
export interface SizedEvent {
  readonly event: NewTurnEvent;
  /** The size as JSON. */
  readonly bytes: number;
}

/**
 * Bounds the events that handlers of one turn show live (AIS-34). At `maxBytes`, further events are dropped,
 * and the chunks of an answer are stored in one piece when the answer of the model is stored.
 */
export class TurnEventLimit {
  private bytes = 0;
  private isReached = false;
  /** Reads all events of the attempt, because a large chunk has several. */
  private readonly reader = new UIEventReader();
  private readonly held = new HeldChunks();

  /** @param onReached called when the first event is not stored */
  constructor(
    private readonly maxBytes: number,
    private readonly onReached: () => void,
  ) {}

  /** Counts the events that earlier attempts of the turn have stored. */
  count(bytes: number): void {
    this.bytes += bytes;
  }

  /** Takes the next event of the handler. @returns the events to store now */
  admit(event: NewTurnEvent): SizedEvent[] {
    const chunk = this.reader.read(event);
    const sized = toSized(event);
    if (!this.isReached && this.bytes + sized.bytes <= this.maxBytes) {
      this.bytes += sized.bytes;
      return [sized];
    }
    if (!this.isReached) this.onReached();
    this.isReached = true;
    if (isIterationEvent(event)) return [...this.rest(), sized];
    return chunk ? toSizedEvents(this.held.add(chunk)) : [];
  }

  /** Returns the events of the chunks that are held, for an attempt that has succeeded. */
  rest(): SizedEvent[] {
    return toSizedEvents(this.held.release());
  }
}

/** Returns the size of events as JSON, in bytes. */
export function sizeOfEvents(events: readonly NewTurnEvent[]): number {
  return events.reduce((bytes, event) => bytes + sizeOf(event), 0);
}

function toSizedEvents(chunks: readonly UIChunk[]): SizedEvent[] {
  return chunks.flatMap(toUIEvents).map((event) => toSized(event as NewTurnEvent));
}

function toSized(event: NewTurnEvent): SizedEvent {
  return { event, bytes: sizeOf(event) };
}

function sizeOf({ type, data }: NewTurnEvent): number {
  return Buffer.byteLength(JSON.stringify({ type, data }));
}
