import { randomBytes } from 'node:crypto';
import { type Server } from 'node:http';
import { join } from 'node:path';
import { Controller, Get, type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import Database from 'better-sqlite3';
import {
  defineOrchestrator,
  getOrchestratorToken,
  memoryAdapter,
  type OrchestratorHandle,
  type SessionsAdapter,
  SessionsModule,
  type SessionsModuleOptions,
  type SessionsModuleStatics,
  SessionStore,
  TurnService,
} from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import {
  SessionsHealthIndicator,
  SessionsHealthModule,
  type SessionsHealthOptions,
} from 'nestjs-agent-sessions/terminus';
import request from 'supertest';
import { DataSource } from 'typeorm';
import { eventually } from '../support/eventually.js';
import { claimRequest } from '../support/ledger-requests.js';
import { describePostgres, describeRedis, POSTGRES, REDIS, type TestServer } from '../support/servers.js';
import { adapterOf, optionsOn, sqliteAdapter, temporaryFolder } from '../support/stores.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'ok' } });

interface HealthApp {
  readonly app: INestApplication;
  readonly adapter: SessionsAdapter;
  readonly turns: TurnService;
  /** Calls the health endpoint. */
  readonly check: (options?: SessionsHealthOptions) => request.Test;
  /** Submits a turn. */
  readonly submit: () => Promise<{ sessionId: string; turnId: string }>;
}

const open: { stop(): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.stop();
});

describe('health (NST-20)', () => {
  it('NST-20 is up if all checks pass, and reports numbers', async () => {
    const { check } = await startApp({ turns: { reconcileMs: 20 } });
    const answer = await check().expect(200);
    expect(answer.body).toMatchObject({ status: 'ok', info: { sessions: { status: 'up' } } });
    expect(detailsOf(answer.body)).toEqual({
      status: 'up',
      store: { status: 'up', ms: expect.any(Number) as number },
      lanes: { status: 'up', lanes: 0, queued: 0, running: 0, waiting: 0, oldestWaitMs: 0, stuck: 0 },
      sweeps: { runs: 0, skipped: 0, failed: 0 },
    });
  });

  it('NST-20 reports an unclaimed turn as a stuck lane: degraded, or down depending on the options', async () => {
    const { check, submit, turns, adapter } = await startApp({ role: 'submit', adapter: slowClock() });
    const { sessionId, turnId } = await submit();
    expect(detailsOf((await check({ stuckAfterMs: 600_000 }).expect(200)).body)).toMatchObject({
      status: 'up',
      lanes: { status: 'up', lanes: 1, queued: 1, stuck: 0 },
    });
    const answer = await check().expect(200);
    expect(answer.body).toMatchObject({ status: 'degraded' });
    expect(detailsOf(answer.body)).toMatchObject({
      status: 'degraded',
      lanes: { status: 'degraded', queued: 1, stuck: 1 },
    });
    const { oldestWaitMs } = (detailsOf(answer.body) as { lanes: { oldestWaitMs: number } }).lanes;
    expect(oldestWaitMs).toBeGreaterThanOrEqual(120_000);
    for (const id of [sessionId, turnId]) expect(answer.text).not.toContain(id);

    await check({ maxStuckLanes: 1 }).expect(200);
    expect(detailsOf((await check({ maxStuckLanes: 0 }).expect(503)).body)).toMatchObject({
      status: 'down',
      store: { status: 'up' },
      lanes: { status: 'down', stuck: 1 },
    });
    await check({ maxWaitMs: 600_000 }).expect(200);
    await check({ maxWaitMs: 60_000 }).expect(503);
    // The lane is still due for the next reconciler.
    expect(await adapter.turns.due(10)).toEqual([sessionId]);

    await turns.lanes.pause({ sessionId });
    expect(detailsOf((await check()).body)).toMatchObject({ lanes: { status: 'up', stuck: 0 } });
    await turns.lanes.resume({ sessionId });
    await turns.lanes.pause({ all: true });
    expect(detailsOf((await check()).body)).toMatchObject({ lanes: { status: 'up', stuck: 0 } });
  });

  it('NST-20 counts a running turn as stuck only after its lease has expired', async () => {
    const adapter = slowClock();
    const { check, submit } = await startApp({ role: 'submit', adapter });
    const held = await submit();
    await adapter.turns.claim(held.sessionId, claimRequest('a', { leaseMs: 600_000 }));
    const lost = await submit();
    await adapter.turns.claim(lost.sessionId, claimRequest('b', { leaseMs: 100 }));
    expect(detailsOf((await check()).body)).toMatchObject({ lanes: { running: 2, queued: 0, stuck: 1 } });
  });

  it('NST-20 does not report an old turn as stuck if it is claimed during the check', async () => {
    const adapter = slowClock();
    const { check, submit } = await startApp({ role: 'submit', adapter });
    const { sessionId } = await submit();
    const lanes = adapter.turns.lanes.bind(adapter.turns);
    adapter.turns.lanes = async (query) => {
      const page = await lanes(query);
      await adapter.turns.claim(sessionId, claimRequest('a'));
      return page;
    };
    expect(detailsOf((await check()).body)).toMatchObject({ status: 'up', lanes: { queued: 1, stuck: 0 } });
  });

  it('NST-20 is degraded if lanes cannot be queried, and down if a limit is configured', async () => {
    const adapter = memoryAdapter();
    const { check } = await startApp({ role: 'submit', adapter });
    adapter.turns.lanes = () => new Promise(() => {});
    expect(detailsOf((await check({ timeoutMs: 50 }).expect(200)).body)).toMatchObject({
      status: 'degraded',
      lanes: { status: 'degraded', error: 'DeadlineError' },
    });
    await check({ timeoutMs: 50, maxWaitMs: 1000 }).expect(503);
  });

  it('NST-20 shares one query of the lanes between concurrent checks, and stops it without waiting callers', async () => {
    const adapter = memoryAdapter();
    const { app, submit } = await startApp({ role: 'submit', adapter });
    await submit();
    const { mode, lanes } = await adapter.turns.lanes({ limit: 1 });
    const full = { mode, lanes: Array.from({ length: 500 }, () => lanes[0]) };
    const asked: ((page: typeof full) => void)[] = [];
    adapter.turns.lanes = () => new Promise((resolve) => asked.push(resolve));
    const health = app.get(SessionsHealthIndicator, { strict: false });
    const late = { sessions: { lanes: { status: 'degraded', error: 'DeadlineError' } } };

    const probes = [50, 50].map((timeoutMs) => health.isHealthy('sessions', { timeoutMs }));
    expect(await Promise.all(probes)).toMatchObject([late, late]);
    expect(asked.length).toBe(1);
    asked[0](full);
    await new Promise((resolve) => setTimeout(resolve, 50));
    // No caller waits for the next page.
    expect(asked.length).toBe(1);

    const [hasty, patient] = [50, 60_000].map((timeoutMs) => health.isHealthy('sessions', { timeoutMs }));
    expect(await hasty).toMatchObject(late);
    asked[1](full);
    await eventually(() => asked.length === 3);
    asked[2]({ mode, lanes: [] });
    expect(await patient).toMatchObject({ sessions: { lanes: { status: 'up', lanes: 500 } } });
    expect(asked.length).toBe(3);
  });

  it('NST-20 is down if the queue does not respond', async () => {
    const queue = { ...silent(), ping: () => new Promise<void>(() => {}) };
    const { check } = await startApp({ turns: { queue } });
    expect(detailsOf((await check({ timeoutMs: 50 }).expect(503)).body)).toMatchObject({
      status: 'down',
      store: { status: 'up' },
      queue: { status: 'down', error: 'DeadlineError' },
    });
  });

  it('NST-20 reports degraded as up with Terminus 11, which has no third state', async () => {
    const adapter = slowClock();
    const { app, submit } = await startApp({ role: 'submit', adapter });
    await submit();
    const [up, down] = ['up', 'down'].map((status) => (details: object) => ({ sessions: { ...details, status } }));
    const health = app.get<Record<'sources', never>>(SessionsHealthIndicator, { strict: false });
    const older = new SessionsHealthIndicator({ check: () => ({ up, down }) } as never, health.sources);
    expect(await older.isHealthy('sessions')).toMatchObject({
      sessions: { status: 'up', lanes: { status: 'degraded', stuck: 1 } },
    });
  });

  it('NST-20 rejects invalid options', async () => {
    const { app } = await startApp();
    const health = app.get(SessionsHealthIndicator, { strict: false });
    await expect(health.isHealthy('sessions', { maxWait: 1 } as never)).rejects.toThrow(
      'options.maxWait is not a known key.',
    );
    await expect(health.isHealthy('sessions', { timeoutMs: 0 })).rejects.toThrow('options.timeoutMs must be');
  });

  it('NST-20 is down if migrations are pending: SQLite', async () => {
    const file = join(temporaryFolder(), 'sessions.db');
    const { check } = await startApp({ adapter: sqliteAdapter(file) });
    expect(detailsOf((await check().expect(200)).body)).toMatchObject({ migrations: { status: 'up', pending: 0 } });
    const db = new Database(file);
    db.exec('DELETE FROM agent_schema');
    db.close();
    expect(detailsOf((await check().expect(503)).body)).toMatchObject({ migrations: { status: 'down', pending: 1 } });
  });
});

describePostgres('health over PostgreSQL (NST-20)', () => {
  it('NST-20 is down while the server is disconnected or does not respond', async () => {
    await outage(POSTGRES);
  });

  it('NST-20 is down if migrations are pending', async () => {
    const prefix = newPrefix();
    const { check } = await startApp({ adapter: adapterOf(optionsOn(POSTGRES, prefix)) });
    expect(detailsOf((await check().expect(200)).body)).toMatchObject({ migrations: { status: 'up', pending: 0 } });
    const rival = await new DataSource({ type: 'postgres', url: POSTGRES.url }).initialize();
    open.push({ stop: () => rival.destroy() });
    await rival.query(`DELETE FROM ${prefix}schema`);
    expect(detailsOf((await check().expect(503)).body)).toMatchObject({ migrations: { status: 'down', pending: 1 } });
  });
});

describeRedis('health over Redis (NST-20)', () => {
  it('NST-20 is down while the server is disconnected or does not respond', async () => {
    await outage(REDIS);
  });

  it('NST-20 reports only the queue as down if its server does not respond', async () => {
    const proxy = await proxyOf(REDIS);
    const queue = bullmqQueue({ connection: { url: proxy.url }, prefix: newPrefix() });
    const { check } = await startApp({ turns: { queue } });
    expect(detailsOf((await check().expect(200)).body)).toMatchObject({ queue: { status: 'up' } });
    proxy.holdAnswers();
    expect(detailsOf((await check({ timeoutMs: 300 }).expect(503)).body)).toMatchObject({
      store: { status: 'up' },
      queue: { status: 'down', error: 'DeadlineError' },
    });
    proxy.restore();
    await eventually(async () => (await check()).status === 200, { limitMs: 15_000 });
  });
});

async function outage(server: TestServer): Promise<void> {
  const proxy = await proxyOf(server);
  const { check } = await startApp({
    adapter: adapterOf({ ...optionsOn({ ...server, url: proxy.url }, newPrefix()), operationTimeoutMs: 2000 }),
    role: 'submit',
  });
  await check().expect(200);
  proxy.holdAnswers();
  const hung = await check({ timeoutMs: 300 }).expect(503);
  expect(detailsOf(hung.body)).toMatchObject({ status: 'down', store: { status: 'down', error: 'DeadlineError' } });
  proxy.cut();
  const cut = await eventually(async () => {
    const answer = await check();
    return /STORE_UNAVAILABLE/.test(answer.text) ? answer : null;
  });
  expect(detailsOf(cut.body)).toMatchObject({ store: { status: 'down', error: 'STORE_UNAVAILABLE' } });
  expect(cut.text).not.toContain(new URL(proxy.url).port);
  proxy.restore();
  await eventually(async () => (await check()).status === 200, { limitMs: 15_000 });
}

async function startApp(options: SessionsModuleOptions & SessionsModuleStatics = {}): Promise<HealthApp> {
  let asked: SessionsHealthOptions = {};

  @Controller('health')
  class HealthController {
    constructor(
      private readonly health: HealthCheckService,
      private readonly sessions: SessionsHealthIndicator,
    ) {}

    @Get()
    check(): Promise<unknown> {
      return this.health.check([() => this.sessions.isHealthy('sessions', asked)]);
    }
  }

  @Module({
    imports: [TerminusModule.forRoot({ logger: false }), SessionsHealthModule],
    controllers: [HealthController],
  })
  class HealthModule {}

  const { adapter = memoryAdapter(), ...rest } = options;
  @Module({
    imports: [
      HealthModule,
      SessionsModule.forRoot({ sweep: false, ...rest, adapter }),
      SessionsModule.forFeature([desk]),
    ],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
  await app.init();
  open.push({ stop: () => app.close() });
  return {
    app,
    adapter,
    turns: app.get(TurnService),
    check: (given = {}) => {
      // A check may be slow on a busy machine.
      asked = { timeoutMs: 10_000, ...given };
      return request(app.getHttpServer() as Server).get('/health');
    },
    submit: async () => {
      const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
      const handle = app.get<OrchestratorHandle>(getOrchestratorToken(desk), { strict: false });
      const { id: turnId } = await handle.submit('hello', { sessionId });
      return { sessionId, turnId };
    },
  };
}

/** A store whose clock makes new turns look two minutes old. */
function slowClock(): SessionsAdapter {
  return memoryAdapter({ clock: () => Date.now() - 120_000 });
}

function silent() {
  const nothing = async (): Promise<void> => {};
  return { notify: nothing, process: nothing, pause: nothing, resume: nothing, close: nothing };
}

function detailsOf(body: unknown): unknown {
  return (body as { details: { sessions: unknown } }).details.sessions;
}

function newPrefix(): string {
  return `t${randomBytes(6).toString('hex')}_`;
}

async function proxyOf({ url }: TestServer): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(url);
  open.push(proxy);
  return proxy;
}
