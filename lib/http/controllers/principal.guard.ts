import { type CanActivate, createParamDecorator, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { PRINCIPAL_RESOLVER } from '../../common/sessions.tokens.js';
import { UnauthenticatedError } from '../../transport/transport.errors.js';
import { type Principal, type PrincipalResolver } from '../../transport/principal.js';
import { rawRequest } from '../../transport/http.transport.js';

const principals = new WeakMap<object, Principal>();

/** Requires a signed-in user, for handlers without a session (NST-11). */
@Injectable()
export class PrincipalGuard implements CanActivate {
  constructor(@Inject(PRINCIPAL_RESOLVER) private readonly principal: PrincipalResolver) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const principal = await this.principal(context);
    if (!principal) throw new UnauthenticatedError();
    principals.set(carrier(context), principal);
    return true;
  }
}

/** Returns the principal that `PrincipalGuard` found. That guard must have run. */
export function principalOf(context: ExecutionContext): Principal {
  return principals.get(carrier(context)) as Principal;
}

/** Injects the principal that `PrincipalGuard` found. */
export const CurrentPrincipal = createParamDecorator((_: unknown, context: ExecutionContext) => principalOf(context));

function carrier(context: ExecutionContext): object {
  return rawRequest(context.switchToHttp().getRequest());
}
