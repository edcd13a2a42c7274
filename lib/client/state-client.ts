import { type StateOperation, type StateOperationResult } from '../state/state-report.js';
import {
  type CompactStateRequest,
  type DescribeStateRequest,
  type ResetStateRequest,
  type StateRequest,
} from '../state/state-request.js';
import { ResponseError } from './response.error.js';

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, request: FetchRequest) => Promise<FetchAnswer>;

/** The request that the client passes to `fetch`. */
export interface FetchRequest {
  /** The method, always POST. */
  readonly method: string;
  /** The headers of the options, the content type, and the idempotency key if set. */
  readonly headers: Record<string, string>;
  /** The body as JSON. */
  readonly body: string;
  /** Aborts the request. Default: none. */
  readonly signal?: AbortSignal;
}

/** The part of the response that the client reads. */
export interface FetchAnswer {
  readonly status: number;
  /** Returns the JSON body, a result or an error. */
  text(): Promise<string>;
}

type Headers = Readonly<Record<string, string>>;

/** The options of `stateClient`. */
export interface StateClientOptions {
  /** The base URL of the application with its prefix, for example `https://desk.example.com/api`. */
  readonly baseUrl: string;
  /** The controller's path. Default `state`. */
  readonly path?: string;
  /** Headers, for example `{ authorization: 'Bearer ...' }`. A function is called for each request. Default: none. */
  readonly headers?: Headers | (() => Headers | Promise<Headers>);
  /** The function that sends requests. Default: the global `fetch`. */
  readonly fetch?: Fetch;
}

/** The options of one call. */
export interface StateCallOptions {
  /** A key of 1 to 255 visible ASCII characters. A retry with the same key is not executed again. Default: no key. */
  readonly idempotencyKey?: string;
  /** Aborts the request. Work that has started on the server continues. Default: none. */
  readonly signal?: AbortSignal;
}

/** A client of the control plane. Methods reject with ResponseError unless they get a result, or with the error of `fetch`. */
export interface StateClient {
  /** Reports which modules have data of a session, how much, and with `includeData` a page of it. */
  describe(request: DescribeStateRequest, options?: StateCallOptions): Promise<StateOperationResult>;
  /** Clears modules of a session, or of every session with `all`. */
  reset(request: ResetStateRequest, options?: StateCallOptions): Promise<StateOperationResult>;
  /** Compacts the conversation of a session. */
  compact(request: CompactStateRequest, options?: StateCallOptions): Promise<StateOperationResult>;
}

/** Creates an HTTP client of the control plane. It requires `fetch`, but neither Nest nor Node. */
export function stateClient(options: StateClientOptions): StateClient {
  const { baseUrl, path = 'state', headers = {}, fetch = globalThis.fetch } = options;
  const base = `${baseUrl.replace(/\/+$/, '')}/${path.replace(/^\/+|\/+$/g, '')}`;

  async function send(operation: StateOperation, request: StateRequest, call: StateCallOptions = {}) {
    const { idempotencyKey, signal } = call;
    const answer = await fetch(`${base}/${operation}`, {
      method: 'POST',
      headers: {
        accept: 'application/json',
        ...(typeof headers === 'function' ? await headers() : headers),
        'content-type': 'application/json',
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      body: JSON.stringify(request),
      ...(signal ? { signal } : {}),
    });
    const body = parsed(await answer.text());
    // A proxy may respond with 200 and another body.
    if (answer.status !== 200 || body.operation !== operation) throw toError(answer.status, body);
    return body as unknown as StateOperationResult;
  }

  return {
    describe: (request, call) => send('describe', request, call),
    reset: (request, call) => send('reset', request, call),
    compact: (request, call) => send('compact', request, call),
  };
}

function toError(
  status: number,
  { code, message, retryAfter, result }: Readonly<Record<string, unknown>>,
): ResponseError {
  return new ResponseError(
    status,
    typeof code === 'string' ? code : 'UNEXPECTED_ANSWER',
    typeof message === 'string' ? message : `The control plane responded with status ${status}.`,
    {
      ...(typeof retryAfter === 'number' ? { retryAfter } : {}),
      ...(typeof result === 'object' && result !== null ? { result: result as StateOperationResult } : {}),
    },
  );
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}
