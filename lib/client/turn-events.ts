import { type JsonValue } from '../common/json.js';
import { type EmittedEvent, type NewTurnEvent } from '../ledger/turn-event.js';
import { type TurnStreamEvent } from '../turn/turn-stream-event.js';
import { type EventStreamMessage } from './event-stream.js';
import { LostConnection, TurnConnection, type TurnEventsSource } from './turn-connection.js';
import { ResponseError } from './response.error.js';

/** The state of the connection. */
export interface TurnConnectionState {
  readonly isOpen: boolean;
  /** The number of connections in a row that failed or broke without an event. */
  readonly failures: number;
  /** Milliseconds until the next attempt to connect. Absent if the connection is open. */
  readonly delayMs?: number;
  /** The cause of the failure. Absent if the connection is open, or if the server ended the stream. */
  readonly error?: unknown;
}

/** The options of `readTurnEvents`. */
export interface TurnEventsOptions extends TurnEventsSource {
  /** The offset of the last event that was received. Default: all events are read. */
  readonly after?: number;
  /** Ends the iteration and the request. The turn continues. Default: none. */
  readonly signal?: AbortSignal;
  /** Called when the connection is open, and when it is lost. An error that it throws ends the iteration. Default: none. */
  readonly onConnection?: (state: TurnConnectionState) => void;
}

/** The delay before the first reconnect. It doubles with each failure. */
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;

/**
 * Reads the events of a turn, each exactly once and in order. When the connection breaks, it reconnects and resumes
 * (DAY-21). The last event is `settled`. It requires `fetch`, but neither Nest nor Node.
 *
 * Outages, broken connections and limits (status 408, 425, 429, from 502, and 500 without a code) cause a reconnect, without a limit.
 * @throws ResponseError for every other response
 */
export async function* readTurnEvents<Emitted extends EmittedEvent = NewTurnEvent>(
  options: TurnEventsOptions,
): AsyncGenerator<TurnStreamEvent<Emitted>, void, undefined> {
  const { signal, onConnection } = options;
  assertFetchable(options);
  let after = options.after ?? 0;
  // True if the server has no event after `after`, but `settled` was not received. Then read from the first event, and yield
  // only `settled`.
  let isOver = false;
  let wait: EventStreamMessage | undefined;
  for (let failures = 0; !signal?.aborted;) {
    const connection = new TurnConnection(options, signal);
    const begunAt = Date.now();
    let isFirst = true;
    let lost: LostConnection | undefined;
    try {
      if (!(await connection.open(isOver ? 0 : after))) {
        if (isOver || after === 0) {
          throw new ResponseError(204, 'UNEXPECTED_ANSWER', `Expected events from ${options.url}. Received none.`);
        }
        isOver = true;
        continue;
      }
      onConnection?.({ isOpen: true, failures });
      for await (const message of connection.messages()) {
        if (signal?.aborted) return;
        const event = toTurnStreamEvent(message);
        // The server sends the event `waiting` to each connection again.
        const isRepeated = isFirst && event.type === 'waiting' && message.data === wait?.data && message.id === wait.id;
        isFirst = false;
        failures = 0;
        if (event.type === 'waiting') wait = message;
        if (event.type !== 'settled' && isOver) continue;
        after = event.offset;
        if (!isRepeated) yield event;
        if (event.type === 'settled') return;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!(error instanceof LostConnection)) throw error;
      lost = error;
    } finally {
      connection.close();
    }
    // The turn may emit nothing, so a connection without events is a failure only if it was short.
    failures = isFirst && Date.now() - begunAt < MAX_DELAY_MS ? failures + 1 : 1;
    const { reason, retryAfterMs = 0 } = lost ?? {};
    const delayMs = Math.max(retryAfterMs, delayAfter(failures));
    onConnection?.({ isOpen: false, failures, delayMs, ...(reason === undefined ? {} : { error: reason }) });
    await pause(delayMs, signal);
  }
}

/** @throws ResponseError, LostConnection */
function toTurnStreamEvent({ id, type, data }: EventStreamMessage): TurnStreamEvent {
  try {
    return { offset: Number(id), type, data: JSON.parse(data) as JsonValue };
  } catch {
    // Nest sends the message of an error that ends the stream as an event. It is text, and its id is not an offset.
    if (type === 'error') throw new LostConnection(new Error(data));
    throw new ResponseError(200, 'UNEXPECTED_ANSWER', `The data of event ${type} must be JSON. Received: ${data}`);
  }
}

/** `fetch` rejects invalid URLs with the error of a broken connection. @throws TypeError */
function assertFetchable({ url, fetch }: TurnEventsOptions): void {
  if (fetch || typeof URL === 'undefined') return;
  const { location } = globalThis as { readonly location?: { readonly href: string } };
  new URL(url, location?.href);
}

/** Spreads the reconnects of clients that lost their server at the same time. */
function delayAfter(failures: number): number {
  const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS);
  return Math.round(delayMs * (0.5 + Math.random() / 2));
}

function pause(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, signal?.aborted ? 0 : delayMs);
    signal?.addEventListener('abort', end);
  });
}
