import 'reflect-metadata';
import { type CanActivate, Controller, type ExecutionContext, Post, ValidationPipe } from '@nestjs/common';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { type Session } from 'nestjs-agent-sessions';
import { type StateErrorBody } from 'nestjs-agent-sessions/http';
import request from 'supertest';
import { StateExceptionFilter } from '../../lib/http/state/state-exception.filter.js';
import { eventually } from '../support/eventually.js';
import { PLATFORMS } from './http-app.js';
import { fill, filled, headersOf, OPERATOR, type StateApp, stateApp } from './state-app.js';

/** A controller of the application whose path ends like the control plane's. */
@Controller('desk/state')
class DeskController {
  @Post('reset')
  reset(): string {
    return 'done';
  }
}

type FilterMethod = (this: StateExceptionFilter, ...given: Parameters<StateExceptionFilter['catch']>) => Promise<void>;

/** Sends a response, as a time limit does, and then throws. */
class HastyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const response = context.switchToHttp().getResponse<{ send: (body: object) => unknown; status?: unknown }>();
    (response as unknown as { status: (code: number) => typeof response }).status(503).send({ message: 'Too slow.' });
    throw new Error('It went on.');
  }
}

const OPERATIONS = ['describe', 'reset', 'compact'] as const;

/** Empty and malformed bodies. Such a body once cleared everything. */
const NOTHING: readonly (readonly [string, string | undefined])[] = [
  ['no body', undefined],
  ['an empty body', ''],
  ['null', 'null'],
  ['an array', '[]'],
  ['an array of requests', '[{"sessionId":"ID"}]'],
  ['a string', '"ID"'],
  ['a number', '7'],
  ['true', 'true'],
  ['a truncated body', '{"sessionId":"ID"'],
  ['data after the body', '{"sessionId":"ID"} {}'],
  ['a form', 'sessionId=ID'],
  ['a broken escape', '{"sessionId":"\\u00"}'],
  ['a NUL', '\u0000'],
];

/** Has every capability, so that only the body causes a rejection. */
const EVERYTHING = { ...OPERATOR, userId: 'ann' };

const ID = '"sessionId":"ID"';

const WRONG: readonly (readonly [string, string])[] = [
  ['an unknown key', `{${ID},"session":"ID"}`],
  ['a key in another case', `{${ID},"Stores":["tools"]}`],
  ['an empty id', '{"sessionId":""}'],
  ['a null id', '{"sessionId":null}'],
  ['a list of ids', '{"sessionId":["ID"]}'],
  ['a malformed id', '{"sessionId":"../ID"}'],
  ['a wildcard', '{"sessionId":"*"}'],
  ['an empty list of stores', `{${ID},"stores":[]}`],
  ['null as stores', `{${ID},"stores":null}`],
  ['a string as stores', `{${ID},"stores":"tools"}`],
  ['a store without a name', `{${ID},"stores":[""]}`],
  ['a string as a boolean', `{${ID},"dryRun":"false"}`],
  ['metadata that is not an object', `{${ID},"metadata":[]}`],
  ['null as metadata', `{${ID},"metadata":null}`],
  ['a number outside the range of JSON numbers', `{${ID},"metadata":{"n":1e999}}`],
  ['__proto__', `{${ID},"__proto__":{"all":true}}`],
  ['nested __proto__', `{${ID},"metadata":{"a":[{"__proto__":{"all":true}}]}}`],
  ['constructor', `{${ID},"constructor":{"prototype":{"all":true}}}`],
  ['toString', `{${ID},"toString":"x"}`],
  ['nesting that is too deep', `{${ID},"metadata":{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`],
];

describe.each(PLATFORMS)('requests to the control plane on $name', (platform) => {
  let desk: StateApp;
  let own: Session;

  beforeAll(async () => {
    desk = await stateApp({ platform });
  });

  beforeEach(async () => {
    own = await desk.session();
    await fill(desk.adapter, own.id);
  });

  afterAll(() => desk.app.close());

  describe.each(OPERATIONS)('POST /state/%s', (operation) => {
    it.each(NOTHING)('STA-20 answers 400 to an unusable body: %s', async (_, body) => {
      const answer = await send(operation, body);

      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ statusCode: 400, code: 'INVALID_INPUT' });
      expect(await filled(desk.adapter, own.id)).toEqual([1, 1]);
    });

    it.each(WRONG)('STA-20 answers 400 to %s', async (_, body) => {
      const answer = await send(operation, body);

      expect(answer.status).toBe(400);
      expect(['INVALID_INPUT', 'STATE_NOT_SERIALIZABLE']).toContain((answer.body as StateErrorBody).code);
      expect(await filled(desk.adapter, own.id)).toEqual([1, 1]);
    });
  });

  it('FIX-64 accepts keys named like properties of every object in metadata, and returns them', async () => {
    const metadata = { constructor: { prototype: { all: true } }, prototype: 2, toString: 'x' };
    const answer = await send('describe', JSON.stringify({ sessionId: own.id, metadata })).expect(200);

    expect(answer.body).toMatchObject({ metadata });
    expect(await filled(desk.adapter, own.id)).toEqual([1, 1]);
  });

  it('STA-20 answers 400 to an empty chunked body', async () => {
    await desk.app.listen(0, '127.0.0.1');
    const address = await desk.app.getUrl();

    for (const operation of OPERATIONS) {
      const answer = await fetch(`${address}/state/${operation}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headersOf(OPERATOR) },
        body: new ReadableStream({ start: (stream) => stream.close() }),
        duplex: 'half',
      });
      expect(answer.status).toBe(400);
    }
  });

  it('STA-20 answers 400 to a reset of neither a session nor all, or of both', async () => {
    for (const body of ['{}', '{"all":false}', '{"stores":["tools"]}', `{${ID},"all":true}`]) {
      const answer = await send('reset', body);
      expect([answer.status, (answer.body as StateErrorBody).code]).toEqual([400, 'INVALID_INPUT']);
    }
    expect(await filled(desk.adapter, own.id)).toEqual([1, 1]);
  });

  it('STA-20 answers 400 to a compaction without a session', async () => {
    await send('compact', '{}').expect(400);
    await send('compact', '{"stores":["conversation"]}').expect(400);
  });

  it('STA-20 rejects bodies other than JSON, because another site could send a form', async () => {
    for (const type of [
      'application/x-www-form-urlencoded',
      'text/plain',
      'application/xml',
      'application/jsonx',
      '',
    ]) {
      const answer = await desk.post('/state/reset').set('content-type', type).send(`sessionId=${own.id}`);
      expect([400, 415]).toContain(answer.status);
      expect(['INVALID_INPUT', 'UNSUPPORTED_MEDIA_TYPE']).toContain((answer.body as StateErrorBody).code);
    }
    const form = desk.post('/state/reset').type('form').send({ sessionId: own.id });
    expect((await form.expect(415)).body).toMatchObject({ code: 'UNSUPPORTED_MEDIA_TYPE' });
    expect(await filled(desk.adapter, own.id)).toEqual([1, 1]);
  });

  it('STA-26 answers 413 to a body above the limit of the parser or the control plane', async () => {
    for (const bytes of [70_000, 2_000_000]) {
      const answer = await desk.post('/state/reset', { sessionId: own.id, metadata: { text: 'x'.repeat(bytes) } });
      expect([answer.status, (answer.body as StateErrorBody).code]).toEqual([413, 'TOO_LARGE']);
    }
    expect(await filled(desk.adapter, own.id)).toEqual([1, 1]);
  });

  it('STA-26 formats an error as an RFC 9457 problem on request, without data of the body', async () => {
    const broken = await send('reset', '{"sessionId": hunter2}').set('accept', 'application/problem+json').expect(400);
    const wrong = await send('reset', '{"sessionId":"hunter 2"}').set('accept', 'application/problem+json').expect(400);

    for (const answer of [broken, wrong]) {
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(JSON.parse(answer.text)).toMatchObject({ type: 'about:blank', status: 400, code: 'INVALID_INPUT' });
      expect(answer.text).not.toContain('hunter');
    }
  });

  it('STA-20 answers 200 with the result to valid requests, also with a charset', async () => {
    const described = await desk.post('/state/describe', { sessionId: own.id, metadata: { ticket: 7 } }).expect(200);
    const reset = await send('reset', `{${ID},"stores":["tools"]}`)
      .set('content-type', 'application/json; charset=utf-8')
      .expect(200);
    const modules = await send('describe', '{}').expect(200);

    expect(described.body).toMatchObject({ operation: 'describe', sessionId: own.id, metadata: { ticket: 7 } });
    expect(reset.body).toMatchObject({ operation: 'reset', cleared: ['tools'], errors: [] });
    expect(modules.body).toMatchObject({ sessionId: null });
    expect(await filled(desk.adapter, own.id)).toEqual([0, 1]);
  });

  it('STA-20 works with global pipes, a prefix and versioning', async () => {
    const other = await stateApp({
      platform,
      path: 'admin/state',
      configure: (app) =>
        app
          .useGlobalPipes(new ValidationPipe({ transform: true, whitelist: true, forbidUnknownValues: true }))
          .setGlobalPrefix('api')
          .enableVersioning(),
    });
    const { id } = await other.session();
    await fill(other.adapter, id);
    const ask = (body: string) =>
      other.post('/api/admin/state/reset').set('content-type', 'application/json').send(body);

    expect((await ask(`{"sessionId":"${id}","dryRun":"yes"}`).expect(400)).body).toMatchObject({
      code: 'INVALID_INPUT',
    });
    expect((await ask(`{"sessionId":"${id}","other":1}`).expect(400)).body).toMatchObject({ code: 'INVALID_INPUT' });
    expect((await ask('{').expect(400)).body).toMatchObject({ code: 'INVALID_INPUT' });
    expect(await filled(other.adapter, id)).toEqual([1, 1]);
    expect((await ask(`{"sessionId":"${id}"}`).expect(200)).body).toMatchObject({ cleared: ['tools', 'flow'] });
    await other.app.close();
  });

  it('STA-26 does not handle body errors of other routes', async () => {
    const sent = request(desk.app.getHttpServer()).post('/elsewhere').set('content-type', 'application/json');

    const answer = await sent.send('{');

    expect(answer.body).not.toHaveProperty('code');
    expect([400, 404]).toContain(answer.status);
  });

  it('STA-26 does not handle application routes with a similar path', async () => {
    const other = await stateApp({ platform, controllers: [DeskController], path: 'state' });
    const ask = (path: string) =>
      request(other.app.getHttpServer()).post(path).set('content-type', 'application/json').send('{');

    expect((await ask('/desk/state/reset').expect(400)).body).not.toHaveProperty('code');
    expect(other.events).toEqual([]);
    expect((await ask('/state/reset').expect(400)).body).toMatchObject({ code: 'INVALID_INPUT' });
    await other.app.close();
  });

  it('STA-26 ignores a request.raw that is not a request', async () => {
    const other = await stateApp({
      platform,
      configure: (app) => {
        if (platform.name !== 'Express') return;
        (app as NestExpressApplication).use((asked: { raw?: unknown }, _: unknown, next: () => void) => {
          asked.raw = 'the body';
          next();
        });
      },
    });
    const { id } = await other.session();

    await other.post('/state/describe', { sessionId: id }).expect(200);
    await other.post('/state/describe', { sessionId: '' }).expect(400);
    await other.app.close();
  });

  it('STA-26 does not respond again or throw if a response was already sent', async () => {
    const told: Promise<unknown>[] = [];
    const handle: FilterMethod = Reflect.get(StateExceptionFilter.prototype, 'catch');
    StateExceptionFilter.prototype.catch = function (this: StateExceptionFilter, ...given) {
      const done = handle.apply(this, given);
      told.push(done);
      return done;
    };
    const other = await stateApp({ platform, guards: [new HastyGuard()] });
    const { id } = await other.session();

    await other.post('/state/describe', { sessionId: id }).expect(503);
    await eventually(() => told.length > 0);
    StateExceptionFilter.prototype.catch = handle;

    await expect(Promise.all(told)).resolves.toEqual([undefined]);
    expect(other.events).toMatchObject([{ outcome: 'failed' }]);
    await other.app.close();
  });

  it('STA-26 does not throw when the request is missing', async () => {
    const filter = desk.app.get(StateExceptionFilter, { strict: false });
    const nothing = { getType: () => 'http', switchToHttp: () => ({ getRequest: () => undefined }) };

    await expect(filter.catch(new Error('x'), nothing as never)).resolves.toBeUndefined();
    expect(() => filter.catchEarly(new Error('x'), undefined as never, {})).not.toThrow();
  });

  function send(operation: string, body: string | undefined) {
    const sent = request(desk.app.getHttpServer()).post(`/state/${operation}`).set(headersOf(EVERYTHING));
    if (body === undefined) return sent;
    return sent.set('content-type', 'application/json').send(body.replaceAll('ID', own.id));
  }
});
