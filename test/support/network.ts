import { setTimeout as delay } from 'node:timers/promises';

/** The pause before a refused connection is tried again. */
const RETRY_MS = 20;
const MAX_ATTEMPTS = 3000;

/** Where connections break. */
export interface Cuts {
  /** The numbers of chunks, from 0, of which only a half arrives before the connection breaks. */
  readonly at?: (chunk: number) => boolean;
  /** Whether a request fails, by its number from 1, because no server can be reached for long. */
  readonly fails?: (request: number) => boolean;
  /** Called before each chunk is delivered. */
  readonly before?: (chunk: number) => unknown;
}

/** The network between a page and the server. Like a page of the documentation, it repeats refused connections. */
export class Network {
  /** The number of chunks that the page has received. */
  chunks = 0;
  /** The number of connections that broke. */
  breaks = 0;
  /** The requests, without the base URL. */
  readonly requests: string[] = [];
  /** The content types and the bodies of the messages. */
  readonly sent: { readonly type: string | null; readonly body: Record<string, unknown> }[] = [];
  /** The names of the responses to messages. */
  readonly runs: string[] = [];
  /** The number of chunks at the end of each connection. */
  readonly ends: number[] = [];
  private readonly broken = new Set<number>();

  constructor(private readonly cuts: Cuts = {}) {}

  readonly fetch: typeof fetch = async (input, init = {}) => {
    const request = new Request(input, init);
    const url = new URL(request.url);
    this.requests.push(`${request.method} ${url.pathname}${url.search}`);
    if (this.cuts.fails?.(this.requests.length)) throw new TypeError('fetch failed');
    if (request.method === 'POST') {
      const body = (await request.clone().json()) as Record<string, unknown>;
      this.sent.push({ type: request.headers.get('content-type'), body });
    }
    const connection = new AbortController();
    const response = await this.patiently(input, init, connection.signal);
    if (request.method === 'POST') this.runs.push(response.headers.get('x-workflow-run-id') ?? '');
    if (!response.ok || !response.body) return response;
    return new Response(ReadableStream.from(this.read(response.body, connection)), response);
  };

  private async patiently(input: Parameters<typeof fetch>[0], init: RequestInit, broken: AbortSignal) {
    const signal = init.signal ? AbortSignal.any([init.signal, broken]) : broken;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await fetch(input, { ...init, signal });
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || signal.aborted) throw error;
        await delay(RETRY_MS);
      }
    }
  }

  private async *read(body: ReadableStream<Uint8Array>, connection: AbortController): AsyncGenerator<Uint8Array, void> {
    const encoder = new TextEncoder();
    let text = '';
    try {
      for await (const part of body.pipeThrough(new TextDecoderStream())) {
        text += part;
        const events = text.split('\n\n');
        text = events.pop()!;
        for (const event of events) {
          if (/^data:/m.test(event)) {
            await this.cuts.before?.(this.chunks);
            if (this.cuts.at?.(this.chunks) && !this.broken.has(this.chunks)) {
              this.broken.add(this.chunks);
              yield encoder.encode(event.slice(0, event.length / 2));
              throw new TypeError('network error');
            }
            this.chunks += 1;
          }
          yield encoder.encode(`${event}\n\n`);
        }
      }
    } catch (error) {
      this.breaks += 1;
      throw error;
    } finally {
      this.ends.push(this.chunks);
      connection.abort();
    }
  }
}
