import { Delete, Get, HttpCode, Inject, Patch, Post, Req, type Type, UseGuards } from '@nestjs/common';
import { InvalidInputError } from '../../common/sessions.error.js';
import { SESSION_STATES, type Session } from '../../ledger/session.js';
import { isChildSession } from '../../session/is-child-session.js';
import { SessionStore } from '../../session/session-store.service.js';
import { type Principal } from '../../transport/principal.js';
import { CurrentSession, UseSession } from '../../transport/session.decorators.js';
import { SessionGuard } from '../../transport/session.guard.js';
import { missingSessionId } from '../../transport/transport.errors.js';
import { ControllersExceptionFilter } from '../controllers/controllers-exception.filter.js';
import { type SessionsControllerOptions } from '../controllers/controllers.options.js';
import { GuardedController } from '../controllers/guarded-controller.js';
import { type HttpRequest, readBody, readQuery } from '../controllers/http-request.js';
import { CurrentPrincipal, PrincipalGuard } from '../controllers/principal.guard.js';
import { type SessionView, toSessionView } from './session-view.js';
import { describedAs } from './sessions-openapi.js';
import { CreateSessionBody, ListSessionsQuery, RevokeSessionsBody, UpdateSessionBody } from './sessions.inputs.js';

/** A page of sessions, as their owner sees them. */
interface SessionList {
  readonly sessions: readonly SessionView[];
  readonly nextCursor?: string;
}

/** The number of ended sessions. */
interface Revoked {
  readonly revoked: number;
}

/**
 * Creates the controller for the principal's own sessions, protected by these guards. Session ids are never part of a
 * URL (NST-17).
 */
export function sessionsController(options: SessionsControllerOptions): Type<unknown> {
  const { guards, path = 'sessions', allowClientIds = false } = options;

  @GuardedController({ path, guards: [...guards, SessionGuard], filter: ControllersExceptionFilter })
  class SessionsController {
    constructor(@Inject(SessionStore) private readonly sessions: SessionStore) {}

    @Post()
    @UseGuards(PrincipalGuard)
    @describedAs('create', allowClientIds)
    async create(@Req() request: HttpRequest, @CurrentPrincipal() principal: Principal): Promise<SessionView> {
      const { id, surfaceId, metadata } = readBody(CreateSessionBody, request);
      if (id !== undefined && !allowClientIds) {
        throw new InvalidInputError('body.id', 'must not be set. The server generates session ids.');
      }
      const session = await this.sessions.create({
        ...ownerOf(principal),
        ...(id === undefined ? {} : { id }),
        ...(surfaceId === undefined ? {} : { initialSurfaceId: surfaceId }),
        ...(metadata === undefined ? {} : { metadata }),
      });
      return this.view(session);
    }

    @Get()
    @UseGuards(PrincipalGuard)
    @describedAs('list')
    async list(@Req() request: HttpRequest, @CurrentPrincipal() principal: Principal): Promise<SessionList> {
      const query = readQuery(ListSessionsQuery, request, ['limit']);
      // The cursor contains a session id, and URLs are logged (NST-17).
      const { 'x-cursor': cursor } = request.headers;
      // A principal without a workspace sees sessions without a workspace (NST-24).
      const owner = { workspaceId: null, ...ownerOf(principal) };
      const { sessions, nextCursor } = await this.sessions.page({
        ...query,
        ...owner,
        ...(cursor === undefined ? {} : { cursor: String(cursor) }),
      });
      // The store filters by the stored state, which the sweep may not have updated yet.
      const states = [query.state ?? SESSION_STATES].flat();
      const shown = sessions.filter((session) => !isChildSession(session)).map((session) => this.view(session));
      return {
        sessions: shown.filter(({ state }) => states.includes(state)),
        ...(nextCursor === undefined ? {} : { nextCursor }),
      };
    }

    @Get('current')
    @UseSession({ touch: false })
    @describedAs('get')
    get(@CurrentSession() session: Session): SessionView {
      return this.view(session);
    }

    @Patch('current')
    @UseSession({ touch: false })
    @describedAs('update')
    async update(@Req() request: HttpRequest, @CurrentSession() session: Session): Promise<SessionView> {
      const { metadata = {}, ...options } = readBody(UpdateSessionBody, request);
      return this.view(await this.sessions.updateMetadata(session.id, metadata, { ...options, session }));
    }

    @Delete('current')
    @HttpCode(204)
    @UseSession({ touch: false, states: SESSION_STATES })
    @describedAs('end')
    async end(@CurrentSession() session: Session): Promise<void> {
      await this.sessions.revoke(session.id, { session });
    }

    @Post('revoke')
    @HttpCode(200)
    @UseGuards(PrincipalGuard)
    @UseSession({ touch: false, states: SESSION_STATES, optional: true })
    @describedAs('revoke')
    async revoke(
      @Req() request: HttpRequest,
      @CurrentPrincipal() { userId, workspaceId }: Principal,
      @CurrentSession() session: Session | undefined,
    ): Promise<Revoked> {
      const { exceptCurrent = false } = readBody(RevokeSessionsBody, request);
      if (exceptCurrent && !session) throw missingSessionId('header:x-session-id');
      const except = exceptCurrent && session ? [session.id] : [];
      const revoked = await this.sessions.revokeAll(userId, { workspaceId: workspaceId ?? null, except });
      return { revoked: revoked.length };
    }

    private view(session: Session): SessionView {
      return toSessionView(session, this.sessions.currentState(session));
    }
  }
  return SessionsController;
}

function ownerOf({ userId, workspaceId }: Principal): { readonly userId: string; readonly workspaceId?: string } {
  return { userId, ...(workspaceId === undefined ? {} : { workspaceId }) };
}
