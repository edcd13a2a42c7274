import { type IncomingHttpHeaders } from 'node:http';

/** What of a request the controllers of this package read. */
export interface HttpRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body?: unknown;
  readonly method: string;
  readonly params?: Readonly<Record<string, string>>;
  readonly url: string;
  /** Express: the address before routers shortened it. */
  readonly originalUrl?: string;
}

/** The path and the query that the client asked for. */
export function addressOf({ url, originalUrl = url }: HttpRequest): string {
  return originalUrl;
}
