import { deepFreeze, isFields, type JsonValue, stringifyWithin, toJson } from '../common/json.js';
import { assertName } from '../common/ids.js';
import { type NotJsonIn } from '../common/json-check.js';
import { unknownKeyRule } from '../common/known-keys.js';
import { InvalidInputError } from '../common/sessions.error.js';

/** An event to show while a turn runs: a part of the answer, a tool call, progress. */
export interface NewTurnEvent {
  /** A custom name. */
  readonly type: string;
  readonly data: JsonValue;
}

export interface TurnEvent extends NewTurnEvent {
  /** 1, 2, 3, ... within the turn, across all attempts. */
  readonly offset: number;
}

/** An event emitted by a handler. `data` is JSON; default `null`. */
export interface EmittedEvent {
  readonly type: string;
  readonly data?: unknown;
}

/** Accepts events whose type is not reserved and whose data is JSON (DAY-05). Each member of a union is checked. */
export type EmittedEventCheck<Event> = [EmittedEventProblem<Event>] extends [never]
  ? unknown
  : { readonly problem: EmittedEventProblem<Event> };

type EmittedEventProblem<Event> = Event extends { readonly type: infer Type; readonly data?: infer Data }
  ? ReservedType<Type> | NotJsonIn<Data>
  : never;

type ReservedType<Type> = Type extends typeof SETTLED | typeof WAITING | typeof ATTEMPT
  ? `The type ${Type} is reserved.`
  : never;

/**
 * An event as Nest's `@Sse()` sends it. A heartbeat has a comment instead of type and data, and the id of the previous
 * event.
 */
export interface TurnEventMessage {
  /** The event's offset. */
  readonly id: string;
  readonly type?: string;
  /** JSON. */
  readonly data?: string;
  readonly comment?: string;
}

/** The turn has ended; `data` is a TurnEnd. Derived from the ledger, never stored. */
export const SETTLED = 'settled';
/**
 * The turn waits for a signal; `data` is a TurnWaiting. Derived from the ledger, never stored, so its offset is that of
 * the last stored event.
 */
export const WAITING = 'waiting';
/** A new attempt starts: discard the events of earlier attempts. `data` is `{ attempt }`. */
export const ATTEMPT = 'attempt';

const RESERVED: readonly string[] = [SETTLED, WAITING, ATTEMPT];

/** The maximum size of an event's data as JSON, in bytes. */
const MAX_EVENT_BYTES = 65_536;

const KEYS = ['type', 'data'];

/** Validates an event. @throws InvalidInputError, StateSerializationError, TooLargeError */
export function toNewTurnEvent(given: unknown): NewTurnEvent {
  if (!isFields(given)) throw new InvalidInputError('event', 'must be an object with a string `type`.');
  const unknown = Object.keys(given).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) throw new InvalidInputError(`event.${unknown}`, unknownKeyRule(unknown, KEYS));
  const { type, data = null } = given;
  assertName(type, 'event.type');
  if (RESERVED.includes(type)) {
    throw new InvalidInputError('event.type', `must not be ${type}, which is reserved for the module.`);
  }
  const event = { type, data: toJson(data, 'event.data') };
  stringifyWithin(event.data, MAX_EVENT_BYTES, 'The event');
  // The store, listeners and streams of this process share the event.
  return deepFreeze(event);
}

/**
 * Parses an offset from an HTTP header, a query or a number. Default: 0, the beginning.
 * @throws InvalidInputError
 */
export function toOffset(after: string | number | undefined): number {
  if (after === undefined) return 0;
  const offset = typeof after === 'string' && /^\d{1,16}$/.test(after) ? Number(after) : after;
  if (typeof offset === 'number' && Number.isSafeInteger(offset) && offset >= 0) return offset;
  throw new InvalidInputError('after', 'must be the offset of an event, in digits, as in the Last-Event-ID header.');
}
