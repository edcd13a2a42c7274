import { type ArgumentsHost, Catch, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { PRINCIPAL_RESOLVER } from '../../common/sessions.tokens.js';
import { ControllersExceptionFilter } from '../controllers/controllers-exception.filter.js';
import { addressOf, type HttpRequest } from '../controllers/http-request.js';
import { type Principal, type PrincipalResolver } from '../../transport/principal.js';
import { StateAudit } from './state-audit.js';
import { callOf } from './state-call.js';
import { type StateErrorBody, toStateErrorBody } from './state-error-body.js';
import { StateStoresFailedError } from './state-http.errors.js';
import { operationAt } from './state-paths.js';

/** Tells the audit of every error of the control plane, besides answering it (STA-26). */
@Injectable()
@Catch()
export class StateExceptionFilter extends ControllersExceptionFilter {
  constructor(
    adapterHost: HttpAdapterHost,
    private readonly audit: StateAudit,
    @Inject(PRINCIPAL_RESOLVER) private readonly principal: PrincipalResolver,
  ) {
    super(adapterHost);
  }

  protected override bodyOf(error: unknown): StateErrorBody {
    return toStateErrorBody(error);
  }

  protected override isFault(error: unknown): boolean {
    // The module's own was logged where it was caught.
    return !(error instanceof StateStoresFailedError) && super.isFault(error);
  }

  protected override async answered(error: unknown, request: HttpRequest, host?: ArgumentsHost): Promise<void> {
    const call = callOf(request, operationAt(addressOf(request)) ?? 'describe');
    if (host === undefined) {
      this.audit.refused(call, error);
      return;
    }
    // A guard of the application's refused; perhaps after another one had found out who it is.
    if (!call.told) call.principal ??= await this.principalOf(host);
    this.audit.refused(call, error, request.body);
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
