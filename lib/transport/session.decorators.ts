import { createParamDecorator, type ExecutionContext, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { type Session, type SessionState } from '../ledger/session.js';
import { sessionOf } from './carried-session.js';
import { type IdSource } from './id-source.js';

/** What `@UseSession` asks of a request (NST-10). */
export interface UseSessionOptions {
  /** Where the session's id stands. Default `header:x-session-id` in HTTP and GraphQL, `data:sessionId` in WebSocket and microservices. */
  readonly from?: IdSource;
  /** The states in which the handler may run. One past its lifetime counts as `expired`. Default: all but `expired`. */
  readonly states?: readonly SessionState[];
  /** Record activity, which resumes a suspended session; of an expired one there is none. Default true. */
  readonly touch?: boolean;
  /** Let a request without a session id through; the session is then absent. Default false. */
  readonly optional?: boolean;
}

/** For handlers: the session that `SessionGuard` must find (NST-10). On a class it holds for all of its handlers. */
export const UseSession = Reflector.createDecorator<UseSessionOptions, UseSessionOptions>({
  transform: (options) => options ?? {},
});

const ANONYMOUS = Symbol('agent-sessions:anonymous');

/**
 * Lets whoever knows a session's id use it without being its owner (NST-11). For back ends that have no users: the id is
 * then the only secret.
 */
export const AllowAnonymousSession = (): MethodDecorator & ClassDecorator => SetMetadata(ANONYMOUS, true);

export function allowsAnonymous(reflector: Reflector, context: ExecutionContext): boolean {
  return (
    reflector.getAllAndOverride<boolean | undefined>(ANONYMOUS, [context.getHandler(), context.getClass()]) === true
  );
}

/**
 * The session that `SessionGuard` found; `undefined` with `optional` when the request named none. A handler without the guard or
 * without `@UseSession()` fails with a SessionsConfigurationError.
 */
export const CurrentSession = createParamDecorator((_: unknown, context: ExecutionContext): Session | undefined =>
  sessionOf(context, '@CurrentSession()'),
);

/** Its id, by the same rules. */
export const SessionId = createParamDecorator(
  (_: unknown, context: ExecutionContext): string | undefined => sessionOf(context, '@SessionId()')?.id,
);
