import { type ExecutionContext } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type Session } from '../ledger/session.js';
import { handlerName } from './handler-name.js';
import { transportOf } from './transport-of.js';

const sessions = new WeakMap<object, Session | null>();

/** For this run of the handler, and in GraphQL for what is resolved below its field; `null` where the request may name none. */
export function keepSession(context: ExecutionContext, session: Session | null): void {
  const [carrier] = transportOf(context).carriers(context);
  sessions.set(carrier, session);
}

/** @throws SessionsConfigurationError when `SessionGuard` did not look for one */
export function sessionOf(context: ExecutionContext, asked: string): Session | undefined {
  const kept = keptOf(context);
  const session = kept.find((each) => each);
  if (session || kept.includes(null)) return session ?? undefined;
  throw new SessionsConfigurationError(
    `${handlerName(context)} asks for ${asked}, and no guard has looked for a session: it needs @UseSession() and SessionGuard, for ` +
      'example @UseGuards(AuthGuard, SessionGuard).',
  );
}

/**
 * @param asks what the handler does that needs one, as in `asks for @CurrentTurn()`
 * @param guards the guards that it needs, in their order
 * @throws SessionsConfigurationError when `SessionGuard` found none
 */
export function requiredSession(context: ExecutionContext, asks: string, guards: string): Session {
  const session = keptOf(context).find((each) => each);
  if (session) return session;
  throw new SessionsConfigurationError(
    `${handlerName(context)} ${asks}, and there is no session: it needs @UseSession(), not optional, and SessionGuard, for ` +
      `example @UseGuards(${guards}).`,
  );
}

function keptOf(context: ExecutionContext): (Session | null | undefined)[] {
  const carriers = transportOf(context).carriers(context);
  return carriers.map((carrier) => sessions.get(carrier));
}
