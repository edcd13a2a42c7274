import { type ExecutionContext, Logger } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { handlerName } from './transport.js';
import { allowsAnonymous } from './session.decorators.js';
import { transportOf } from './transport-of.js';

/** Logs once why a request may have no user, because its error only asks the client to sign in, even if it has done so. */
export class UnauthenticatedHint {
  private readonly logger = new Logger('SessionGuard');
  private readonly reflector = new Reflector();
  private isLogged = false;

  logOnce(context: ExecutionContext): void {
    // Filters have no handler.
    const handler = context.getHandler() as unknown;
    if (this.isLogged || !handler || allowsAnonymous(this.reflector, context)) return;
    this.isLogged = true;
    this.logger.warn(
      `${handlerName(context)}: the request is not authenticated. ${adviceFor(context)} This warning is logged once.`,
    );
  }
}

function adviceFor(context: ExecutionContext): string {
  const transport = transportOf(context);
  const { userAt } = transport;
  if (userAt === null) return 'Microservice messages have no user. Set the option principal to identify the sender.';
  if (transport.user(context)) {
    return (
      `The user at ${userAt} has no id. Map the user with the option principal, for example: ` +
      'principal: (context) => ({ userId: context.switchToHttp().getRequest().user.userId }).'
    );
  }
  return (
    `No user at ${userAt}. If the request has credentials, the authentication guard must run before SessionGuard: ` +
    '@UseGuards(AuthGuard, SessionGuard), or globally. For the controllers of this package, add it to their option guards.'
  );
}
