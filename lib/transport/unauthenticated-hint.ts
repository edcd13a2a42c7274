import { type ExecutionContext, Logger } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { handlerName } from './transport.js';
import { allowsAnonymous } from './session.decorators.js';
import { transportOf } from './transport-of.js';
import { transportMessages } from './transport.messages.js';

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
    this.logger.warn(transportMessages.unauthenticated(handlerName(context), adviceFor(context)));
  }
}

function adviceFor(context: ExecutionContext): string {
  const transport = transportOf(context);
  const { userAt } = transport;
  if (userAt === null) return transportMessages.messageUserCure();
  return transport.user(context) ? transportMessages.userIdCure(userAt) : transportMessages.userCure(userAt);
}
