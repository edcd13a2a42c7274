import { type ExecutionContext, Logger } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { handlerName } from './handler-name.js';
import { allowsAnonymous } from './session.decorators.js';
import { transportOf } from './transport-of.js';

/** The client is told to sign in. Where it did, and the guards are in the wrong order, only the log can say so; once is enough. */
export class NobodyHint {
  private readonly logger = new Logger('SessionGuard');
  private readonly reflector = new Reflector();
  private told = false;

  tell(context: ExecutionContext): void {
    // Filters ask as well, and know no handler.
    const handler = context.getHandler() as unknown;
    if (this.told || !handler || allowsAnonymous(this.reflector, context)) return;
    this.told = true;
    this.logger.warn(`${handlerName(context)}: nobody is signed in. ${adviceFor(context)} (Said once.)`);
  }
}

function adviceFor(context: ExecutionContext): string {
  const transport = transportOf(context);
  const { userAt } = transport;
  if (userAt === null) return 'Who sends a message of a microservice only the option principal can tell.';
  if (transport.user(context)) {
    return (
      `The user at ${userAt} has no id. Map the user with the option principal, for example: ` +
      'principal: (context) => ({ userId: context.switchToHttp().getRequest().user.userId }).'
    );
  }
  return (
    `There was no user at ${userAt}. If the request brought credentials, the guard that checks them must run before SessionGuard: ` +
    '@UseGuards(AuthGuard, SessionGuard), or globally; for the controllers of this package it stands in their option guards.'
  );
}
