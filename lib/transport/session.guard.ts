import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { assertId } from '../common/ids.js';
import { SessionNotFoundError, SessionStateError } from '../ledger/session.errors.js';
import { isSameSession } from '../ledger/session.lifecycle.js';
import { type Session } from '../ledger/session.js';
import { SessionStore } from '../session/session-store.service.js';
import { PRINCIPAL_RESOLVER } from '../common/sessions.tokens.js';
import { keepSession } from './carried-session.js';
import { GuardHints } from './guard-hints.js';
import { type IdSource, readSource } from './id-source.js';
import { ownsSession, type Principal, type PrincipalResolver } from './principal.js';
import { forbidCaching } from './private-response.js';
import { allowsAnonymous, UseSession, type UseSessionOptions } from './session.decorators.js';
import { transportOf } from './transport-of.js';
import { missingSessionId, UnauthenticatedError } from './transport.errors.js';

/**
 * Loads the session of a request or message, checks its owner and its state, records activity, and provides it to
 * `@CurrentSession()` (NST-10 to NST-12). Supports HTTP, WebSocket, GraphQL and microservices. Handlers without
 * `@UseSession()` are ignored.
 *
 * Fails with 401 without a user, 400 for a missing or malformed id, the same 404 for an unknown session and for
 * another user's session, and 410 for an expired one. HTTP responses get `Cache-Control: private, no-store`, unless the
 * handler sets another value (FIX-76). Override the protected methods to change these decisions.
 */
@Injectable()
export class SessionGuard implements CanActivate {
  private readonly hints = new GuardHints();

  constructor(
    protected readonly sessions: SessionStore,
    protected readonly reflector: Reflector,
    @Inject(PRINCIPAL_RESOLVER) private readonly principal: PrincipalResolver,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const options = this.reflector.getAllAndOverride(UseSession, [context.getHandler(), context.getClass()]);
    if (!options) return true;
    if (context.getType() === 'http') forbidCaching(context.switchToHttp().getResponse());
    const principal = await this.principalOf(context);
    if (!principal && !allowsAnonymous(this.reflector, context)) throw new UnauthenticatedError();

    const { sessionAt } = transportOf(context);
    const source = options.from ?? sessionAt;
    const sessionId = await this.sessionIdOf(context, source);
    if (sessionId === undefined) {
      if (!options.optional) {
        if (options.from === undefined) this.hints.routeParameter(context, sessionAt);
        throw missingSessionId(source);
      }
      keepSession(context, null);
      return true;
    }
    assertId(sessionId, 'sessionId');
    const session = await this.sessions.get(sessionId);
    const isOwn = !session || !principal || this.owns(principal, session);
    if (!isOwn) this.hints.otherOwner(context);
    if (!session || !isOwn) throw new SessionNotFoundError(sessionId);
    this.assertState(session, options);
    // Do not touch a session that is over: it cannot be resumed.
    const touched = options.touch !== false && !this.sessions.isOver(session);
    const current = touched ? await this.touchSame(session) : session;
    keepSession(context, { session: current, store: this.sessions });
    return true;
  }

  /** @throws SessionNotFoundError also if the id was deleted and created again meanwhile (FIX-90) */
  private async touchSame(session: Session): Promise<Session> {
    const touched = await this.sessions.touch(session.id, { session });
    // A subclass may ignore the options.
    if (!isSameSession(session, touched)) throw new SessionNotFoundError(session.id);
    return touched;
  }

  /**
   * Returns the principal of the request, or `null` or `undefined` if it is unknown. Such a request is rejected with
   * UnauthenticatedError, unless `@AllowAnonymousSession()` allows it.
   */
  protected async principalOf(context: ExecutionContext): Promise<Principal | null | undefined> {
    return this.principal(context);
  }

  /**
   * Returns whether the session belongs to the principal, by user and workspace. If not, the response is that for an
   * unknown session.
   */
  protected owns(principal: Principal, session: Session): boolean {
    return ownsSession(principal, session);
  }

  /** Checks that the handler accepts the state of the session. @throws SessionStateError */
  protected assertState(session: Session, { states }: UseSessionOptions): void {
    const state = this.sessions.currentState(session);
    const allowed = states ? states.includes(state) : state !== 'expired';
    if (!allowed) throw new SessionStateError(session.id, state, 'use');
  }

  /** Returns the unvalidated value at the location of the id; `undefined` if none exists. */
  protected async sessionIdOf(context: ExecutionContext, source: IdSource): Promise<unknown> {
    return readSource(context, source);
  }
}
