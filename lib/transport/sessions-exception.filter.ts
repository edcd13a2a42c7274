import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { throwError } from 'rxjs';
import { traceOf } from '../common/error-trace.js';
import { SessionsError } from '../common/sessions.error.js';
import { replyError } from './reply-error.js';
import { emitException, type WebSocketLike } from './emit-exception.js';
import { toGraphQLError } from './graphql-error.js';
import { isApplicationFault, toErrorBody } from './sessions-error-body.js';

/**
 * Answers domain errors with a stable body: no stack, no store internals (NST-15). HTTP: the body. GraphQL: an error with it in
 * `extensions`. WebSocket: the event `exception` with it. Microservices: an observable that fails with it.
 *
 * forRoot installs it. Nest asks no installed filter for gateways, nor for a microservice that an application connects without
 * `inheritAppConfig`: there `@UseFilters(SessionsExceptionFilter)`.
 */
@Catch(SessionsError)
export class SessionsExceptionFilter implements ExceptionFilter<SessionsError> {
  private readonly logger = new Logger(SessionsExceptionFilter.name);

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(error: SessionsError, host: ArgumentsHost): unknown {
    const body = toErrorBody(error);
    // The client is told nothing of it, so somebody else must be.
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
        // Whoever brought such contexts has filters for them.
        throw error;
    }
  }
}
