import 'reflect-metadata';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Get,
  Injectable,
  Module,
  Patch,
  Post,
  ValidationPipe,
} from '@nestjs/common';
import { memoryAdapter, SessionsModule } from 'nestjs-agent-sessions';
import { type TurnView } from 'nestjs-agent-sessions/http';
import request from 'supertest';
import { recordingAdapter } from '../support/recording-adapter.js';
import { type ClientApp, clientApp, desk, type Method } from './client-app.js';
import { PLATFORMS } from './http-app.js';
import { headerPrincipal, OpenGuard } from './state-app.js';

/** Every route of both controllers. */
const ROUTES: readonly (readonly [Method, string, object | undefined])[] = [
  ['post', '/sessions', {}],
  ['get', '/sessions', undefined],
  ['get', '/sessions/current', undefined],
  ['patch', '/sessions/current', { metadata: {} }],
  ['delete', '/sessions/current', undefined],
  ['post', '/sessions/revoke', {}],
  ['post', '/turns', { text: 'hi' }],
  ['get', '/turns', undefined],
  ['get', '/turns/messages', undefined],
  ['get', '/turns/of-nobody', undefined],
  ['post', '/turns/of-nobody/cancel', undefined],
  ['get', '/turns/of-nobody/events', undefined],
];

/** Routes that read a body. */
const BODIES = ROUTES.filter(([, , body]) => body !== undefined);

@Injectable()
class House {
  readonly open = 'yes';
}

@Module({ providers: [House], exports: [House] })
class HouseModule {}

@Injectable()
class DoorGuard implements CanActivate {
  constructor(private readonly house: House) {}

  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    if (headers['x-door'] === 'broken') throw new Error('postgres://desk:hunter2@db/desk');
    if (headers['x-door'] === 'shut') throw new ForbiddenException('Closed today.');
    return headers['x-door'] === this.house.open;
  }
}

/** A controller of the application with similar paths. */
@Controller()
class OwnController {
  @Post('desk/turns')
  turns(): string {
    return 'own';
  }

  @Patch('turns')
  change(): string {
    return 'own';
  }

  @Get('sessions/of/mine')
  mine(): string {
    return 'own';
  }
}

describe.each(PLATFORMS)('both controllers on $name', (platform) => {
  const calls: string[] = [];
  let client: ClientApp;
  let sessionId: string;

  beforeAll(async () => {
    const adapter = recordingAdapter(memoryAdapter(), calls);
    client = await clientApp({
      platform,
      role: 'submit',
      adapter,
      guards: [DoorGuard],
      guardImports: [HouseModule],
      controllers: [OwnController],
    });
    sessionId = (await client.session()).id;
  });

  afterAll(() => client.app.close());

  it.each(ROUTES)('NST-16 %s %s: runs the guards first, with their injected providers', async (method, path, body) => {
    calls.length = 0;
    const ask = (door: string) => client.ask(method, path, { sessionId, body }).set('x-door', door);

    expect((await ask('no').expect(403)).body).toEqual({
      statusCode: 403,
      code: 'FORBIDDEN',
      message: 'Forbidden resource',
    });
    expect((await ask('shut').expect(403)).body).toMatchObject({ code: 'FORBIDDEN', message: 'Closed today.' });
    expect((await ask('broken').expect(500)).body).toEqual({
      statusCode: 500,
      code: 'INTERNAL',
      message: 'Internal server error',
    });
    expect(calls).toEqual([]);
  });

  it.each(BODIES)(
    'NST-16 %s %s: rejects an invalid body and formats the error like all errors',
    async (method, path) => {
      const send = (type: string, body: string) =>
        client
          .ask(method, path, { sessionId })
          .set({ 'x-door': 'yes', 'content-type': type, accept: 'application/problem+json' })
          .send(body);

      for (const body of ['{', '{"text": hunter2}', '\u0000', '[]', 'null', '']) {
        const answer = await send('application/json', body).expect(400);
        expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
        expect(JSON.parse(answer.text)).toMatchObject({ type: 'about:blank', status: 400, code: 'INVALID_INPUT' });
        expect(answer.text).not.toContain('hunter');
      }
      for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'application/jsonx']) {
        const answer = await send(type, 'text=hi').expect(415);
        expect(JSON.parse(answer.text)).toMatchObject({ status: 415, code: 'UNSUPPORTED_MEDIA_TYPE' });
      }
      const large = await send('application/json', `{"text":"${'x'.repeat(2_000_000)}"}`).expect(413);
      expect(JSON.parse(large.text)).toMatchObject({ status: 413, code: 'TOO_LARGE' });
      await client.ask(method, path, { sessionId }).set('x-door', 'yes').expect(400);
      expect(await client.sessions.find({ userId: 'ann' })).toMatchObject([{ id: sessionId, version: 1 }]);
      expect(await client.turns.list({ sessionId })).toEqual([]);
    },
  );

  it.each(['/turns/of-nobody/cancel', '/turns'])(
    'NST-16 %s: answers 400 to a body that the parser rejects',
    async (path) => {
      const asked = client.ask('post', path, { sessionId, body: '{' }).set('x-door', 'yes');

      expect((await asked.expect(400)).body).toEqual({
        statusCode: 400,
        code: 'INVALID_INPUT',
        message: 'The body must be JSON.',
      });
    },
  );

  it('NST-16 FIX-76 forbids caching, because addresses do not identify sessions', async () => {
    const body: unknown = (
      await client
        .ask('post', '/turns', { sessionId: (await client.session()).id, body: { text: 'hi' } })
        .set('x-door', 'yes')
    ).body;
    const turn = body as TurnView;
    for (const path of ['/sessions', '/sessions/current', '/turns', `/turns/${turn.id}`]) {
      const answer = await client.ask('get', path, { sessionId: turn.sessionId }).set('x-door', 'yes').expect(200);
      expect(answer.headers['cache-control']).toBe('private, no-store');
    }
  });

  it.each([
    ['put', '/sessions'],
    ['delete', '/sessions'],
    ['post', '/sessions/current'],
    ['get', '/sessions/revoke'],
    ['get', '/sessions/of-nobody'],
    ['put', '/turns'],
    ['delete', '/turns/of-nobody'],
    ['post', '/turns/of-nobody'],
    ['get', '/turns/of-nobody/cancel'],
    ['post', '/turns/of-nobody/events'],
    ['post', '/turns/of-nobody/signal'],
  ] as const)('NST-16 has no route %s %s', async (method, path) => {
    calls.length = 0;
    await client
      .ask(method, path, { sessionId, body: method === 'get' ? undefined : {} })
      .set('x-door', 'yes')
      .expect(404);
    expect(calls).toEqual([]);
  });

  it('NST-16 answers HEAD like GET without a body, and changes nothing on OPTIONS', async () => {
    for (const [method, path] of ROUTES.filter(([given]) => given === 'get')) {
      const got = await client.ask(method, path, { sessionId }).set('x-door', 'yes');
      const head = await client.ask('head', path, { sessionId }).set('x-door', 'yes');
      expect([path, head.status, head.text ?? '']).toEqual([path, got.status, '']);
    }
    calls.length = 0;
    const options = await client.ask('options', '/sessions/current', { sessionId }).set('x-door', 'yes');
    expect([200, 204, 404]).toContain(options.status);
    expect(calls).toEqual([]);
  });

  it('NST-16 does not affect the application’s routes or their errors', async () => {
    const post = (path: string) =>
      request(client.app.getHttpServer()).post(path).set('content-type', 'application/json').send('{');
    const patch = request(client.app.getHttpServer()).patch('/turns').set('content-type', 'application/json').send('{');

    expect((await post('/desk/turns').expect(400)).body).not.toHaveProperty('code');
    expect((await patch.expect(400)).body).not.toHaveProperty('code');
    expect((await client.ask('get', '/sessions/of/mine').expect(200)).text).toBe('own');
  });

  it('NST-16 works with global pipes, a prefix and versioning', async () => {
    const other = await clientApp({
      platform,
      role: 'submit',
      configure: (app) =>
        app
          .useGlobalPipes(new ValidationPipe({ transform: true, whitelist: true, forbidUnknownValues: true }))
          .setGlobalPrefix('api')
          .enableVersioning(),
    });
    const { id } = await other.session();
    const accepted = await other.ask('post', '/api/turns', { sessionId: id, body: { text: 'hi' } }).expect(202);
    const { location } = accepted.headers;

    expect(location).toBe(`/api/turns/${(accepted.body as TurnView).id}`);
    await other.ask('get', location, { sessionId: id }).expect(200);
    await other.ask('get', '/api/sessions?limit=1', {}).expect(200);
    await other
      .ask('patch', '/api/sessions/current', { sessionId: id, body: { metadata: { a: 1 }, b: 2 } })
      .expect(400);
    expect((await other.ask('post', '/api/turns', { sessionId: id, body: '{' }).expect(400)).body).toMatchObject({
      code: 'INVALID_INPUT',
    });
    await other.app.close();
  });
});

describe('enabling the controllers', () => {
  it('NST-16 disables each controller by default', async () => {
    const app = await PLATFORMS[0].start({
      imports: [
        SessionsModule.forRoot({
          principal: headerPrincipal,
          sweep: false,
          controllers: { sessions: { guards: [OpenGuard], path: 'me/sessions' } },
        }),
      ],
    });
    const get = (path: string) => request(app.getHttpServer()).get(path).set('x-user-id', 'ann');

    expect((await get('/me/sessions').expect(200)).body).toEqual({ sessions: [] });
    for (const path of ['/sessions', '/turns', '/state']) await get(path).expect(404);
    await app.close();
  });

  const guards = [OpenGuard];

  it.each([
    [{ sessions: {} }, 'controllers.sessions.guards must list at least one guard'],
    [{ sessions: { guards: [] } }, 'controllers.sessions.guards must list at least one guard'],
    [{ sessions: true }, 'controllers.sessions must be an object'],
    [{ sessions: { guards, path: '/:id' } }, 'controllers.sessions.path must be a path'],
    [{ sessions: { guards, allowClientIds: 'yes' } }, 'controllers.sessions.allowClientIds must be a boolean'],
    [{ sessions: { guards, orchestrators: [desk] } }, 'controllers.sessions.orchestrators is not a known key'],
    [{ turns: { orchestrators: [desk] } }, 'controllers.turns.guards must list at least one guard'],
    [{ turns: { guards } }, 'controllers.turns.orchestrators must list at least one orchestrator'],
    [{ turns: { guards, orchestrators: [] } }, 'controllers.turns.orchestrators must list at least one orchestrator'],
    [{ turns: { guards, orchestrators: [undefined] } }, 'controllers.turns.orchestrators must list'],
    [{ turns: { guards, orchestrators: [class Plain {}] } }, 'Plain is not an orchestrator'],
    [
      { turns: { guards, orchestrators: [desk], whenBusy: ['panic'] } },
      'controllers.turns.whenBusy must list policies',
    ],
    [{ session: { guards } }, 'controllers.session is not a known key'],
  ])('NST-16 throws a configuration error for %j', (controllers, message) => {
    expect(() => SessionsModule.forRoot({ controllers: controllers as never })).toThrow(message);
    expect(() => SessionsModule.forRootAsync({ controllers: controllers as never, useFactory: () => ({}) })).toThrow(
      message,
    );
  });

  it('NST-16 fails at the start for an unregistered orchestrator', async () => {
    const starting = PLATFORMS[0].start({
      imports: [
        SessionsModule.forRoot({ role: 'submit', controllers: { turns: { guards, orchestrators: ['dessk'] } } }),
      ],
    });

    await expect(starting).rejects.toThrow('controllers.turns.orchestrators contains "dessk"');
  });
});
