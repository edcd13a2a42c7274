import 'reflect-metadata';
import { CacheInterceptor, CacheModule } from '@nestjs/cache-manager';
import {
  Controller,
  type DynamicModule,
  Get,
  Header,
  Injectable,
  type INestApplicationContext,
  Logger,
  Module,
  NotFoundException,
  Post,
  type Provider,
  Scope,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { APP_INTERCEPTOR } from '@nestjs/core';
import { afterEach, jest } from '@jest/globals';
import { map, type Observable } from 'rxjs';
import {
  CurrentSession,
  type Session,
  SessionGuard,
  SessionsModule,
  SessionStore,
  UseSession,
} from 'nestjs-agent-sessions';
import request from 'supertest';
import { desk } from './client-app.js';
import { HeaderAuthGuard, type HttpApp, PLATFORMS } from './http-app.js';
import { headerPrincipal, headersOf, OpenGuard } from './state-app.js';

const PRIVATE = 'private, no-store';

/** An interceptor whose keys are not URLs. */
@Injectable()
class OneKeyInterceptor extends CacheInterceptor {
  protected override trackBy(): string {
    return 'the only key';
  }
}

/** Caches what the interceptor returns that wraps bodies. */
@Injectable()
class WrappingInterceptor {
  intercept(_context: unknown, next: { handle(): Observable<unknown> }): Observable<unknown> {
    return next.handle().pipe(map((data) => ({ data })));
  }
}

/** A session's page in the application. */
@Controller('page')
@UseGuards(HeaderAuthGuard, SessionGuard)
class PageController {
  @Get()
  @UseSession()
  page(@CurrentSession() { id }: Session): { id: string } {
    return { id };
  }

  @Get('public')
  @UseSession()
  @Header('Cache-Control', 'public, max-age=60')
  published(): string {
    return 'for everyone';
  }

  @Get('missing')
  @UseSession()
  missing(): never {
    throw new NotFoundException();
  }

  @Get('open')
  open(): string {
    return 'no session';
  }
}

/** Routes that `CacheInterceptor` does not store. */
@Controller('form')
@UseGuards(HeaderAuthGuard, SessionGuard)
class FormController {
  @Post()
  @UseSession()
  send(): string {
    return 'sent';
  }

  @Get()
  form(): string {
    return 'empty';
  }
}

function sessionsModule(): DynamicModule {
  const common = { guards: [OpenGuard] };
  return SessionsModule.forRoot({
    sweep: false,
    principal: headerPrincipal,
    turns: { shutdownGraceMs: 50 },
    controllers: {
      sessions: common,
      turns: { ...common, orchestrators: [desk] },
      chat: { ...common, orchestrators: [desk] },
      state: common,
    },
  });
}

/** How applications enable a cache for all routes. */
const CACHES: readonly [string, Provider[], (app: HttpApp) => unknown][] = [
  ['APP_INTERCEPTOR', [{ provide: APP_INTERCEPTOR, useClass: CacheInterceptor }], () => undefined],
  [
    'a request-scoped APP_INTERCEPTOR',
    [{ provide: APP_INTERCEPTOR, useClass: CacheInterceptor, scope: Scope.REQUEST }],
    () => undefined,
  ],
  ['useGlobalInterceptors', [CacheInterceptor], (app) => app.useGlobalInterceptors(app.get(CacheInterceptor))],
  ['a subclass with other keys', [{ provide: APP_INTERCEPTOR, useClass: OneKeyInterceptor }], () => undefined],
];

let app: HttpApp | undefined;

afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function start(
  platform: (typeof PLATFORMS)[number],
  providers: Provider[],
  configure: (app: HttpApp) => unknown = () => undefined,
  controllers: Type[] = [],
): Promise<HttpApp> {
  @Module({
    imports: [CacheModule.register()],
    providers,
    exports: providers.filter((each) => typeof each === 'function'),
  })
  class CachingModule {}
  app = await platform.start(
    { imports: [CachingModule, sessionsModule(), SessionsModule.forFeature([desk])], controllers },
    configure,
  );
  return app;
}

function ask(
  method: 'get' | 'post' | 'delete' | 'patch',
  path: string,
  userId: string,
  sessionId = 'none',
): request.Test {
  return request(app!.getHttpServer())
    [method](path)
    .set({ ...headersOf({ userId }), 'x-session-id': sessionId });
}

const sessionOf = async (context: INestApplicationContext, userId: string): Promise<string> =>
  (await context.get(SessionStore).create({ userId })).id;

describe.each(PLATFORMS)('responses and caches on $name', (platform) => {
  it.each(CACHES)('FIX-76 serves no response to another user with %s', async (_, providers, configure) => {
    await start(platform, providers, configure);
    const [ann, bob] = [await sessionOf(app!, 'ann'), await sessionOf(app!, 'bob')];
    const said = await ask('post', '/turns', 'ann', ann).send({ text: 'my secret' }).expect(202);
    const { id: turnId } = said.body as { id: string };
    await ask('post', '/chat', 'ann')
      .send({ id: ann, message: { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'my secret' }] } })
      .expect(200);
    const paths = [
      '/sessions',
      '/sessions/current',
      '/turns',
      '/turns/messages',
      `/turns/${turnId}`,
      `/turns/${turnId}/events`,
      '/chat',
      `/chat/${ann}/messages`,
      `/chat/${ann}/stream`,
    ];
    for (const path of paths) {
      for (const [userId, sessionId] of [
        ['ann', ann],
        ['bob', bob],
        ['ann', ann],
      ]) {
        const answer = await ask('get', path, userId, sessionId);
        const shown = `${userId} ${path} ${answer.status} ${answer.text}`;
        expect(answer.headers['cache-control']).toMatch(/^private, .*no-store/);
        if (userId === 'bob') {
          expect(shown).not.toMatch(new RegExp(`secret|"${ann}"`));
        } else if (!path.endsWith('/stream')) {
          expect(shown).toMatch(new RegExp(`200.*(${ann}|secret|"turns")`, 's'));
        }
      }
    }
  });

  it('FIX-76 sends its own header with every response, also of errors', async () => {
    await start(platform, []);
    const id = await sessionOf(app!, 'ann');
    const answers = [
      ask('post', '/sessions', 'ann').send({}).expect(201),
      ask('post', '/sessions', 'ann').send({ wrong: 1 }).expect(400),
      ask('post', '/sessions', 'ann').set('content-type', 'application/json').send('{').expect(400),
      ask('get', '/sessions/current', 'bob', id).expect(404),
      ask('get', '/turns/of-nobody', 'ann', id).expect(404),
      ask('get', '/turns/of-nobody/events', 'ann', id).expect(404),
      ask('get', `/chat/${id}/stream`, 'ann').expect(204),
      ask('post', '/state/describe', 'ann').send({ sessionId: id }).expect(403),
      ask('delete', '/sessions/current', 'ann', id).expect(204),
      ask('get', '/sessions/current', 'ann', id),
    ];
    for (const asked of answers) {
      const { headers } = await asked;
      expect(headers['cache-control']).toBe(PRIVATE);
    }
  });

  it('FIX-76 keeps bodies as JSON, also inside the object of an interceptor', async () => {
    await start(platform, [{ provide: APP_INTERCEPTOR, useClass: WrappingInterceptor }]);
    const id = await sessionOf(app!, 'ann');

    const response = await ask('get', '/sessions/current', 'ann', id).expect(200);

    expect(response.body).toMatchObject({ data: { id, state: 'created' } });
    expect(response.headers['content-type']).toMatch(/^application\/json/);
  });

  it('FIX-76 sets the header on routes with @UseSession, unless the handler sets one', async () => {
    await start(platform, [], undefined, [PageController]);
    const id = await sessionOf(app!, 'ann');
    const headerOf = async (path: string, userId = 'ann') =>
      ((await ask('get', path, userId, id)).headers as Record<string, string>)['cache-control'];

    expect(await headerOf('/page')).toBe(PRIVATE);
    expect(await headerOf('/page', 'bob')).toBe(PRIVATE);
    expect(await headerOf('/page/missing')).toBe(PRIVATE);
    expect(await headerOf('/page/public')).toBe('public, max-age=60');
    expect(await headerOf('/page/open')).toBeUndefined();
  });

  it.each(CACHES)('FIX-76 warns of session routes behind %s', async (_, providers, configure) => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    try {
      await start(platform, providers, configure, [PageController, FormController]);

      expect(warn.mock.calls).toEqual([
        [expect.stringContaining('PageController.page, PageController.published, PageController.missing by URL')],
      ]);
    } finally {
      warn.mockRestore();
    }
  });

  it('FIX-76 does not warn without session routes or without a cache', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    try {
      await start(platform, CACHES[0][1], undefined, [FormController]);
      await app!.close();
      await start(platform, [], undefined, [PageController]);

      expect(warn.mock.calls).toEqual([]);
    } finally {
      warn.mockRestore();
    }
  });
});
