import 'reflect-metadata';
import { Controller, type ExecutionContext, Get, Injectable, UseGuards } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import {
  AllowAnonymousSession,
  CurrentSession,
  memoryAdapter,
  type Principal,
  type Session,
  SessionGuard,
  SessionId,
  SessionsModule,
  SessionStore,
  UseSession,
} from 'nestjs-agent-sessions';
import request from 'supertest';
import { recordingAdapter } from '../support/recording-adapter.js';
import { HeaderAuthGuard, type HttpApp, PLATFORMS, type Seen, seen } from './http-app.js';

@Controller('chat')
@UseGuards(HeaderAuthGuard, SessionGuard)
class ChatController {
  @Get()
  @UseSession()
  chat(@CurrentSession() session: Session): Seen {
    return seen(session);
  }
}

@Controller('state')
@UseGuards(HeaderAuthGuard, SessionGuard)
class StatesController {
  @Get('untouched')
  @UseSession({ touch: false })
  untouched(@CurrentSession() session: Session): Seen {
    return seen(session);
  }

  @Get('active-only')
  @UseSession({ states: ['active'] })
  activeOnly(@CurrentSession() session: Session): Seen {
    return seen(session);
  }

  @Get('ended-only')
  @UseSession({ states: ['expired'] })
  endedOnly(@CurrentSession() session: Session): Seen {
    return seen(session);
  }
}

@Controller('anonymous')
@UseGuards(HeaderAuthGuard, SessionGuard)
@UseSession()
class AnonymousController {
  @Get('allowed')
  @AllowAnonymousSession()
  allowed(@SessionId() id: string): Seen {
    return seen(undefined, id);
  }

  @Get('denied')
  denied(@SessionId() id: string): Seen {
    return seen(undefined, id);
  }
}

@AllowAnonymousSession()
@Controller('anonymous-class')
@UseGuards(HeaderAuthGuard, SessionGuard)
class AnonymousClassController {
  @Get()
  @UseSession()
  allowed(@SessionId() id: string): Seen {
    return seen(undefined, id);
  }
}

/** Overrides a protected method to change a decision, as the documentation describes. */
@Injectable()
class TeamGuard extends SessionGuard {
  protected override owns(principal: Principal, session: Session): boolean {
    return session.metadata.team === principal.userId;
  }
}

@Controller('team')
@UseGuards(HeaderAuthGuard, TeamGuard)
class TeamController {
  @Get()
  @UseSession()
  team(@SessionId() id: string): Seen {
    return seen(undefined, id);
  }
}

@Controller('global')
class GlobalController {
  @Get()
  @UseSession({ optional: true })
  find(@SessionId() id: string | undefined): Seen {
    return seen(undefined, id);
  }
}

describe.each(PLATFORMS)('access through the session guard on $name', ({ start }) => {
  const calls: string[] = [];
  let now = Date.parse('2026-11-21T08:00:00.000Z');
  let app: HttpApp;
  let sessions: SessionStore;

  beforeAll(async () => {
    app = await start({
      imports: [
        SessionsModule.forRoot({
          // No other caller queries the store.
          turns: { reconcileMs: 3_600_000 },
          adapter: recordingAdapter(memoryAdapter({ clock: () => now }), calls),
          sweep: false,
        }),
      ],
      controllers: [ChatController, StatesController, AnonymousController, AnonymousClassController, TeamController],
      providers: [TeamGuard],
    });
    sessions = app.get(SessionStore);
  });

  let other: HttpApp | undefined;

  afterEach(async () => {
    await other?.close();
    other = undefined;
  });

  afterAll(() => app.close());

  const get = (path: string) => request(app.getHttpServer()).get(path);
  const asAnn = (path: string) => get(path).set('x-user-id', 'ann');
  const sessionCalls = () => calls.filter((call) => call.startsWith('sessions.'));
  const idle = (ms: number) => (now += ms);

  describe('the owner of a session', () => {
    it('NST-11 answers 401 without a user, before it queries the store', async () => {
      const { id } = await sessions.create({ userId: 'ann' });
      const before = sessionCalls().length;

      const answer = await get('/chat').set('x-session-id', id).expect(401);

      expect(answer.body).toEqual({
        statusCode: 401,
        code: 'UNAUTHENTICATED',
        message: 'The request has no user. Sign in first.',
      });
      expect(sessionCalls()).toHaveLength(before);
    });

    it('NST-11 gives no way to tell another owner’s session from an unknown one', async () => {
      const { id } = await sessions.create({ userId: 'bob' });
      const unknown = 'f'.repeat(32);

      const foreignAnswer = await watched(() => asAnn('/chat').set('x-session-id', id));
      const unknownAnswer = await watched(() => asAnn('/chat').set('x-session-id', unknown));

      expect(foreignAnswer.status).toBe(404);
      expect(foreignAnswer.calls).toEqual(['sessions.fetchById']);
      expect(unknownAnswer).toEqual({ ...foreignAnswer, text: foreignAnswer.text.replaceAll(id, unknown) });
      expect(JSON.parse(unknownAnswer.text)).toEqual({
        statusCode: 404,
        code: 'SESSION_NOT_FOUND',
        message: `Session not found: ${unknown}`,
        sessionId: unknown,
      });
      expect(await sessions.get(id)).toMatchObject({ state: 'created', version: 1 });
    });

    it('NST-11 does not reveal the state of another owner’s session', async () => {
      const { id } = await sessions.create({ userId: 'bob' });
      await sessions.expire(id);

      await asAnn('/chat').set('x-session-id', id).expect(404);
    });

    it.each([
      [undefined, undefined, 200],
      ['acme', 'acme', 200],
      ['acme', undefined, 404],
      [undefined, 'acme', 404],
      ['acme', 'other', 404],
    ])('NST-11 session of workspace %s, user of workspace %s: %i', async (ofSession, ofUser, status) => {
      const workspace = ofSession === undefined ? {} : { workspaceId: ofSession };
      const { id } = await sessions.create({ userId: 'ann', ...workspace });
      const ask = asAnn('/chat').set('x-session-id', id);

      await (ofUser === undefined ? ask : ask.set('x-workspace-id', ofUser)).expect(status);
    });

    it('NST-11 allows anonymous requests with @AllowAnonymousSession on a handler or a class', async () => {
      const { id } = await sessions.create({ userId: 'ann' });

      await get('/anonymous/allowed').set('x-session-id', id).expect(200);
      await get('/anonymous-class').set('x-session-id', id).expect(200);
      await get('/anonymous/denied').set('x-session-id', id).expect(401);
    });

    it('NST-11 does not give one user the session of another with @AllowAnonymousSession', async () => {
      const { id } = await sessions.create({ userId: 'bob' });

      await asAnn('/anonymous/allowed').set('x-session-id', id).expect(404);
    });

    it('NST-11 calls the application’s principal resolver', async () => {
      other = await start({
        imports: [SessionsModule.forRoot({ principal: async (context) => apiKeyUser(context) })],
        controllers: [ChatController],
      });
      const { id } = await other.get(SessionStore).create({ userId: 'robot', workspaceId: 'acme' });
      const server = other.getHttpServer();
      const ask = () => request(server).get('/chat').set('x-session-id', id);

      await ask().set('x-api-key', 'robot-of-acme').expect(200);
      await ask().set('x-user-id', 'robot').set('x-workspace-id', 'acme').expect(401);
    });

    it('NST-11 lets a subclass decide who owns a session', async () => {
      const { id } = await sessions.create({ userId: 'bob', metadata: { team: 'ann' } });

      await asAnn('/team').set('x-session-id', id).expect(200);
      await get('/team').set('x-session-id', id).set('x-user-id', 'bob').expect(404);
    });

    it('NST-11 works as a global guard', async () => {
      other = await start({
        imports: [SessionsModule.forRoot({ principal: () => ({ userId: 'ann' }) })],
        controllers: [GlobalController],
        providers: [{ provide: APP_GUARD, useExisting: SessionGuard }],
      });
      const own = await other.get(SessionStore).create({ userId: 'ann' });
      const foreign = await other.get(SessionStore).create({ userId: 'bob' });
      const server = other.getHttpServer();
      const ask = (id: string) => request(server).get('/global').set('x-session-id', id);

      await ask(own.id).expect(200);
      await ask(foreign.id).expect(404);
    });
  });

  describe('the state of a session', () => {
    it('NST-12 answers 410 for an expired session and does not change it', async () => {
      const { id } = await sessions.create({ userId: 'ann' });
      const expired = await sessions.expire(id);

      const answer = await asAnn('/chat').set('x-session-id', id).expect(410);

      expect(answer.body).toMatchObject({ statusCode: 410, code: 'SESSION_STATE', sessionId: id });
      expect(await sessions.get(id)).toEqual(expired);
    });

    it('NST-12 resumes a suspended session', async () => {
      const { id } = await suspendedSession();

      const answer = await asAnn('/chat').set('x-session-id', id).expect(200);

      expect((answer.body as Seen).session).toMatchObject({
        state: 'active',
        lastActivityAt: new Date(now).toISOString(),
      });
    });

    it('NST-12 leaves a suspended session suspended with touch: false', async () => {
      const suspended = await suspendedSession();

      const answer = await asAnn('/state/untouched').set('x-session-id', suspended.id).expect(200);

      expect((answer.body as Seen).session).toEqual(suspended);
      expect(await sessions.get(suspended.id)).toEqual(suspended);
    });

    it('NST-12 answers 409 to a session in none of the states, and does not resume it', async () => {
      const suspended = await suspendedSession();

      const answer = await asAnn('/state/active-only').set('x-session-id', suspended.id).expect(409);

      expect(answer.body).toMatchObject({ statusCode: 409, code: 'SESSION_STATE', sessionId: suspended.id });
      expect(await sessions.get(suspended.id)).toEqual(suspended);
    });

    it('NST-12 accepts expired sessions if states lists them, and does not restore them', async () => {
      const { id } = await sessions.create({ userId: 'ann' });
      const expired = await sessions.expire(id);

      const answer = await asAnn('/state/ended-only').set('x-session-id', id).expect(200);

      expect((answer.body as Seen).session).toEqual(expired);
      expect(await sessions.get(id)).toEqual(expired);
    });
  });

  /** Returns what a client sees of the response, and the store calls of the request. */
  async function watched(ask: () => request.Test): Promise<{ status: number; text: string; calls: string[] }> {
    const before = sessionCalls().length;
    const { status, text } = await ask();
    return { status, text, calls: sessionCalls().slice(before) };
  }

  async function suspendedSession(): Promise<Session> {
    const { id } = await sessions.create({ userId: 'ann' });
    await sessions.touch(id);
    idle(3_600_001);
    const swept = await sessions.sweepStale();
    idle(1000);
    const session = swept.find((one) => one.id === id);
    if (!session) throw new Error('The session was not suspended.');
    return session;
  }
});

function apiKeyUser(context: ExecutionContext): Principal | null {
  const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
  return headers['x-api-key'] === 'robot-of-acme' ? { userId: 'robot', workspaceId: 'acme' } : null;
}
