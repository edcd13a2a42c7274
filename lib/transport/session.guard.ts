import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { assertId } from '../common/ids.js';
import { SessionNotFoundError, SessionStateError } from '../ledger/session.errors.js';
import { type Session } from '../ledger/session.js';
import { SessionStore } from '../session/session-store.service.js';
import { PRINCIPAL_RESOLVER } from '../common/sessions.tokens.js';
import { keepSession } from './carried-session.js';
import { type IdSource, readSource } from './id-source.js';
import { ownsSession, type Principal, type PrincipalResolver } from './principal.js';
import { allowsAnonymous, UseSession, type UseSessionOptions } from './session.decorators.js';
import { transportOf } from './transport-of.js';
import { SessionIdMissingError, UnauthenticatedError } from './transport.errors.js';

/**
 * Loads the session that a request or a message names, checks that it is the signed-in user's and in an allowed state, touches
 * it and hands it to `@CurrentSession()` (NST-10 to NST-12): in HTTP, WebSocket, GraphQL and microservices. Handlers without
 * `@UseSession()` pass.
 *
 * 401 without a user; 400 without or with a malformed id; the same 404 for an unknown and for somebody else's session;
 * 410 for an expired one. Override the protected methods to change one of these decisions.
 */
@Injectable()
export class SessionGuard implements CanActivate {
  constructor(
    protected readonly sessions: SessionStore,
    protected readonly reflector: Reflector,
    @Inject(PRINCIPAL_RESOLVER) private readonly principal: PrincipalResolver,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const options = this.reflector.getAllAndOverride(UseSession, [context.getHandler(), context.getClass()]);
    if (!options) return true;
    const principal = await this.principalOf(context);
    if (!principal && !allowsAnonymous(this.reflector, context)) throw new UnauthenticatedError();

    const source = options.from ?? transportOf(context).sessionAt;
    const sessionId = await this.sessionIdOf(context, source);
    if (sessionId === undefined) {
      if (!options.optional)
        throw new SessionIdMissingError(typeof source === 'function' ? 'where the application looks for it' : source);
      keepSession(context, null);
      return true;
    }
    assertId(sessionId, 'sessionId');
    const session = await this.sessions.get(sessionId);
    if (!session || (principal && !this.owns(principal, session))) throw new SessionNotFoundError(sessionId);
    this.assertState(session, options);
    // What is over is never touched: nothing brings it back.
    const touched = options.touch !== false && !this.sessions.isOver(session);
    keepSession(context, touched ? await this.sessions.touch(session.id) : session);
    return true;
  }

  /**
   * Who asks; `null` or `undefined`: nobody who is known. Such a request is refused (UnauthenticatedError), except where
   * `@AllowAnonymousSession()` lets it through.
   */
  protected async principalOf(context: ExecutionContext): Promise<Principal | null | undefined> {
    return this.principal(context);
  }

  /** Whether the session is theirs, by user and workspace; one that is not is answered like an unknown one. */
  protected owns(principal: Principal, session: Session): boolean {
    return ownsSession(principal, session);
  }

  /** Whether the session is in a state that the handler takes. @throws SessionStateError */
  protected assertState(session: Session, { states }: UseSessionOptions): void {
    // One whose lifetime is over counts as expired, though no sweep has come by yet.
    const state = this.sessions.isOver(session) ? 'expired' : session.state;
    const allowed = states ? states.includes(state) : state !== 'expired';
    if (!allowed) throw new SessionStateError(session.id, state, 'use');
  }

  /** What stands where the id should; `undefined` where nothing does. It is checked afterwards. */
  protected async sessionIdOf(context: ExecutionContext, source: IdSource): Promise<unknown> {
    return readSource(context, source);
  }
}
