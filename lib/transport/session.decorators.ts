import { type ExecutionContext } from '@nestjs/common';
import { type ReflectableDecorator, type Reflector } from '@nestjs/core';
import { MethodMark } from '../common/method-mark.js';
import { type Session, type SessionState } from '../ledger/session.js';
import { sessionOf } from './carried-session.js';
import { assertSource, type IdSource } from './id-source.js';
import { sessionParameter } from './session-parameter.js';

/** The options of `@UseSession` (NST-10). */
export interface UseSessionOptions {
  /** The location of the session id. Default `header:x-session-id` in HTTP and GraphQL, `data:sessionId` in WebSocket and microservices. */
  readonly from?: IdSource;
  /** The session states in which the handler may run. A session past its lifetime counts as `expired`. Default: all but `expired`. */
  readonly states?: readonly SessionState[];
  /** Whether to record activity, which resumes a suspended session but not an expired one. Default true. */
  readonly touch?: boolean;
  /** Whether to allow a request without a session id; the session is then `undefined`. Default false. */
  readonly optional?: boolean;
}

/** The mark of {@link UseSession}. */
export const USED_SESSION = new MethodMark<UseSessionOptions>('@UseSession()', 'agent-sessions:use-session');

/**
 * Requires a session, which `SessionGuard` loads (NST-10). On a class it applies to all handlers. The start stops if a handler lacks the
 * guard (FIX-72).
 */
export const UseSession: ReflectableDecorator<UseSessionOptions, UseSessionOptions> = Object.assign(
  (options: UseSessionOptions = {}) =>
    USED_SESSION.decorate(options, (place) => assertSource(place, '@UseSession()', options.from)),
  { KEY: USED_SESSION.key },
);

/** The mark of {@link AllowAnonymousSession}. */
export const ANONYMOUS_SESSION = new MethodMark<true>('@AllowAnonymousSession()', 'agent-sessions:anonymous');

/**
 * Allows any caller that knows the session id to use the session (NST-11). Use it in back ends without users: the id is then the only
 * secret.
 */
export const AllowAnonymousSession = (): MethodDecorator & ClassDecorator => ANONYMOUS_SESSION.decorate(true);

export function allowsAnonymous(reflector: Reflector, context: ExecutionContext): boolean {
  return (
    reflector.getAllAndOverride<boolean | undefined>(ANONYMOUS_SESSION.key, [
      context.getHandler(),
      context.getClass(),
    ]) === true
  );
}

/**
 * Injects the session that `SessionGuard` loaded; `undefined` with `optional` if the request has no session id. The start stops if
 * a handler lacks `@UseSession()` or the guard (DAY-04).
 */
export const CurrentSession = sessionParameter(
  '@CurrentSession()',
  (_: unknown, context: ExecutionContext): Session | undefined => sessionOf(context, 'asks for @CurrentSession()'),
);

/** Injects the session id, by the same rules. */
export const SessionId = sessionParameter(
  '@SessionId()',
  (_: unknown, context: ExecutionContext): string | undefined => sessionOf(context, 'asks for @SessionId()')?.id,
);
