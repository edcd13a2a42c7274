import { ServerResponse } from 'node:http';

/** The part of an Express response or Fastify reply that the controllers of this package use. */
export interface HttpResponse {
  header(name: string, value: string): unknown;
}

/** Returns Node's response. */
export function rawResponse(response: HttpResponse): ServerResponse {
  return response instanceof ServerResponse ? response : (response as unknown as { readonly raw: ServerResponse }).raw;
}
