import { deepFreeze, isFields, type JsonValue, stringifyWithin, toJson } from '../common/json.js';
import { assertName } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';

/** Something to show while a turn runs: a piece of the answer, a tool call, progress. */
export interface NewTurnEvent {
  /** A name of the application's own. */
  readonly type: string;
  readonly data: JsonValue;
}

export interface TurnEvent extends NewTurnEvent {
  /** 1, 2, 3, ... within the turn, over all its attempts. */
  readonly offset: number;
}

/** What a handler emits: `data` is JSON; left out, it is `null`. */
export interface EmittedEvent {
  readonly type: string;
  readonly data?: unknown;
}

/** An event as Nest's `@Sse()` sends it. A heartbeat has a comment instead of type and data, and the id of what came before it. */
export interface TurnEventMessage {
  /** The event's offset. */
  readonly id: string;
  readonly type?: string;
  /** JSON. */
  readonly data?: string;
  readonly comment?: string;
}

/** The turn is over; `data` is a TurnEnd. Derived from the ledger, never stored. */
export const SETTLED = 'settled';
/** The handler begins again: what earlier attempts emitted no longer counts. `data` is `{ attempt }`. */
export const ATTEMPT = 'attempt';

/** Of the data of one event as JSON. */
const MAX_EVENT_BYTES = 65_536;

/** @throws InvalidInputError, StateSerializationError, TooLargeError */
export function toNewTurnEvent(given: unknown): NewTurnEvent {
  if (!isFields(given)) throw new InvalidInputError('event', 'must be an object with a type.');
  const unknown = Object.keys(given).find((key) => key !== 'type' && key !== 'data');
  if (unknown !== undefined) throw new InvalidInputError(`event.${unknown}`, 'is not a known key.');
  const { type, data = null } = given;
  assertName(type, 'event.type');
  if (type === SETTLED || type === ATTEMPT) {
    throw new InvalidInputError('event.type', `must not be ${type}: that one is emitted by the module itself.`);
  }
  const event = { type, data: toJson(data, 'event.data') };
  stringifyWithin(event.data, MAX_EVENT_BYTES, 'The event');
  // One event for the store, for listeners and for the streams of this process.
  return deepFreeze(event);
}

/**
 * The offset after which to go on, as an HTTP header or a query has it, or as a number; left out: from the beginning.
 * @throws InvalidInputError
 */
export function toOffset(after: string | number | undefined): number {
  if (after === undefined) return 0;
  const offset = typeof after === 'string' && /^\d{1,16}$/.test(after) ? Number(after) : after;
  if (typeof offset === 'number' && Number.isSafeInteger(offset) && offset >= 0) return offset;
  throw new InvalidInputError('after', 'must be the offset of an event: digits, as in a Last-Event-ID header.');
}
