import { type ExecutionContext } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type Session } from '../session/session.js';
import { handlerName } from './handler-name.js';
import { transportOf } from './transport-of.js';

const sessions = new WeakMap<object, Session>();

/** For this run of the handler, and in GraphQL for what is resolved below its field. */
export function keepSession(context: ExecutionContext, session: Session): void {
  const [carrier] = transportOf(context).carriers(context);
  sessions.set(carrier, session);
}

export function sessionOf(context: ExecutionContext): Session | undefined {
  const carriers = transportOf(context).carriers(context);
  return carriers.map((carrier) => sessions.get(carrier)).find((session) => session !== undefined);
}

/** @throws SessionsConfigurationError when `SessionGuard` found none */
export function requiredSession(context: ExecutionContext, what: string): Session {
  const session = sessionOf(context);
  if (session) return session;
  throw new SessionsConfigurationError(
    `${handlerName(context)} requires ${what} of a session, and there is none: it needs @UseSession(), not optional, and ` +
      'SessionGuard before its other guards.',
  );
}
