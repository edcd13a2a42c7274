/** The part of `fetch` that the reader of events uses. */
export type EventStreamFetch = (url: string, request: EventStreamRequest) => Promise<EventStreamAnswer>;

/** The request that the reader passes to `fetch`. */
export interface EventStreamRequest {
  /** The headers of the options, `accept`, and `last-event-id` to resume. */
  readonly headers: Record<string, string>;
  /** Aborts the request. */
  readonly signal: AbortSignal;
}

/** The part of the response that the reader uses. */
export interface EventStreamAnswer {
  readonly status: number;
  readonly headers: EventStreamHeaders;
  /** The body as a stream. `null` or absent if this `fetch` cannot stream. */
  readonly body?: EventStreamBody | null;
  /** Returns the body of an error. */
  text(): Promise<string>;
}

/** The part of `Headers` that the reader uses. @inline */
interface EventStreamHeaders {
  /** Returns the value of a header, or `null` if it is absent. */
  get(name: string): string | null;
}

/** The part of a `ReadableStream` that the reader uses. */
export interface EventStreamBody {
  /** Returns the reader of the stream. */
  getReader(): EventStreamBodyReader;
}

/** The part of a `ReadableStreamDefaultReader` that the reader uses. @inline */
interface EventStreamBodyReader {
  /** Resolves with the next bytes, or with `done: true` at the end of the stream. */
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
}

/** A message of an event stream that has data. */
export interface EventStreamMessage {
  /** The last id that the stream has sent. Empty if there was none. */
  readonly id: string;
  readonly type: string;
  readonly data: string;
}

/** Parses Server-Sent Events from parts of any size. */
export class EventStreamParser {
  private readonly decoder = new TextDecoder();
  /** The line that is not complete. */
  private line = '';
  /** True after a carriage return at the end of a part: it may be the first half of a line end. */
  private isHalf = false;
  private id = '';
  private type = '';
  private data: string[] = [];

  /** @returns the messages that this part completes */
  push(part: Uint8Array): EventStreamMessage[] {
    // Only the new text is searched, because a long line arrives in many parts.
    const text = (this.isHalf ? '\r' : '') + this.decoder.decode(part, { stream: true });
    this.isHalf = text.endsWith('\r');
    const lines = (this.isHalf ? text.slice(0, -1) : text).split(/\r\n|\n|\r/);
    lines[0] = this.line + lines[0];
    this.line = lines.pop() ?? '';
    return lines.flatMap((line) => this.read(line));
  }

  private read(line: string): EventStreamMessage[] {
    if (line === '') return this.complete();
    // A line that begins with a colon is a comment.
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'data') this.data.push(value);
    else if (field === 'event') this.type = value;
    else if (field === 'id') this.id = value;
    return [];
  }

  private complete(): EventStreamMessage[] {
    const { id, type, data } = this;
    this.type = '';
    this.data = [];
    return data.length === 0 ? [] : [{ id, type: type || 'message', data: data.join('\n') }];
  }
}
