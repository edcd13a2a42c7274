import {
  type EventStreamAnswer,
  type EventStreamFetch,
  type EventStreamMessage,
  EventStreamParser,
} from './event-stream.js';
import { ResponseError } from './response.error.js';

/** @inline */
type HeaderFields = Readonly<Record<string, string>>;

/** The source of a turn's events. */
export interface TurnEventsSource {
  /** The URL of the turn's events, for example `/turns/${turn.id}/events`. Outside browsers it must be absolute. */
  readonly url: string;
  /**
   * Headers, for example `{ authorization: 'Bearer ...', 'x-session-id': '...' }`. A function is called for each
   * connection. The iteration rejects with its error, and does not wait for it once `signal` is aborted. Default: none.
   */
  readonly headers?: HeaderFields | (() => HeaderFields | Promise<HeaderFields>);
  /** The function that sends requests. It must stream the body. Default: the global `fetch`. */
  readonly fetch?: EventStreamFetch;
  /** Milliseconds without data after which the connection counts as lost. The server sends a comment every 15 s. Default 45,000. */
  readonly idleTimeoutMs?: number;
}

/** A connection broke, or could not be opened. Another one may work. */
export class LostConnection extends Error {
  override readonly name = 'LostConnection';

  constructor(
    readonly reason?: unknown,
    readonly retryAfterMs = 0,
  ) {
    super('The connection was lost.');
  }
}

/** Statuses below 500 that cause a reconnect. */
const RETRIED = [408, 425, 429];
/** The limit of a wrong header. */
const MAX_RETRY_AFTER_MS = 3_600_000;
/** The longest time of a timer: a longer one, such as Infinity, would end at once. */
const MAX_TIMER_MS = 2_147_483_647;

/** One request for the events of a turn. */
export class TurnConnection {
  private readonly abort = new AbortController();
  private readonly end = (): void => this.abort.abort();
  private body: EventStreamAnswer['body'];

  constructor(
    private readonly source: TurnEventsSource,
    private readonly signal: AbortSignal | undefined,
  ) {
    signal?.addEventListener('abort', this.end);
  }

  /**
   * @param after the offset of the last event that was received; 0: none
   * @returns false if no event follows
   * @throws ResponseError, LostConnection; the error of the option `headers`
   */
  async open(after: number): Promise<boolean> {
    const { url, headers = {}, fetch = globalThis.fetch } = this.source;
    const given = typeof headers === 'function' ? await this.untilEnd(headers()) : headers;
    const request = {
      headers: { accept: 'text/event-stream', ...given, ...(after > 0 ? { 'last-event-id': String(after) } : {}) },
      signal: this.abort.signal,
    };
    const answer = await this.inTime(fetch(url, request));
    if (answer.status === 204) return false;
    if (answer.status !== 200) await this.fail(answer);
    const type = answer.headers.get('content-type') ?? 'no content type';
    if (!/^text\/event-stream\b/i.test(type)) {
      throw unexpected(200, `Expected text/event-stream from ${url}. Received: ${type}. Check the URL.`);
    }
    if (!answer.body) {
      throw unexpected(200, 'This fetch does not stream response bodies. Pass one that does as the option `fetch`.');
    }
    this.body = answer.body;
    return true;
  }

  /** Yields the messages until the stream ends. @throws LostConnection */
  async *messages(): AsyncGenerator<EventStreamMessage, void> {
    const reader = this.body!.getReader();
    const parser = new EventStreamParser();
    for (;;) {
      const { done, value } = await this.inTime(reader.read());
      if (done) return;
      if (value) yield* parser.push(value);
    }
  }

  /** Ends the request. */
  close(): void {
    this.signal?.removeEventListener('abort', this.end);
    this.end();
  }

  private async inTime<T>(work: Promise<T>): Promise<T> {
    const { idleTimeoutMs = 45_000 } = this.source;
    const silent = (): void => this.abort.abort(new Error(`The server sent nothing for ${idleTimeoutMs} ms.`));
    const timer = setTimeout(silent, Math.min(idleTimeoutMs, MAX_TIMER_MS));
    try {
      return await this.untilEnd(work);
    } catch (error) {
      throw new LostConnection(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits for work that may ignore the signal of the request, until the request has ended. */
  private async untilEnd<T>(work: T | Promise<T>): Promise<T> {
    const { signal } = this.abort;
    let stop = (): void => undefined;
    const ended = new Promise<never>((_, reject) => {
      stop = () => reject(signal.reason as Error);
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop);
    });
    try {
      return await Promise.race([work, ended]);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** @throws ResponseError, LostConnection */
  private async fail(answer: EventStreamAnswer): Promise<never> {
    const { status } = answer;
    const { code, message } = errorFields(await this.inTime(answer.text()));
    // While the server restarts, a proxy may answer with 500 and no code. A fault of the application has a code.
    const isOutage = status > 501 || RETRIED.includes(status) || (status >= 500 && typeof code !== 'string');
    const error = new ResponseError(
      status,
      typeof code === 'string' ? code : 'UNEXPECTED_ANSWER',
      typeof message === 'string' ? message : `Expected status 200 from ${this.source.url}. Received: ${status}.`,
    );
    if (!isOutage) throw error;
    throw new LostConnection(error, Math.min(retryAfterMsOf(answer), MAX_RETRY_AFTER_MS));
  }
}

/** Returns the delay that the header names in seconds or as a date; 0 if it is absent, malformed or past. */
function retryAfterMsOf({ headers }: EventStreamAnswer): number {
  const value = headers.get('retry-after') ?? '';
  const delayMs = /^\s*\d+\s*$/.test(value) ? 1000 * Number(value) : Date.parse(value) - Date.now();
  return Math.max(0, delayMs || 0);
}

function errorFields(text: string): { readonly code?: unknown; readonly message?: unknown } {
  try {
    return (JSON.parse(text) ?? {}) as object;
  } catch {
    return {};
  }
}

function unexpected(status: number, message: string): ResponseError {
  return new ResponseError(status, 'UNEXPECTED_ANSWER', message);
}
