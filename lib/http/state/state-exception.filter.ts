import { type ArgumentsHost, Catch, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { PRINCIPAL_RESOLVER } from '../../common/sessions.tokens.js';
import { type StateOperation } from '../../state/state-report.js';
import { type Principal, type PrincipalResolver } from '../../transport/principal.js';
import { ControllersExceptionFilter } from '../controllers/controllers-exception.filter.js';
import { addressOf, type HttpRequest } from '../controllers/http-request.js';
import { StateAudit } from './state-audit.js';
import { callOf } from './state-call.js';
import { type StateErrorBody, toStateErrorBody, StateStoresFailedError } from './state-http.errors.js';

/** Responds to every error of the control plane, and reports it to the audit log (STA-26). */
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
    // Errors of modules were logged where they were caught.
    return !(error instanceof StateStoresFailedError) && super.isFault(error);
  }

  protected override async answered(error: unknown, request: HttpRequest, host?: ArgumentsHost): Promise<void> {
    const call = callOf(request, operationAt(addressOf(request)) ?? 'describe');
    if (host === undefined) {
      this.audit.refused(call, error);
      return;
    }
    // A guard of the application rejected the request, possibly after another one authenticated the user.
    if (!call.reported) call.principal ??= await this.principalOf(host);
    this.audit.refused(call, error, request.body);
  }

  private async principalOf(host: ArgumentsHost): Promise<Principal | undefined> {
    try {
      // In HTTP, Nest passes filters the context of guards, without class and handler.
      return (await this.principal(host as ExecutionContext)) ?? undefined;
    } catch {
      return undefined;
    }
  }
}

const STATE_OPERATIONS = ['describe', 'reset', 'compact'] as const satisfies readonly StateOperation[];

const END = new RegExp(`/(${STATE_OPERATIONS.join('|')})/?$`, 'i');

/** Returns the operation at the end of a URL; `null` if none exists. */
export function operationAt(url: string): StateOperation | null {
  const [address] = url.split(/[?#]/);
  return (END.exec(decoded(address))?.[1].toLowerCase() as StateOperation | undefined) ?? null;
}

function decoded(address: string): string {
  try {
    return decodeURI(address);
  } catch {
    return address;
  }
}
