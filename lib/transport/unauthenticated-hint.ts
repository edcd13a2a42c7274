import { type ExecutionContext, Logger } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { handlerName } from './transport.js';
import { allowsAnonymous } from './session.decorators.js';
import { transportOf } from './transport-of.js';

/** Logs once that guards may be in the wrong order. The client is only asked to sign in, even if it did. */
export class UnauthenticatedHint {
  private readonly logger = new Logger('SessionGuard');
  private readonly reflector = new Reflector();
  private told = false;

  tell(context: ExecutionContext): void {
    // Filters have no handler.
    const handler = context.getHandler() as unknown;
    if (this.told || !handler || allowsAnonymous(this.reflector, context)) return;
    this.told = true;
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
