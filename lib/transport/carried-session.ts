import { type ExecutionContext } from '@nestjs/common';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import { type Session } from '../ledger/session.js';
import { handlerName } from './transport.js';
import { transportOf } from './transport-of.js';
import { transportMessages } from './transport.messages.js';

/** A session that `SessionGuard` has read, and the `SessionStore` that it was read from. */
interface KeptSession {
  readonly session: Session;
  readonly store: object;
}

const sessions = new WeakMap<object, KeptSession | null>();

/**
 * Stores the session for this call of the handler, and in GraphQL for the fields below; `null` if the session is optional
 * and the request names none.
 */
export function keepSession(context: ExecutionContext, kept: KeptSession | null): void {
  const [carrier] = transportOf(context).carriers(context);
  sessions.set(carrier, kept);
}

/** Returns the session of this call of the handler; `undefined` if it has none. */
export function keptSession(context: ExecutionContext): KeptSession | undefined {
  return keptOf(context).find((each) => each) ?? undefined;
}

/** @throws SessionsConfigurationError if `SessionGuard` did not run */
export function sessionOf(context: ExecutionContext, asks: string): Session | undefined {
  const kept = keptOf(context);
  const found = kept.find((each) => each);
  if (found || kept.includes(null)) return found?.session;
  throw new SessionsConfigurationError(transportMessages.guardDidNotRun(handlerName(context), asks));
}

/**
 * @param asks what the handler uses that needs a session, as in `asks for @CurrentTurn()`
 * @param guards the required guards, in their order
 * @throws SessionsConfigurationError if `SessionGuard` found none
 */
export function requiredSession(context: ExecutionContext, asks: string, guards: string): Session {
  const kept = keptSession(context);
  if (kept) return kept.session;
  throw new SessionsConfigurationError(transportMessages.noSession(handlerName(context), asks, guards));
}

function keptOf(context: ExecutionContext): (KeptSession | null | undefined)[] {
  const carriers = transportOf(context).carriers(context);
  return carriers.map((carrier) => sessions.get(carrier));
}
