import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { type StateOperation } from '../../state/state-report.js';
import { PRINCIPAL_RESOLVER } from '../../common/sessions.tokens.js';
import { UnauthenticatedError } from '../../transport/transport.errors.js';
import { type PrincipalResolver } from '../../transport/principal.js';
import { assertCapability } from './state-access.js';
import { callOf } from './state-call.js';

/**
 * Runs after the application's guards: resolves the principal and checks its capability for the operation (STA-25).
 * Does not access the store.
 */
@Injectable()
export class StateGuard implements CanActivate {
  constructor(@Inject(PRINCIPAL_RESOLVER) private readonly principal: PrincipalResolver) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const operation = context.getHandler().name as StateOperation;
    const call = callOf(context.switchToHttp().getRequest<object>(), operation);
    const principal = await this.principal(context);
    if (!principal) throw new UnauthenticatedError();
    call.principal = principal;
    assertCapability(principal, `state.${operation}`);
    return true;
  }
}
