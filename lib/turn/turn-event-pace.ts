import { setImmediate as nextTask } from 'node:timers/promises';
import { type TurnEventMessage } from '../ledger/turn-event.js';

/** Characters that are sent before the connection gets time to write them. */
const BURST = 65_536;
/** Characters that may wait for a client if the response is not known. */
const WINDOW = 262_144;
/** Ends a stream without a known response after this time without a write. Its client reconnects. */
const STALLED_MS = 30_000;
/** The interval of checks for a response that does not emit `drain`. */
const RECHECK_MS = 15_000;

/** The part of a response that a stream needs to wait for its client: a Node response of HTTP/1 or HTTP/2. */
export interface EventResponse {
  readonly writableLength: number;
  readonly writableHighWaterMark: number;
  readonly writableNeedDrain?: boolean;
  /** Adds a listener, as Node's streams do. */
  on(event: 'drain' | 'close', listener: () => void): unknown;
  /** Removes a listener, as Node's streams do. */
  removeListener(event: 'drain' | 'close', listener: () => void): unknown;
}

/** Limits the number of characters by which a stream is ahead of its client (FIX-50). */
export abstract class TurnEventPace {
  private burst = 0;

  static of(response?: EventResponse | { readonly raw: EventResponse }): TurnEventPace {
    if (!response) return new WrittenMessagesPace();
    // Fastify's reply contains Node's response.
    return new ResponsePace('raw' in response ? response.raw : response);
  }

  /** True if the client must read before more is sent. */
  abstract get isFull(): boolean;

  /** @returns the message to send */
  send(message: TurnEventMessage): TurnEventMessage {
    this.burst += lengthOf(message);
    return message;
  }

  /** True if `pass` must be awaited before the next message. */
  get isDue(): boolean {
    return this.burst >= BURST;
  }

  /** Waits until the client has read enough. @returns false if the stream must end */
  async pass(signal: AbortSignal): Promise<boolean> {
    this.burst = 0;
    // Everything that can be written now is written after this task.
    await nextTask();
    while (this.isFull) {
      if (signal.aborted || !(await this.progress(signal))) return false;
    }
    return true;
  }

  /** Waits for the next sign that the client reads. @returns false if the stream must end */
  protected abstract progress(signal: AbortSignal): Promise<boolean>;
}

/** Follows the state of the response itself. */
class ResponsePace extends TurnEventPace {
  constructor(private readonly response: EventResponse) {
    super();
  }

  get isFull(): boolean {
    const { writableNeedDrain, writableLength, writableHighWaterMark } = this.response;
    return writableNeedDrain ?? writableLength >= writableHighWaterMark;
  }

  protected async progress(signal: AbortSignal): Promise<boolean> {
    const { response } = this;
    await wait(signal, RECHECK_MS, (wake) => {
      for (const event of ['drain', 'close'] as const) response.on(event, wake);
      return () => {
        for (const event of ['drain', 'close'] as const) response.removeListener(event, wake);
      };
    });
    return true;
  }
}

/**
 * Follows the messages that Nest writes, if the response is not known. Nest reads the field `retry` of a message only
 * when it writes the message. As long as it has read none, messages are used elsewhere, and nothing is limited.
 */
class WrittenMessagesPace extends TurnEventPace {
  private sent = 0;
  private written = 0;
  private wake: (() => void) | null = null;

  get isFull(): boolean {
    return this.written > 0 && this.sent - this.written > WINDOW;
  }

  override send(message: TurnEventMessage): TurnEventMessage {
    this.sent += lengthOf(message);
    const upTo = this.sent;
    return new ObservedMessage(super.send(message), () => {
      this.written = Math.max(this.written, upTo);
      this.wake?.();
    });
  }

  protected progress(signal: AbortSignal): Promise<boolean> {
    return wait(signal, STALLED_MS, (wake) => {
      this.wake = wake;
      return () => {
        this.wake = null;
      };
    });
  }
}

/** A message that reports when it is written. */
class ObservedMessage implements TurnEventMessage {
  readonly id: string;
  readonly type?: string;
  readonly data?: string;
  readonly #onWrite: () => void;

  constructor({ id, type, data }: TurnEventMessage, onWrite: () => void) {
    this.id = id;
    this.type = type;
    this.data = data;
    this.#onWrite = onWrite;
  }

  /** Always undefined: the client keeps its own reconnection delay. */
  get retry(): undefined {
    this.#onWrite();
    return undefined;
  }
}

function lengthOf({ data }: TurnEventMessage): number {
  return data?.length ?? 0;
}

/** @param listen returns a function that removes the listener. @returns false after `ms`; true when woken or aborted */
function wait(signal: AbortSignal, ms: number, listen: (wake: () => void) => () => void): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (result: boolean): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      unlisten();
      resolve(result);
    };
    const wake = (): void => end(true);
    const timer = setTimeout(() => end(false), ms);
    timer.unref();
    const unlisten = listen(wake);
    signal.addEventListener('abort', wake);
  });
}
