import 'reflect-metadata';
import { request as httpRequest } from 'node:http';
import { type AddressInfo } from 'node:net';
import { Controller, type ExecutionContext, Get, UseGuards } from '@nestjs/common';
import {
  CurrentSession,
  defineOrchestrator,
  memoryAdapter,
  type Session,
  SessionGuard,
  SessionId,
  SessionsModule,
  SessionStore,
  UseSession,
} from 'nestjs-agent-sessions';
import request from 'supertest';
import { capturingLogger } from '../support/capturing-logger.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { HeaderAuthGuard, type HttpApp, PLATFORMS, type Seen, seen } from './http-app.js';

@Controller('from')
@UseGuards(HeaderAuthGuard, SessionGuard)
class SourcesController {
  @Get('default')
  @UseSession()
  byDefault(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  @Get('header')
  @UseSession({ from: 'header:X-Conversation' })
  header(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  @Get('param/:sessionId')
  @UseSession({ from: 'param:sessionId' })
  param(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  @Get('query')
  @UseSession({ from: 'query:session' })
  query(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  @Get('cookie')
  @UseSession({ from: 'cookie:sid' })
  cookie(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  @Get('function')
  @UseSession({ from: async (context) => bearerOf(context) })
  fromFunction(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  @Get('optional')
  @UseSession({ optional: true })
  optional(@CurrentSession() session: Session | undefined, @SessionId() id: string | undefined): Seen {
    return seen(session, id);
  }

  @Get('nowhere')
  nowhere(): object {
    return { nowhere: true };
  }
}

@Controller('chats')
@UseGuards(HeaderAuthGuard, SessionGuard)
class ChatsController {
  @Get(':chat')
  @UseSession()
  show(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }
}

@Controller('class')
@UseGuards(HeaderAuthGuard, SessionGuard)
@UseSession({ from: 'query:session', touch: false })
class ClassLevelController {
  @Get('inherited')
  inherited(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }

  @Get('overridden')
  @UseSession({ from: 'header:x-session-id' })
  overridden(@CurrentSession() session: Session, @SessionId() id: string): Seen {
    return seen(session, id);
  }
}

describe.each(PLATFORMS)('a session guard on $name whose route has a parameter', ({ start }) => {
  it('DAY-17 logs once that the parameter may be the session id, not for the controllers of the package', async () => {
    const adapter = memoryAdapter();
    const orchestrators = [defineOrchestrator({ name: 'desk', intents: { answer: () => 'Hi' } })];
    const turns = { guards: [HeaderAuthGuard], orchestrators };
    const app = await start({
      imports: [
        SessionsModule.forRoot({ adapter, sweep: false, controllers: { turns } }),
        SessionsModule.forFeature(orchestrators),
      ],
      controllers: [ChatsController],
    });
    const { lines, logger } = capturingLogger();
    app.useLogger(logger);
    try {
      for (const path of ['/turns/t1', '/chats/c1', '/chats/c2']) {
        const answer = await request(app.getHttpServer()).get(path).set('x-user-id', 'ann').expect(400);
        expect(answer.body).toMatchObject({ code: 'SESSION_ID_MISSING' });
      }
      expect(lines).toEqual([
        'warn ChatsController.show: a request has no session id at header:x-session-id. If the parameter chat of the route is the session ' +
          "id, use @UseSession({ from: 'param:chat' }). This warning is logged once. SessionGuard",
      ]);
    } finally {
      await app.close();
    }
  });
});

describe.each(PLATFORMS)('a session guard on $name that finds the session of another user', ({ start }) => {
  it('DAY-17 NST-11 logs once that the owner differs, without an id, and answers as if there were no session', async () => {
    const app = await start({
      imports: [SessionsModule.forRoot({ adapter: memoryAdapter(), sweep: false })],
      controllers: [SourcesController],
    });
    const { id } = await app.get(SessionStore).create({ userId: 'me' });
    const { lines, logger } = capturingLogger();
    app.useLogger(logger);
    try {
      for (const sessionId of [id, 'unknown', id]) {
        const answer = await request(app.getHttpServer())
          .get('/from/default')
          .set({ 'x-user-id': 'ann', 'x-session-id': sessionId })
          .expect(404);
        expect(answer.body).toMatchObject({ code: 'SESSION_NOT_FOUND' });
      }
      expect(lines).toEqual([
        expect.stringMatching(/^warn SourcesController\.byDefault: the session of a request belongs/),
      ]);
      expect(lines[0]).not.toContain(id);
    } finally {
      await app.close();
    }
  });
});

describe.each(PLATFORMS)('the session id of the session guard on $name', ({ start }) => {
  const calls: string[] = [];
  let app: HttpApp;
  let sessions: SessionStore;

  beforeAll(async () => {
    app = await start({
      imports: [
        // No other caller queries the store.
        SessionsModule.forRoot({
          adapter: recordingAdapter(memoryAdapter(), calls),
          sweep: false,
          turns: { reconcileMs: 3_600_000 },
        }),
      ],
      controllers: [SourcesController, ClassLevelController],
    });
    sessions = app.get(SessionStore);
  });

  afterAll(() => app.close());

  const get = (path: string) => request(app.getHttpServer()).get(path);
  const asAnn = (path: string) => get(path).set('x-user-id', 'ann');
  const sessionCalls = () => calls.filter((call) => call.startsWith('sessions.'));

  describe('sources of the id', () => {
    const sources: [string, (id: string) => request.Test][] = [
      ['the header x-session-id by default', (id) => asAnn('/from/default').set('x-session-id', id)],
      ['a named header, whatever its case', (id) => asAnn('/from/header').set('x-conversation', id)],
      ['a path parameter', (id) => asAnn(`/from/param/${id}`)],
      ['a query parameter', (id) => asAnn('/from/query').query({ session: id })],
      ['a cookie', (id) => asAnn('/from/cookie').set('cookie', `other=1; sid=${id}`)],
      ['a function of the context', (id) => asAnn('/from/function').set('authorization', `Bearer ${id}`)],
    ];

    it.each(sources)('NST-10 NST-13 reads the id from %s and passes the touched session', async (_, ask) => {
      const { id } = await sessions.create({ userId: 'ann', metadata: { topic: 'refund' } });

      const answer = await ask(id).expect(200);

      expect(answer.body).toEqual({ id, session: await sessions.get(id) });
      expect((answer.body as Seen).session).toMatchObject({ state: 'active', metadata: { topic: 'refund' } });
    });

    const without: [string, string, string][] = [
      ['the default header', '/from/default', 'header:x-session-id'],
      ['the named header', '/from/header', 'header:X-Conversation'],
      ['the query parameter', '/from/query', 'query:session'],
      ['the cookie', '/from/cookie', 'cookie:sid'],
      ['the result of the function', '/from/function', 'where the application looks for it'],
    ];

    it.each(without)('NST-10 reports the expected source when %s is missing', async (_, path, where) => {
      const before = sessionCalls().length;

      const answer = await asAnn(path).expect(400);

      expect(answer.body).toEqual({
        statusCode: 400,
        code: 'SESSION_ID_MISSING',
        message: `sessionId is missing. Expected at: ${where}.`,
      });
      expect(sessionCalls()).toHaveLength(before);
    });

    it('NST-10 treats an empty header as missing', async () => {
      const answer = await asAnn('/from/default').set('x-session-id', '').expect(400);

      expect(answer.body).toMatchObject({ code: 'SESSION_ID_MISSING' });
    });

    it('NST-10 optional: accepts a request without a session id', async () => {
      const answer = await asAnn('/from/optional').expect(200);

      expect(answer.body).toEqual({ id: null, session: null });
    });

    it('NST-10 optional: rejects a session of another user', async () => {
      const { id } = await sessions.create({ userId: 'bob' });

      await asAnn('/from/optional').set('x-session-id', id).expect(404);
    });

    it('NST-10 ignores handlers without @UseSession', async () => {
      const { id } = await sessions.create({ userId: 'ann' });
      const before = sessionCalls().length;

      const answer = await get('/from/nowhere').set('x-session-id', id).expect(200);

      expect(answer.body).toEqual({ nowhere: true });
      expect(sessionCalls()).toHaveLength(before);
    });

    it('NST-10 applies @UseSession of a class to its handlers, unless a handler has its own', async () => {
      const [first, second] = [await sessions.create({ userId: 'ann' }), await sessions.create({ userId: 'ann' })];

      const inherited = await asAnn('/class/inherited').query({ session: first.id }).expect(200);
      const overridden = await asAnn('/class/overridden')
        .query({ session: first.id })
        .set('x-session-id', second.id)
        .expect(200);

      expect(inherited.body).toMatchObject({ id: first.id, session: { state: 'created' } });
      expect(overridden.body).toMatchObject({ id: second.id, session: { state: 'active' } });
    });

    it('NST-10 keeps the sessions of concurrent requests apart', async () => {
      const own = await Promise.all(Array.from({ length: 20 }, () => sessions.create({ userId: 'ann' })));

      const answers = await Promise.all(own.map(({ id }) => asAnn('/from/default').set('x-session-id', id)));

      expect(answers.map(({ body }) => (body as Seen).id)).toEqual(own.map(({ id }) => id));
    });
  });

  describe('hostile ids', () => {
    const hostile: [string, string][] = [
      ['*', '*'],
      ['{}', '{}'],
      ['__proto__', '__proto__'],
      ['10,000 characters', 'a'.repeat(10_000)],
      ['a path', '../../etc/passwd'],
      ['SQL', "' OR 1=1 --"],
      ['letters beyond ASCII', 'séance'],
    ];

    it.each(hostile)('NST-17 rejects %s in every source before it queries the store', async (_, id) => {
      const before = sessionCalls().length;

      const answers = [
        await asAnn('/from/default').set('x-session-id', id),
        await asAnn('/from/query').query({ session: id }),
        await asAnn('/from/cookie').set('cookie', `sid=${encodeURIComponent(id)}`),
      ];
      // A server may reject a long path before it matches routes.
      const { status } = await asAnn(`/from/param/${encodeURIComponent(id)}`);

      for (const answer of answers) expect(answer).toMatchObject({ status: 400, body: { code: 'INVALID_INPUT' } });
      expect([400, 404, 414]).toContain(status);
      expect(sessionCalls()).toHaveLength(before);
    });

    it('NST-17 rejects unicode in a query, a path and a cookie before it queries the store', async () => {
      const before = sessionCalls().length;

      for (const id of ['\u{1f4a5}', '\u202eabc', 'a\u0000b', '№7']) {
        await asAnn('/from/query').query({ session: id }).expect(400);
        await asAnn(`/from/param/${encodeURIComponent(id)}`).expect(400);
        await asAnn('/from/cookie')
          .set('cookie', `sid=${encodeURIComponent(id)}`)
          .expect(400);
      }

      expect(sessionCalls()).toHaveLength(before);
    });

    it('NST-17 rejects a repeated header and a repeated parameter, even for the user’s own session', async () => {
      const { id } = await sessions.create({ userId: 'ann' });
      const before = sessionCalls().length;

      expect(await statusOfHeaders(app, '/from/default', { 'x-user-id': 'ann', 'x-session-id': [id, id] })).toBe(400);
      await asAnn(`/from/query?session=${id}&session=${id}`).expect(400);
      await asAnn(`/from/query?session[$ne]=${id}`).expect(400);

      expect(sessionCalls()).toHaveLength(before);
    });

    it('NST-17 rejects an invalid id from a function of the application', async () => {
      const before = sessionCalls().length;

      const answer = await asAnn('/from/function').set('authorization', 'Bearer {"$gt":""}').expect(400);

      expect(answer.body).toMatchObject({ code: 'INVALID_INPUT' });
      expect(sessionCalls()).toHaveLength(before);
    });
  });
});

function bearerOf(context: ExecutionContext): string | undefined {
  const { headers } = context.switchToHttp().getRequest<{ headers: { authorization?: string } }>();
  return headers.authorization?.replace('Bearer ', '');
}

/** Sends headers unchanged. Test clients would join repeated ones. */
async function statusOfHeaders(
  app: HttpApp,
  path: string,
  headers: Record<string, string | string[]>,
): Promise<number | undefined> {
  await app.listen(0);
  const server = app.getHttpServer() as { address(): AddressInfo };
  return new Promise((resolve, reject) => {
    httpRequest({ port: server.address().port, path, headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}
