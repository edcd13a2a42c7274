import { type ArgumentsHost } from '@nestjs/common';
import { type Transport } from './transport.js';

/** The common part of requests in Express and Fastify. */
export interface RequestFields {
  readonly headers?: unknown;
  readonly params?: unknown;
  readonly query?: unknown;
  /** Set by the application's cookie parser. */
  readonly cookies?: unknown;
  readonly body?: unknown;
  readonly user?: unknown;
}

export const httpTransport: Transport = {
  subject: 'an HTTP request',
  sessionAt: 'header:x-session-id',
  turnAt: 'param:turnId',
  userAt: 'request.user',

  parts(host) {
    const { headers, params, query, cookies, body = {} } = requestOf(host);
    return { header: headers, param: params, query, cookie: cookies, data: body };
  },

  user: (host) => requestOf(host).user,

  carriers: (host) => [rawRequest(requestOf(host))],
};

function requestOf(host: ArgumentsHost): RequestFields {
  return host.switchToHttp().getRequest<RequestFields>();
}

/** Returns the raw request, because guards and handlers in Fastify receive different wrappers of it. */
export function rawRequest(request: object): object {
  const { raw } = request as { readonly raw?: unknown };
  // The field may have another meaning in other frameworks.
  return typeof raw === 'object' && raw !== null && 'headers' in raw ? raw : request;
}
