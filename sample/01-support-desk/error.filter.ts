import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, HttpStatus, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { SessionsError, SessionsExceptionFilter } from 'nestjs-agent-sessions';

/** Gives every error the form of SessionsExceptionFilter: a status, a code and a message. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger(ErrorFilter.name);
  private readonly domain: SessionsExceptionFilter;

  constructor(private readonly adapterHost: HttpAdapterHost) {
    this.domain = new SessionsExceptionFilter(adapterHost);
  }

  catch(error: unknown, host: ArgumentsHost): void {
    if (SessionsError.isInstance(error)) {
      this.domain.catch(error, host);
      return;
    }
    const statusCode = statusOf(error);
    if (statusCode === 500) this.logger.error(error instanceof Error ? error.stack : String(error));
    const code = HttpStatus[statusCode] ?? 'ERROR';
    const message = statusCode === 500 ? 'Internal server error' : messageOf(error);
    this.adapterHost.httpAdapter.reply(host.switchToHttp().getResponse(), { statusCode, code, message }, statusCode);
  }
}

/** Errors of the body parser are not HttpExceptions, but have a status. */
function statusOf(error: unknown): number {
  if (error instanceof HttpException) return error.getStatus();
  const { statusCode } = error as { statusCode?: unknown };
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? statusCode : 500;
}

function messageOf(error: unknown): string {
  if (!(error instanceof HttpException)) return (error as Error).message;
  const response: { message?: string | string[] } | string = error.getResponse();
  const message = typeof response === 'string' ? response : (response.message ?? error.message);
  return Array.isArray(message) ? message.join('; ') : message;
}
