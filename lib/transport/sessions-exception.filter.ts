import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { traceOf } from '../common/error-trace.js';
import { SessionsError } from '../common/sessions.error.js';
import { replyError } from '../http/reply-error.js';
import { isApplicationFault, toErrorBody } from './sessions-error-body.js';

/** Answers domain errors over HTTP with a stable body: no stack, no store internals. forRoot installs it. */
@Catch(SessionsError)
export class SessionsExceptionFilter implements ExceptionFilter<SessionsError> {
  private readonly logger = new Logger(SessionsExceptionFilter.name);

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  catch(error: SessionsError, host: ArgumentsHost): void {
    // Other transports have filters of their own.
    if (host.getType() !== 'http') throw error;
    // The client is told nothing of it, so somebody else must be.
    if (isApplicationFault(error)) this.logger.error(traceOf(error));
    const http = host.switchToHttp();
    replyError(this.adapterHost.httpAdapter, http.getRequest(), http.getResponse(), toErrorBody(error));
  }
}
