import { type ArgumentsHost, Catch, type ExceptionFilter, type ExecutionContext, Inject, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { traceOf } from '../../common/error-trace.js';
import { PRINCIPAL_RESOLVER } from '../../sessions.tokens.js';
import { type Principal, type PrincipalResolver } from '../../transport/principal.js';
import { replyError } from '../reply-error.js';
import { StateAudit } from './state-audit.js';
import { callOf, type StateHttpRequest } from './state-call.js';
import { isFault, toStateErrorBody } from './state-error-body.js';
import { operationAt } from './state-paths.js';

/** Answers every error of the control plane in one shape, also those of guards and of the framework (STA-26), and tells the audit. */
@Catch()
export class StateExceptionFilter implements ExceptionFilter<unknown> {
  private readonly logger = new Logger(StateExceptionFilter.name);

  constructor(
    private readonly adapterHost: HttpAdapterHost,
    private readonly audit: StateAudit,
    @Inject(PRINCIPAL_RESOLVER) private readonly principal: PrincipalResolver,
  ) {}

  /** Never rejects: Nest does not wait for it, and what nobody catches ends the process. */
  async catch(error: unknown, host: ArgumentsHost): Promise<void> {
    try {
      const http = host.switchToHttp();
      const request = http.getRequest<StateHttpRequest>();
      this.reply(error, request, http.getResponse());
      const call = this.callAt(request);
      // A guard of the application's refused; perhaps after another one had found out who it is.
      if (!call.told) call.principal ??= await this.principalOf(host);
      this.audit.refused(call, error, request.body);
    } catch (failure) {
      this.log(failure);
    }
  }

  /** For errors from before the route: nobody is known yet. Never throws. */
  catchEarly(error: unknown, request: StateHttpRequest, response: object): void {
    try {
      this.reply(error, request, response);
      this.audit.refused(this.callAt(request), error);
    } catch (failure) {
      this.log(failure);
    }
  }

  private reply(error: unknown, request: StateHttpRequest, response: object): void {
    if (isFault(error)) this.log(error);
    replyError(this.adapterHost.httpAdapter, request, response, toStateErrorBody(error));
  }

  private log(error: unknown): void {
    this.logger.error(traceOf(error));
  }

  private callAt(request: StateHttpRequest): ReturnType<typeof callOf> {
    return callOf(request, operationAt(request.originalUrl ?? request.url) ?? 'describe');
  }

  private async principalOf(host: ArgumentsHost): Promise<Principal | undefined> {
    try {
      // Nest hands filters of HTTP the context that guards get, without class and handler.
      return (await this.principal(host as ExecutionContext)) ?? undefined;
    } catch {
      return undefined;
    }
  }
}
