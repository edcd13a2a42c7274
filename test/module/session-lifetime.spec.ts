import 'reflect-metadata';
import { Controller, Get, UseGuards } from '@nestjs/common';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import {
  defaultAffinityResolver,
  defineOrchestrator,
  getOrchestratorToken,
  memoryAdapter,
  type OrchestratorHandle,
  resolveSession,
  type Session,
  type SessionEvent,
  SessionEvents,
  SessionGuard,
  SessionsModule,
  type SessionsModuleOptions,
  type SessionsModuleStatics,
  SessionStore,
  type TurnContext,
  TurnService,
  UseSession,
} from 'nestjs-agent-sessions';
import request from 'supertest';
import { SessionSweeper } from '../../lib/maintenance/session-sweeper.service.js';
import { OpenGuard } from '../http/state-app.js';
import { Echo } from '../support/application.js';
import { eventually } from '../support/eventually.js';

const NEW_YEAR = '0 0 1 1 *';
const DAY = 86_400_000;

const WAITER = defineOrchestrator({
  name: 'waiter',
  intents: { wait: async (turn: TurnContext) => turn.waitFor<string>('answer') },
});

@Controller()
@UseGuards(SessionGuard)
class ChatController {
  @Get('touched')
  @UseSession()
  touched(): string {
    return 'welcome';
  }

  @Get('untouched')
  @UseSession({ touch: false })
  untouched(): string {
    return 'welcome';
  }

  @Get('ended-as-well')
  @UseSession({ states: ['active', 'expired'] })
  endedAsWell(): string {
    return 'welcome';
  }
}

describe('the lifetime of sessions in an application', () => {
  const adapter = memoryAdapter();
  let app: NestExpressApplication;
  let store: SessionStore;
  let events: SessionEvent[];

  async function start(options: SessionsModuleOptions & SessionsModuleStatics): Promise<void> {
    const principal = () => ({ userId: 'ann' });
    const module = await Test.createTestingModule({
      imports: [SessionsModule.forRoot({ adapter, principal, ...options }), SessionsModule.forFeature([Echo, WAITER])],
      controllers: [ChatController],
    }).compile();
    app = await module.createNestApplication<NestExpressApplication>({ logger: false }).init();
    store = app.get(SessionStore);
    events = [];
    app.get(SessionEvents).stream.subscribe((event) => events.push(event));
  }

  const get = (path: string, id: string) => request(app.getHttpServer()).get(path).set('x-session-id', id);
  const say = (sessionId: string) =>
    app.get<OrchestratorHandle>(getOrchestratorToken(Echo)).execute('hello', { sessionId });
  const sweep = () => app.get(SessionSweeper, { strict: false }).run();

  afterEach(() => app.close());

  it('SES-18 emits the activation by the first turn, and nothing for the next one', async () => {
    await start({ sweep: false });
    const { id } = await store.create({ userId: 'ann' });
    await say(id);
    await eventually(() => events.length === 2);

    const session = await store.get(id);
    expect(events).toMatchObject([
      { type: 'created', session: { id } },
      { type: 'activated', session, previousState: 'created' },
    ]);
    expect(session).toMatchObject({ state: 'active', version: 2 });
    await say(id);
    expect(events).toHaveLength(2);
  });

  it('SES-19 rejects a session past its lifetime at once, and expires it in the sweep', async () => {
    await start({ maxLifetimeSeconds: 3600, sweep: { cron: NEW_YEAR } });
    const old = await insert({ createdAt: ago(3_600_001) });
    const young = await insert({ createdAt: ago(3_000_000) });
    for (const path of ['/touched', '/untouched']) {
      await get(path, old.id).expect(410);
      await get(path, young.id).expect(200);
    }
    await expect(say(old.id)).rejects.toMatchObject({ code: 'SESSION_STATE', currentState: 'expired' });
    await expect(store.touch(old.id)).rejects.toMatchObject({ code: 'SESSION_STATE', currentState: 'expired' });
    expect(await store.get(old.id)).toEqual(old);

    await sweep();
    expect(await store.get(old.id)).toMatchObject({ state: 'expired' });
    expect(await store.get(young.id)).toMatchObject({ state: 'active' });
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'expired', previousState: 'active', cause: 'lifetime' }),
    );
  });

  it('SES-19 NST-12 injects a session past its lifetime, untouched, if a handler allows expired ones', async () => {
    await start({ maxLifetimeSeconds: 3600, sweep: false });
    const old = await insert({ createdAt: ago(3_600_001) });
    await get('/ended-as-well', old.id).expect(200);
    expect(await store.get(old.id)).toEqual(old);
  });

  it('SES-19 NST-16 lets the owner end a session past its lifetime', async () => {
    await start({ maxLifetimeSeconds: 3600, sweep: false, controllers: { sessions: { guards: [OpenGuard] } } });
    const { id } = await insert({ createdAt: ago(3_600_001) });
    await request(app.getHttpServer()).delete('/sessions/current').set('x-session-id', id).expect(204);
    expect(await store.get(id)).toMatchObject({ state: 'expired' });
  });

  it('FIX-44 NST-16 shows the current state of sessions to their owner before the sweep', async () => {
    await start({
      ttlSeconds: 600,
      maxLifetimeSeconds: 3600,
      sweep: false,
      controllers: { sessions: { guards: [OpenGuard] } },
    });
    const idle = await insert({ lastActivityAt: ago(700_000) });
    const old = await insert({ createdAt: ago(3_600_001) });
    const active = await insert({});
    const list = async (query: string): Promise<Record<string, string>> => {
      const response = await request(app.getHttpServer()).get(`/sessions${query}`).expect(200);
      const { sessions } = response.body as { sessions: { id: string; state: string }[] };
      const shown = sessions.filter(({ id }) => [idle.id, old.id, active.id].includes(id));
      return Object.fromEntries(shown.map(({ id, state }) => [id, state]));
    };

    expect((await get('/sessions/current', idle.id).expect(200)).body).toMatchObject({ state: 'suspended' });
    await get('/sessions/current', old.id).expect(410);
    expect(await list('')).toEqual({ [idle.id]: 'suspended', [old.id]: 'expired', [active.id]: 'active' });
    expect(await list('?state=active')).toEqual({ [active.id]: 'active' });
    expect(await list('?state=active&state=suspended')).toEqual({ [active.id]: 'active', [idle.id]: 'suspended' });
  });

  it('FIX-44 resumes a session past its TTL without a sweep, by a touch and by a turn', async () => {
    await start({ ttlSeconds: 60, sweep: false });
    const touched = await insert({ lastActivityAt: ago(61_000) });
    const spoken = await insert({ lastActivityAt: ago(61_000) });
    const awake = await insert({ lastActivityAt: ago(30_000) });
    await store.touch(touched.id);
    await store.touch(awake.id);
    await say(spoken.id);
    const resumed = () => events.filter(({ type }) => type === 'resumed');
    await eventually(() => resumed().length === 2);

    expect(resumed()).toMatchObject(
      [touched, spoken].map(({ id }) => ({ session: { id, state: 'active' }, previousState: 'suspended' })),
    );
  });

  it('FIX-44 NST-12 counts an active session past its TTL as suspended for `states`, before a sweep', async () => {
    await start({ ttlSeconds: 60, sweep: false });
    const idle = await insert({ lastActivityAt: ago(61_000) });
    const awake = await insert({ lastActivityAt: ago(30_000) });

    expect(store.currentState(idle)).toBe('suspended');
    await get('/ended-as-well', idle.id).expect(409);
    await get('/ended-as-well', awake.id).expect(200);
  });

  it.each([
    ['maxLifetimeSeconds', { maxLifetimeSeconds: 3600, sweep: { cron: NEW_YEAR } }],
    ['expireAfterSeconds', { sweep: { cron: NEW_YEAR, expireAfterSeconds: 3600 } }],
  ])('FIX-44 does not block the next message of a user by a session past %s', async (_, options) => {
    await start({ surfacePolicy: 'reject', ttlSeconds: 60, ...options });
    const times = { createdAt: ago(3_600_001), lastActivityAt: ago(3_600_001) };
    for (const state of ['created', 'active', 'suspended'] as const) {
      const { id, userId } = await store.create({ userId: `${state} ${_}`, initialSurfaceId: 'web' });
      await adapter.sessions.update(id, { state, ...times });
      const message = { userId, surfaceId: 'web' };
      const session = await resolveSession(message, store, defaultAffinityResolver(store));

      expect(session).toMatchObject({ state: 'created', attachedSurfaces: ['web'] });
      expect(session.id).not.toBe(id);
      expect(await store.get(id)).toMatchObject({ state, attachedSurfaces: [] });
      await store.expire(id);
    }
  });

  it('FIX-44 ends the stream of a turn with the lifetime of its session', async () => {
    await start({ maxLifetimeSeconds: 3600, sweep: false });
    const { id: sessionId } = await insert({ createdAt: ago(3_598_500) });
    const turns = app.get(TurnService);
    const { id } = await turns.submit('waiter', 'hello', { sessionId });
    const types: string[] = [];
    for await (const { type } of turns.readEvents(id)) types.push(type);

    // The derived event of the wait, and no `settled`.
    expect(types).toEqual(['waiting']);
    expect(await turns.get(id)).toMatchObject({ status: 'waiting' });
  });

  it('SES-10 SES-11 expires and deletes sessions in the sweep if configured', async () => {
    await start({ sweep: { cron: NEW_YEAR, expireAfterSeconds: 3600, purgeAfterSeconds: 86_400 } });
    const idle = await insert({ state: 'suspended', lastActivityAt: ago(3_600_001) });
    const active = await insert({});
    const ended = await insert({ state: 'expired', lastActivityAt: ago(2 * DAY), stateChangedAt: ago(2 * DAY) });
    await sweep();

    expect(await store.get(idle.id)).toMatchObject({ state: 'expired' });
    expect(await store.get(active.id)).toEqual(active);
    expect(await store.get(ended.id)).toBeNull();
    expect(app.get(SessionSweeper, { strict: false }).counts).toMatchObject({ runs: 1, expired: 1, purged: 1 });
  });

  it('SES-10 SES-11 expires and deletes no sessions by default', async () => {
    await start({ sweep: { cron: NEW_YEAR } });
    const suspended = await insert({ state: 'suspended', createdAt: ago(400 * DAY), lastActivityAt: ago(400 * DAY) });
    const ended = await insert({ state: 'expired', lastActivityAt: ago(400 * DAY), stateChangedAt: ago(400 * DAY) });
    await sweep();

    expect(await store.get(suspended.id)).toEqual(suspended);
    expect(await store.get(ended.id)).toEqual(ended);
  });

  it.each([
    ['move', ['web'], []],
    ['share', ['web'], ['web']],
    ['reject', undefined, ['web']],
  ] as const)('SES-07 applies the surfacePolicy %s', async (surfacePolicy, second, first) => {
    await start({ surfacePolicy, sweep: false });
    const userId = `user of ${surfacePolicy}`;
    const { id } = await store.create({ userId, initialSurfaceId: 'web' });
    const other = await store.create({ userId, initialSurfaceId: 'web' }).catch((error: unknown) => error);

    if (second) expect(other).toMatchObject({ attachedSurfaces: second });
    else expect(other).toMatchObject({ code: 'SURFACE_CONFLICT', heldBy: id });
    expect(await store.get(id)).toMatchObject({ attachedSurfaces: first });
  });

  async function insert(patch: Partial<Session>): Promise<Session> {
    const { id } = await store.create({ userId: 'ann' });
    return adapter.sessions.update(id, { state: 'active', ...patch });
  }
});

function ago(ms: number): string {
  return new Date(Date.now() - ms).toISOString();
}
