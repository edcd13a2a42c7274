import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { throwError } from 'rxjs';
import { traceOf } from '../common/error-trace.js';
import { SessionsError } from '../common/sessions.error.js';
import { replyError } from './reply-error.js';
import { isApplicationFault, toErrorBody, type SessionsErrorBody } from '../common/sessions-error-body.js';

/**
 * Converts domain errors to a stable body without stack or store internals (NST-15). HTTP: the body. GraphQL: an error
 * with the body in `extensions`. WebSocket: the event `exception` with the body. Microservices: an observable that
 * fails with the body.
 *
 * forRoot installs it. Nest does not apply it to gateways, nor to microservices connected without `inheritAppConfig`:
 * use `@UseFilters(SessionsExceptionFilter)` there.
 */
@Catch(SessionsError)
export class SessionsExceptionFilter implements ExceptionFilter<SessionsError> {
  private readonly logger = new Logger(SessionsExceptionFilter.name);

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(error: SessionsError, host: ArgumentsHost): unknown {
    const body = toErrorBody(error);
    // The client receives no details, so log them.
    if (isApplicationFault(error)) this.logger.error(traceOf(error));
    switch (host.getType<string>()) {
      case 'http': {
        const http = host.switchToHttp();
        return replyError(this.adapterHost.httpAdapter, http.getRequest(), http.getResponse(), body);
      }
      case 'graphql':
        return toGraphQLError(body);
      case 'ws':
        return emitException(host.switchToWs().getClient<WebSocketLike>(), body);
      case 'rpc':
        return throwError(() => body);
      default:
        // Contexts of other kinds have their own filters.
        throw error;
    }
  }
}

/**
 * A socket of Socket.IO, of `ws`, or of another standard WebSocket library. For the latter two, `emit` sends nothing.
 */
export interface WebSocketLike {
  readonly readyState?: number;
  readonly send: (text: string) => void;
  readonly emit: (event: string, payload: object) => void;
}

/** Emits an error like Nest: as the event `exception`, even if the client asked for an acknowledgement. */
export function emitException(client: WebSocketLike, body: SessionsErrorBody): void {
  if (typeof client.readyState === 'number') client.send(JSON.stringify({ event: 'exception', data: body }));
  else client.emit('exception', body);
}

/** Converts the body to an error of a resolver: GraphQL servers send `message` and `extensions` to the client. */
export function toGraphQLError({ message, ...extensions }: SessionsErrorBody): Error {
  // Apollo exposes the stack in development, so it contains only what the response does.
  return Object.assign(new Error(message), { extensions, stack: `${extensions.code}: ${message}` });
}
