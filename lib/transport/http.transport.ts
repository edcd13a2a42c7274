import { type ArgumentsHost } from '@nestjs/common';
import { rawRequest } from './raw-request.js';
import { type Transport } from './transport.js';

/** What Express and Fastify have in common. */
export interface HttpRequest {
  readonly headers?: unknown;
  readonly params?: unknown;
  readonly query?: unknown;
  /** By the application's cookie parser. */
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

function requestOf(host: ArgumentsHost): HttpRequest {
  return host.switchToHttp().getRequest<HttpRequest>();
}
