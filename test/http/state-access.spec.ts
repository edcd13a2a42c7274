import 'reflect-metadata';
import { type CanActivate, type ExecutionContext, Injectable, Module, UnauthorizedException } from '@nestjs/common';
import { memoryAdapter, type Session, SessionsModule } from 'nestjs-agent-sessions';
import { type StateEvent, type StateRequest } from 'nestjs-agent-sessions/http';
import request from 'supertest';
import { startApplication } from '../support/application.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { PLATFORMS } from './http-app.js';
import { fill, filled, headerPrincipal, OpenGuard, OPERATOR, type StateApp, stateApp, type Who } from './state-app.js';

class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    context.switchToHttp().getRequest<{ user?: unknown }>().user = { id: 'ann', capabilities: ['state.describe'] };
    return true;
  }
}

@Injectable()
class Keys {
  readonly good = 'good';
}

@Module({ providers: [Keys], exports: [Keys] })
class KeysModule {}

@Injectable()
class KeyGuard implements CanActivate {
  constructor(private readonly keys: Keys) {}

  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    const key = headers['x-api-key'];
    if (key === 'none') throw new UnauthorizedException('No such key.');
    if (key === 'broken') throw new Error('postgres://desk:hunter2@db/desk');
    return key === this.keys.good;
  }
}

type Operation = 'describe' | 'reset' | 'compact';
type Body = Partial<StateRequest> & { readonly all?: boolean };

const WORKSPACE = 'acme';
const ALL = ['state.describe', 'state.reset', 'state.compact', 'history.compact'];
const as = (userId: string | undefined, workspaceId: string | undefined, ...capabilities: string[]): Who => ({
  userId,
  workspaceId,
  capabilities,
});

/** Requests for ann's session in the workspace acme. */
const MATRIX: readonly (readonly [string, Who, Operation, Body, number])[] = [
  ['no user', as(undefined, undefined, ...ALL), 'describe', {}, 401],
  ['the owner without capabilities', as('ann', WORKSPACE), 'describe', {}, 403],
  ['the owner with another capability', as('ann', WORKSPACE, 'state.reset', 'state.compact'), 'describe', {}, 403],
  ['the owner', as('ann', WORKSPACE, 'state.describe'), 'describe', {}, 200],
  ['the owner who may only describe', as('ann', WORKSPACE, 'state.describe'), 'reset', {}, 403],
  ['the owner', as('ann', WORKSPACE, 'state.reset'), 'reset', {}, 200],
  ['the owner, a conversation', as('ann', WORKSPACE, 'state.compact'), 'compact', {}, 403],
  ['the owner, a conversation', as('ann', WORKSPACE, 'state.compact'), 'compact', { stores: ['conversation'] }, 403],
  ['the owner, other modules', as('ann', WORKSPACE, 'state.compact'), 'compact', { stores: ['tools'] }, 200],
  ['the owner, a conversation', as('ann', WORKSPACE, 'state.compact', 'history.compact'), 'compact', {}, 200],
  ['the owner who may only compact histories', as('ann', WORKSPACE, 'history.compact'), 'compact', {}, 403],
  ['another user', as('bob', WORKSPACE, ...ALL), 'reset', {}, 404],
  ['the owner’s name in another workspace', as('ann', 'other', ...ALL), 'reset', {}, 404],
  ['the owner’s name without a workspace', as('ann', undefined, ...ALL), 'reset', {}, 404],
  ['an operator', as('olga', WORKSPACE, 'state.reset', 'state.operator'), 'reset', {}, 200],
  ['an operator without the capability', as('olga', WORKSPACE, 'state.operator'), 'reset', {}, 403],
  ['an operator of another workspace', as('olga', 'other', ...ALL, 'state.operator'), 'reset', {}, 404],
  ['an operator without a workspace', as('olga', undefined, ...ALL, 'state.operator'), 'reset', {}, 404],
  ['a capability split into two names', as('ann', WORKSPACE, 'state', 'reset'), 'reset', {}, 403],
];

/** Requests for ann's session in the workspace acme, with the wildcard `state.*`. */
const WILDCARD: readonly (readonly [string, Who, Operation, Body, number])[] = [
  ['lets the owner describe', as('ann', WORKSPACE, 'state.*'), 'describe', {}, 200],
  ['lets the owner reset', as('ann', WORKSPACE, 'state.*'), 'reset', {}, 200],
  ['lets the owner compact', as('ann', WORKSPACE, 'state.*'), 'compact', { stores: ['tools'] }, 200],
  ['does not grant history.compact', as('ann', WORKSPACE, 'state.*'), 'compact', {}, 403],
  ['does not make an operator', as('olga', WORKSPACE, 'state.*'), 'reset', {}, 404],
  ['can be combined with state.operator', as('olga', WORKSPACE, 'state.*', 'state.operator'), 'reset', {}, 200],
  [
    "ignores the application's wildcards",
    as('ann', WORKSPACE, '*', 'orders.*', 'stateful.*', 'state-tax.*', 'state/reports:*'),
    'reset',
    {},
    403,
  ],
];

/** Requests without a session. */
const WITHOUT_SESSION: readonly (readonly [string, Who, Operation, Body, number])[] = [
  ['an owner of sessions, to describe', as('ann', WORKSPACE, ...ALL), 'describe', {}, 403],
  ['an operator, to describe', as('olga', WORKSPACE, 'state.describe', 'state.operator'), 'describe', {}, 200],
  ['an owner of sessions, to reset all', as('ann', undefined, ...ALL), 'reset', { all: true }, 403],
  [
    'an operator of a workspace, to reset all',
    as('olga', WORKSPACE, ...ALL, 'state.operator'),
    'reset',
    { all: true },
    403,
  ],
  ['an operator, to reset all', as('olga', undefined, 'state.reset', 'state.operator'), 'reset', { all: true }, 200],
];

describe.each(PLATFORMS)('access to the control plane on $name', (platform) => {
  const calls: string[] = [];
  let desk: StateApp;
  let session: Session;

  beforeAll(async () => {
    desk = await stateApp({ platform, adapter: recordingAdapter(memoryAdapter(), calls) });
  });

  beforeEach(async () => {
    session = await desk.session({ workspaceId: WORKSPACE });
    await fill(desk.adapter, session.id);
  });

  afterAll(() => desk.app.close());

  it.each(MATRIX)('STA-25 %s: %j, %s of a session with %j: %i', async (_, who, operation, body, status) => {
    const asked = await watched(() => desk.post(`/state/${operation}`, { sessionId: session.id, ...body }, who));

    expect(asked.status).toBe(status);
    if (status === 200) return;
    expect(asked.calls).toEqual(status === 404 ? ['sessions.fetchById'] : []);
    expect(await filled(desk.adapter, session.id)).toEqual([1, 1]);
  });

  it.each(WILDCARD)('FIX-46 state.* %s: %j, %s of a session with %j: %i', async (_, who, operation, body, status) => {
    const asked = await watched(() => desk.post(`/state/${operation}`, { sessionId: session.id, ...body }, who));

    expect(asked.status).toBe(status);
    if (status !== 200) expect(await filled(desk.adapter, session.id)).toEqual([1, 1]);
  });

  it.each(['state*', 'state.re*', 'state.**', 'state.*.x', 'state:*', 'history.*'])(
    'FIX-46 rejects the malformed wildcard %s before it queries the store',
    async (capability) => {
      const who = as('ann', WORKSPACE, ...ALL, capability);
      const asked = await watched(() => desk.post('/state/describe', { sessionId: session.id }, who));

      expect(asked).toMatchObject({ status: 500, calls: [] });
      expect(desk.events.at(-1)).toMatchObject({ outcome: 'failed', code: 'CONFIGURATION' });
    },
  );

  it.each(WITHOUT_SESSION)(
    'STA-25 %s: %j, %s without a session with %j: %i',
    async (_, who, operation, body, status) => {
      const asked = await watched(() => desk.post(`/state/${operation}`, body, who));

      expect(asked.status).toBe(status);
      if (status === 403) expect(asked.calls).toEqual([]);
    },
  );

  it('STA-20 rejects a request for neither a session nor all, or for both, before it queries the store', async () => {
    const bodies: [Operation, Body][] = [
      ['reset', {}],
      ['reset', { all: false }],
      ['reset', { sessionId: session.id, all: true }],
      ['compact', { stores: ['tools'] }],
    ];
    for (const [operation, body] of bodies) {
      const ask = () => desk.post(`/state/${operation}`, body, OPERATOR).set('idempotency-key', 'scope');
      expect(await watched(ask)).toMatchObject({ status: 400, calls: [] });
    }
  });

  it('STA-25 answers the same 404 to a foreign and an unknown session, with the same store calls', async () => {
    const foreign = await desk.session({ userId: 'bob' });

    const unknown = await watched(() =>
      desk.post('/state/reset', { sessionId: 'of-nobody' }).set('idempotency-key', 'a'),
    );
    const known = await watched(() => desk.post('/state/reset', { sessionId: foreign.id }).set('idempotency-key', 'a'));

    expect(known).toEqual({ ...unknown, text: unknown.text.replaceAll('of-nobody', foreign.id) });
    expect(JSON.parse(known.text)).toMatchObject({ statusCode: 404, code: 'SESSION_NOT_FOUND' });
  });

  it('STA-25 reads the capabilities from request.user by default', async () => {
    const other = await stateApp({ platform, principal: undefined, guards: [new UserGuard()] });
    const { id } = await other.session();

    await other.post('/state/describe', { sessionId: id }).expect(200);
    await other.post('/state/reset', { sessionId: id }).expect(403);
    await other.app.close();
  });

  it.each([
    ['state.reset,state.describe'],
    ['state.describe'],
    [['state.describe', 7]],
    [{ includes: () => true }],
    [null],
  ])('STA-25 grants nothing for capabilities that are not a valid list: %j', async (capabilities) => {
    const principal = () => ({ userId: 'ann', capabilities: capabilities as never });
    const other = await stateApp({ platform, principal });
    const { id } = await other.session();

    await other.post('/state/describe', { sessionId: id }).expect(403);
    await other.app.close();
  });

  it('STA-25 runs the guards first and formats their rejections like all errors', async () => {
    const other = await stateApp({
      platform,
      guards: [KeyGuard],
      guardImports: [KeysModule],
    });
    const { id } = await other.session();
    const ask = (key: string) => other.post('/state/describe', { sessionId: id }).set('x-api-key', key);

    const unknown = await ask('none').expect(401);
    const refused = await ask('known').expect(403);
    const broken = await ask('broken').expect(500);
    await ask('good').expect(200);

    expect(unknown.body).toEqual({ statusCode: 401, code: 'UNAUTHENTICATED', message: 'No such key.' });
    expect(refused.body).toEqual({ statusCode: 403, code: 'FORBIDDEN', message: 'Forbidden resource' });
    expect(broken.body).toEqual({ statusCode: 500, code: 'INTERNAL', message: 'Internal server error' });
    expect(other.events.map(({ outcome, code }) => [outcome, code])).toEqual([
      ['refused', 'UNAUTHENTICATED'],
      ['refused', 'FORBIDDEN'],
      ['failed', 'INTERNAL'],
      ['done', undefined],
    ]);
    expect(other.events[1].principal).toEqual({ userId: 'ann' });
    await other.app.close();
  });

  it('STA-25 emits one event per call, also for rejected ones, without request or stored data', async () => {
    desk.events.length = 0;
    const { id } = session;
    const who = as('ann', WORKSPACE, ...ALL);

    await desk.post('/state/reset', { sessionId: id, stores: ['tools'], metadata: { ticket: 7 } }, who).expect(200);
    await desk.post('/state/reset', { sessionId: id, stores: ['tools'], secret: 'hunter2' }, who).expect(400);
    await desk.post('/state/reset', undefined, who).set('content-type', 'application/json').send('{').expect(400);
    await desk.post('/state/reset', { sessionId: 'of-nobody', dryRun: true }, who).expect(404);
    await desk.post('/state/compact', { sessionId: id }, as('ann', WORKSPACE)).expect(403);
    await desk.post('/state/describe', { sessionId: id }, as(undefined, undefined)).expect(401);
    await desk.post('/state/reset', { all: true }, OPERATOR).expect(200);

    const principal = { userId: 'ann', workspaceId: WORKSPACE };
    const nothing = { cleared: [], compacted: [], durationMs: expect.any(Number) as number };
    expect(desk.events).toEqual([
      {
        ...nothing,
        type: 'reset',
        outcome: 'done',
        statusCode: 200,
        principal,
        sessionId: id,
        stores: ['tools'],
        cleared: ['tools'],
        metadata: { ticket: 7 },
      },
      {
        ...nothing,
        type: 'reset',
        outcome: 'refused',
        statusCode: 400,
        code: 'INVALID_INPUT',
        principal,
        sessionId: id,
      },
      { ...nothing, type: 'reset', outcome: 'refused', statusCode: 400, code: 'INVALID_INPUT' },
      {
        ...nothing,
        type: 'reset',
        outcome: 'refused',
        statusCode: 404,
        code: 'SESSION_NOT_FOUND',
        principal,
        sessionId: 'of-nobody',
        dryRun: true,
      },
      { ...nothing, type: 'compact', outcome: 'refused', statusCode: 403, code: 'FORBIDDEN', principal, sessionId: id },
      { ...nothing, type: 'describe', outcome: 'refused', statusCode: 401, code: 'UNAUTHENTICATED', sessionId: id },
      expect.objectContaining({
        type: 'reset',
        outcome: 'done',
        all: true,
        principal: { userId: 'olga' },
      }) as StateEvent,
    ]);
  });

  it('FIX-46 logs a malformed wildcard with the known capabilities', async () => {
    const { lines, logger } = capturingLogger();
    const other = await stateApp({ platform, configure: (app) => app.useLogger(logger) });
    await other.post('/state/reset', { sessionId: 's' }, as('ann', undefined, 'state.r*')).expect(500);
    await other.app.close();

    const message =
      "The capability 'state.r*' of the principal is not a known wildcard. The only one is state.*. Grant that, " +
      'or name the capabilities: state.describe, state.reset, state.compact, history.compact, state.operator.';
    expect(lines.filter((line) => line.includes(message))).toHaveLength(1);
  });

  it('FIX-54 logs rejected requests without a principal once per route, then their number', async () => {
    const { lines, logger } = capturingLogger();
    const other = await stateApp({ platform, configure: (app) => app.useLogger(logger) });
    const nobody = as(undefined, undefined);
    lines.length = 0;
    for (let n = 0; n < 5; n += 1) {
      await other.post('/state/describe', { sessionId: `s${n}` }, nobody).expect(401);
      await other.post('/state/reset', { sessionId: `s${n}` }, nobody).expect(401);
    }
    await other
      .post('/state/describe', undefined, nobody)
      .set('content-type', 'application/json')
      .send('{')
      .expect(400);
    for (let n = 0; n < 2; n += 1) await other.post('/state/describe', {}, as('ann', undefined)).expect(403);
    await other.app.close();

    expect(lines.filter((line) => line.includes('refused'))).toEqual([
      expect.stringMatching(/^log describe of session s0 by an unknown user: refused \(UNAUTHENTICATED\)/),
      expect.stringMatching(/^log reset of session s0 by an unknown user: refused \(UNAUTHENTICATED\)/),
      expect.stringMatching(/^log describe of no session by user ann: refused \(FORBIDDEN\)/),
      expect.stringMatching(/^log describe of no session by user ann: refused \(FORBIDDEN\)/),
      'log describe: 5 more requests without a principal were refused since the last line (UNAUTHENTICATED, INVALID_INPUT). AgentSessionsState',
      'log reset: 4 more requests without a principal were refused since the last line (UNAUTHENTICATED). AgentSessionsState',
    ]);
    expect(other.events).toHaveLength(13);
  });

  /** Returns what a client sees of the response, and the store calls of the request. */
  async function watched(ask: () => ReturnType<StateApp['post']>) {
    calls.length = 0;
    const { status, text } = await ask();
    return { status, text, calls: [...calls] };
  }
});

describe('enabling the control plane', () => {
  it('STA-25 is off unless it is enabled', async () => {
    const adapter = memoryAdapter();
    const app = await PLATFORMS[0].start({
      imports: [SessionsModule.forRoot({ adapter, principal: headerPrincipal })],
    });
    const desk = await stateApp();

    expect((await desk.post('/state/describe', {}, OPERATOR)).status).toBe(200);
    await desk.app.close();
    await request(app.getHttpServer()).post('/state/describe').send({}).expect(404);
    await app.close();
  });

  it.each([
    ['no guards', {}, 'controllers.state.guards must list at least one guard'],
    ['an empty list of guards', { guards: [] }, 'controllers.state.guards must list at least one guard'],
    ['a class that is not a guard', { guards: [class Nothing {}] }, 'controllers.state.guards must list'],
    ['an instance that is not a guard', { guards: [{}] }, 'controllers.state.guards must list'],
    ['undefined as a guard', { guards: [undefined] }, 'controllers.state.guards must list'],
    ['an invalid path', { guards: [OpenGuard], path: 'state/:id' }, 'controllers.state.path must be a path'],
    ['an unknown option', { guards: [OpenGuard], guard: OpenGuard }, 'controllers.state.guard is not a known key'],
    ['true', true, 'controllers.state must be an object'],
    ['null', null, 'controllers.state must be an object'],
  ])('STA-25 throws a configuration error for %s', (_, state, message) => {
    const controllers = { state } as never;

    expect(() => SessionsModule.forRoot({ controllers })).toThrow(message);
    expect(() => SessionsModule.forRootAsync({ controllers, useFactory: () => ({}) })).toThrow(message);
  });

  it('STA-25 throws a configuration error for an unknown controller', () => {
    expect(() => SessionsModule.forRoot({ controllers: { states: {} } as never })).toThrow('controllers.states');
  });

  it('STA-25 is enabled by forRootAsync, with guards that inject imported providers', async () => {
    const app = await PLATFORMS[0].start({
      imports: [
        SessionsModule.forRootAsync({
          controllers: { state: { guards: [KeyGuard], imports: [KeysModule] } },
          useFactory: () => ({ principal: headerPrincipal, sweep: false }),
        }),
      ],
    });
    const ask = (key: string) => request(app.getHttpServer()).post('/state/describe').set('x-api-key', key).send({});

    await ask('none').expect(401);
    await ask('good').expect(401);
    await ask('good').set('x-user-id', 'olga').set('x-capabilities', 'state.describe state.operator').expect(200);
    await app.close();
  });

  it('NST-16 can be enabled in an application without HTTP', async () => {
    const app = await startApplication({
      imports: [SessionsModule.forRoot({ controllers: { state: { guards: [OpenGuard] } } })],
    });
    await app.close();
  });
});
