import { type TurnEvent, type TurnEventMessage } from '../ledger/turn-event.js';

/** The approximate number of characters of a page: readers keep a page until their clients have read it. */
const PAGE_LENGTH = 131_072;
/** The first page is small, because the size of the events is not known yet: each may have 64 KiB. */
const FIRST_PAGE = 8;
const MOST_EVENTS = 64;

/**
 * Chooses how many events to read next, from the sizes of the events before. A page that turned out to be too large would
 * have to be kept, or read again (FIX-85).
 */
export class PageSize {
  private current = FIRST_PAGE;

  get limit(): number {
    return this.current;
  }

  /** @returns true if the page is full, so that more events may follow */
  learn(page: readonly TurnEvent[]): boolean {
    if (page.length === 0) return false;
    const isFull = page.length >= this.current;
    const length = page.reduce((sum, event) => sum + lengthOf(event), 0);
    const fitting = Math.max(1, Math.floor((PAGE_LENGTH * page.length) / length));
    this.current = Math.min(isFull ? 4 * this.current : this.current, fitting, MOST_EVENTS);
    return isFull;
  }
}

/** Readers share the message of an event, so its data is serialized once. */
const messages = new WeakMap<TurnEvent, TurnEventMessage>();

export function messageOf(event: TurnEvent): TurnEventMessage {
  let message = messages.get(event);
  if (!message) {
    message = { id: String(event.offset), type: event.type, data: JSON.stringify(event.data) };
    messages.set(event, message);
  }
  return message;
}

/** Returns the number of characters that an event takes in a stream, with an allowance for those around its data. */
export function lengthOf(event: TurnEvent): number {
  return (messageOf(event).data?.length ?? 0) + 32;
}
