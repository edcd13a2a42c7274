import { type ArgumentsHost, Catch, type ExceptionFilter, Injectable, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { traceOf } from '../../common/error-trace.js';
import { type SessionsErrorBody } from '../../common/sessions-error-body.js';
import { replyError } from '../../transport/reply-error.js';
import { isFault, toAnyErrorBody } from './error-body.js';
import { type HttpRequest } from './http-request.js';

/**
 * Converts every error of this package's controllers to one format, including errors of guards, parsers and the
 * framework (NST-15, STA-26).
 */
@Injectable()
@Catch()
export class ControllersExceptionFilter implements ExceptionFilter<unknown> {
  private readonly logger = new Logger(this.constructor.name);

  constructor(private readonly adapterHost: HttpAdapterHost) {}

  /** Never rejects: Nest does not await it, and an unhandled rejection ends the process. */
  async catch(error: unknown, host: ArgumentsHost): Promise<void> {
    try {
      const http = host.switchToHttp();
      await this.answer(error, http.getRequest(), http.getResponse(), host);
    } catch (failure) {
      this.log(failure);
    }
  }

  /** Handles errors from before the route, when the caller is still unknown. Never rejects. */
  async catchEarly(error: unknown, request: HttpRequest, response: object): Promise<void> {
    try {
      await this.answer(error, request, response);
    } catch (failure) {
      this.log(failure);
    }
  }

  protected bodyOf(error: unknown): SessionsErrorBody {
    return toAnyErrorBody(error);
  }

  /** Returns whether the error is a fault of the application and must be logged. */
  protected isFault(error: unknown): boolean {
    return isFault(error);
  }

  /** Called after the response. @param host absent for errors from before the route */
  protected answered(_error: unknown, _request: HttpRequest, _host?: ArgumentsHost): void | Promise<void> {}

  private async answer(error: unknown, request: HttpRequest, response: object, host?: ArgumentsHost): Promise<void> {
    if (this.isFault(error)) this.log(error);
    replyError(this.adapterHost.httpAdapter, request, response, this.bodyOf(error));
    await this.answered(error, request, host);
  }

  private log(error: unknown): void {
    this.logger.error(traceOf(error));
  }
}
