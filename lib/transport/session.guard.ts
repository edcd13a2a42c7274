import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { assertId } from '../common/ids.js';
import { SessionNotFoundError, SessionStateError } from '../session/session.errors.js';
import { type Session } from '../session/session.js';
import { SessionStore } from '../session/session-store.service.js';
import { PRINCIPAL_RESOLVER } from '../sessions.tokens.js';
import { SessionIdMissingError, UnauthenticatedError } from './transport.errors.js';
import { ownsSession, type Principal, type PrincipalResolver } from './principal.js';
import { keepSession } from './request-session.js';
import { allowsAnonymous, type SessionIdSource, UseSession, type UseSessionOptions } from './session.decorators.js';

interface RequestParts {
  readonly headers?: Record<string, unknown>;
  readonly params?: Record<string, unknown>;
  readonly query?: Record<string, unknown>;
  readonly cookies?: Record<string, unknown>;
}

/**
 * Loads the session that a request names, checks that it is the signed-in user's and in an allowed state, touches it and
 * hands it to `@CurrentSession()` (NST-10 to NST-12). Handlers without `@UseSession()` pass.
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

    const source = options.from ?? 'header:x-session-id';
    const sessionId = await this.sessionIdOf(context, source);
    if (sessionId === undefined) {
      if (options.optional) return true;
      throw new SessionIdMissingError(typeof source === 'function' ? 'where the application looks for it' : source);
    }
    assertId(sessionId, 'sessionId');
    const session = await this.sessions.get(sessionId);
    if (!session || (principal && !this.owns(principal, session))) throw new SessionNotFoundError(sessionId);
    this.assertState(session, options);
    keepSession(context, options.touch === false ? session : await this.sessions.touch(session.id));
    return true;
  }

  protected async principalOf(context: ExecutionContext): Promise<Principal | null | undefined> {
    return this.principal(context);
  }

  protected owns(principal: Principal, session: Session): boolean {
    return ownsSession(principal, session);
  }

  protected assertState(session: Session, { states }: UseSessionOptions): void {
    const allowed = states ? states.includes(session.state) : session.state !== 'expired';
    if (!allowed) throw new SessionStateError(session.id, session.state, 'use');
    // One whose lifetime is over counts as expired, though no sweep has come by yet.
    if (session.state !== 'expired' && this.sessions.isOver(session)) {
      throw new SessionStateError(session.id, 'expired', 'use');
    }
  }

  protected async sessionIdOf(context: ExecutionContext, source: SessionIdSource): Promise<string | undefined> {
    if (typeof source === 'function') return source(context);
    const request = context.switchToHttp().getRequest<RequestParts>();
    const [kind, name] = split(source);
    const values = { header: request.headers, param: request.params, query: request.query, cookie: request.cookies }[
      kind
    ];
    const value = values && Object.hasOwn(values, name) ? values[name] : undefined;
    // A repeated header or parameter is no id: assertId refuses what is not a text.
    return value === '' ? undefined : (value as string | undefined);
  }
}

function split(source: string): ['header' | 'param' | 'query' | 'cookie', string] {
  const at = source.indexOf(':');
  const kind = source.slice(0, at) as 'header' | 'param' | 'query' | 'cookie';
  const name = source.slice(at + 1);
  return [kind, kind === 'header' ? name.toLowerCase() : name];
}
