import { type StateOperation, type StateOperationResult } from '../state/state-report.js';
import {
  type CompactStateRequest,
  type DescribeStateRequest,
  type ResetStateRequest,
  type StateRequest,
} from '../state/state-request.js';
import { StateClientError } from './state-client.error.js';

/** As much of `fetch` as is needed. */
export type Fetch = (url: string, request: FetchRequest) => Promise<FetchAnswer>;

/** What the client asks of `fetch`. */
export interface FetchRequest {
  /** Always POST. */
  readonly method: string;
  /** Those of the options, the content type, and the idempotency key where there is one. */
  readonly headers: Record<string, string>;
  /** JSON. */
  readonly body: string;
  /** Gives the request up. Left out: nobody does. */
  readonly signal?: AbortSignal;
}

/** What the client reads of the answer. */
export interface FetchAnswer {
  readonly status: number;
  /** The body: JSON, of a result or of an error. */
  text(): Promise<string>;
}

type Headers = Readonly<Record<string, string>>;

/** What `stateClient` takes. */
export interface StateClientOptions {
  /** Where the application is, with its prefix: `https://desk.example.com/api`. */
  readonly baseUrl: string;
  /** The controller's path. Default `state`. */
  readonly path?: string;
  /** Who asks, for example `{ authorization: 'Bearer ...' }`; a function is asked for each request. Default: none. */
  readonly headers?: Headers | (() => Headers | Promise<Headers>);
  /** What sends the requests. Default: the global one. */
  readonly fetch?: Fetch;
}

/** One call's own. */
export interface StateCallOptions {
  /** 1 to 255 visible ASCII characters. When the same request is sent again with it, nothing is done again. Default: no key. */
  readonly idempotencyKey?: string;
  /** Gives the request up; what it has begun on the server goes on. Default: nobody does. */
  readonly signal?: AbortSignal;
}

/** All methods reject with StateClientError for every answer but a result, and with what `fetch` rejects with. */
export interface StateClient {
  /** Which modules have something of a session, how much, and with `includeData` a page of it. */
  describe(request: DescribeStateRequest, options?: StateCallOptions): Promise<StateOperationResult>;
  /** Clears modules of a session, or with `all` of every session. */
  reset(request: ResetStateRequest, options?: StateCallOptions): Promise<StateOperationResult>;
  /** Makes a session's conversation shorter. */
  compact(request: CompactStateRequest, options?: StateCallOptions): Promise<StateOperationResult>;
}

/** A client of the control plane over HTTP. It needs `fetch`, and nothing of Nest or Node. */
export function stateClient(options: StateClientOptions): StateClient {
  const { baseUrl, path = 'state', headers = {}, fetch = globalThis.fetch } = options;
  const base = `${baseUrl.replace(/\/+$/, '')}/${path}`;

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
    // Whoever answers in between may do so with 200.
    if (answer.status !== 200 || body.operation !== operation) throw new StateClientError(answer.status, body);
    return body as unknown as StateOperationResult;
  }

  return {
    describe: (request, call) => send('describe', request, call),
    reset: (request, call) => send('reset', request, call),
    compact: (request, call) => send('compact', request, call),
  };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}
