import 'reflect-metadata';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type INestApplicationContext,
  Injectable,
  type BeforeApplicationShutdown,
  Global,
  Module,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  defineOrchestrator,
  memoryAdapter,
  OrchestratorHandle,
  InjectOrchestrator,
  type SessionsAdapter,
  SESSIONS_ADAPTER,
  SessionsModule,
  SessionStore,
  ShuttingDownError,
  StoreUnavailableError,
  type TurnQueue,
  TurnService,
} from 'nestjs-agent-sessions';
import { sessionsEntities, typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { DataSource } from 'typeorm';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { startApplication } from '../support/application.js';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/running-application.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { sqliteAdapter, temporaryFolder } from '../support/stores.js';

describe('the lifecycle of the module', () => {
  let app: INestApplicationContext | undefined;

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  it('NST-05 connects the store before its first use, and starts workers after the application', async () => {
    const { desk, events, finish } = slowDesk();
    @Injectable()
    class EarlyUser implements OnModuleInit {
      constructor(
        private readonly sessions: SessionStore,
        @InjectOrchestrator(desk) private readonly handle: OrchestratorHandle,
      ) {}

      async onModuleInit(): Promise<void> {
        const { id } = await this.sessions.create({ userId: 'ann' });
        events.push('module init');
        await this.handle.submit('early', { sessionId: id });
      }
    }
    const adapter = recordingAdapter(sqliteAdapter(), events);

    app = await startApplication({
      imports: [SessionsModule.forRoot({ adapter, sweep: false }), SessionsModule.forFeature([desk])],
      providers: [EarlyUser],
    });
    await eventually(() => events.includes('handler begins'));
    finish();

    const order = ['init', 'sessions.create', 'module init', 'turns.accept', 'beginWork', 'turns.claim'];
    expect(inOrder(events, order)).toEqual(order);
    expect(events.filter((event) => event === 'init')).toHaveLength(1);
  });

  it('NST-05 stops intake, then workers, then the store', async () => {
    const { desk, events, finish } = slowDesk();
    app = await startApplication({
      imports: [
        SessionsModule.forRoot({
          adapter: recordingAdapter(sqliteAdapter(), events),
          turns: { queue: recordingQueue(events) },
        }),
        SessionsModule.forFeature([desk]),
      ],
    });
    const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
    const turns = app.get(TurnService);
    const answer = turns.execute('slow', 'hello', { sessionId });
    await eventually(() => events.includes('handler begins'));

    const closing = app.close().then(() => events.push('closed'));
    await eventually(() => events.includes('queue.close'));
    await expect(turns.submit('slow', 'too late', { sessionId })).rejects.toThrow(ShuttingDownError);
    events.push('refused');
    finish();
    await closing;

    // The running turn had time to finish, and its caller received the result.
    expect(await answer).toMatchObject({ reply: 'done' });
    const order = ['queue.pause', 'queue.close', 'refused', 'handler ends', 'turns.settle', 'close', 'closed'];
    expect(inOrder(events, order)).toEqual(order);
    expect(events.slice(events.indexOf('close'))).toEqual(['close', 'closed']);
  });

  it.each([false, true])(
    'NST-05 accepts and claims nothing while a global module is destroyed (isGlobal: %s)',
    async (isGlobal) => {
      const { desk, events, finish } = slowDesk();
      const adapter = memoryAdapter();
      @Injectable()
      class Pool implements OnModuleDestroy {
        async onModuleDestroy(): Promise<void> {
          await expect(submit('late', 'idle')).rejects.toThrow(ShuttingDownError);
          finish();
          await eventually(async () => (await turnOf('running', 0)).status === 'awaiting-input');
          events.push('pool closed');
        }
      }
      @Global()
      @Module({ providers: [Pool] })
      class PoolModule {}
      const turnOf = async (sessionId: string, index: number) => (await adapter.turns.list({ sessionId }))[index];
      const options = { adapter: { ...adapter, close: undefined }, isGlobal, sweep: false } as const;
      const started = await startApplication({
        imports: [PoolModule, SessionsModule.forRoot(options), SessionsModule.forFeature([desk])],
      });
      const submit = (text: string, sessionId: string) =>
        started.get(TurnService, { strict: false }).submit('slow', text, { sessionId });
      const sessions = started.get(SessionStore, { strict: false });
      for (const id of ['running', 'idle']) await sessions.create({ id, userId: 'ann' });
      await submit('runs', 'running');
      await submit('waits', 'running');
      await eventually(() => events.includes('handler begins'));
      await started.close();

      expect(events).toEqual(['handler begins', 'handler ends', 'pool closed']);
      expect(await turnOf('running', 1)).toMatchObject({ status: 'queued' });
    },
  );

  it('NST-05 keeps the store open while other parts of the application stop', async () => {
    @Injectable()
    class LateUser implements BeforeApplicationShutdown {
      found: unknown;
      constructor(private readonly sessions: SessionStore) {}

      async beforeApplicationShutdown(): Promise<void> {
        this.found = await this.sessions.find({ userId: 'ann' });
      }
    }
    const started = await startApplication({
      imports: [SessionsModule.forRoot({ adapter: sqliteAdapter() })],
      providers: [LateUser],
    });
    const session = await started.get(SessionStore).create({ userId: 'ann' });

    await started.close();

    expect(started.get(LateUser).found).toEqual([session]);
  });

  it('NST-05 closes the connection of the adapter, so that the next process can work at once', async () => {
    const file = join(temporaryFolder(), 'sessions.db');
    const first = await startApplication({ imports: [SessionsModule.forRoot({ adapter: sqliteAdapter(file) })] });
    const session = await first.get(SessionStore).create({ userId: 'ann' });
    const adapter = first.get<SessionsAdapter>(SESSIONS_ADAPTER);

    await first.close();

    await expect(adapter.ping()).rejects.toThrow(StoreUnavailableError);
    app = await startApplication({ imports: [SessionsModule.forRoot({ adapter: sqliteAdapter(file) })] });
    expect(await app.get(SessionStore).get(session.id)).toEqual(session);
  });

  it('NST-05 does not close a DataSource of the application', async () => {
    const database = join(temporaryFolder(), 'sessions.db');
    const dataSource = await new DataSource({
      type: 'better-sqlite3',
      database,
      entities: sessionsEntities(),
    }).initialize();
    const started = await startApplication({
      imports: [SessionsModule.forRoot({ adapter: typeormAdapter({ dataSource }) })],
    });
    const { id } = await started.get(SessionStore).create({ userId: 'ann' });

    await started.close();

    expect(dataSource.isInitialized).toBe(true);
    expect(await dataSource.getRepository('agent_session').find()).toMatchObject([{ id, userId: 'ann' }]);
    await dataSource.destroy();
  });

  it('NST-05 begins no work if the application is closed while it starts', async () => {
    const events: string[] = [];
    const [begun, held] = [gate(), gate()];
    const beginWork = (): Promise<void> => {
      begun.open();
      return held.pass();
    };
    const adapter = recordingAdapter({ ...memoryAdapter(), beginWork, close: () => Promise.resolve() }, events);
    @Module({
      imports: [
        SessionsModule.forRoot({ adapter, turns: { queue: recordingQueue(events) }, sweep: { cron: '* * * * * *' } }),
      ],
    })
    class AppModule {}
    const http = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
    const starting = http.init();
    await begun.pass();
    const closing = http.close();
    await eventually(() => events.includes('close'));
    held.open();
    await Promise.all([starting, closing]);
    await delay(1100);
    expect(events).not.toContain('queue.process');
    expect(events.at(-1)).toBe('close');
  });

  it('NST-05 TRN-21 does not open a queue that was closed before', async () => {
    const events: string[] = [];
    @Module({ imports: [SessionsModule.forRoot({ turns: { queue: recordingQueue(events) }, sweep: false })] })
    class AppModule {}
    const http = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
    await http.close();
    await http.init();
    expect(events).toContain('queue.close');
    expect(events.slice(events.indexOf('queue.close'))).not.toContain('queue.init');
  });

  it('NST-05 stops the start if the store cannot be opened', async () => {
    const adapter = { ...memoryAdapter(), init: () => Promise.reject(new StoreUnavailableError('No connection.')) };

    const imports = [SessionsModule.forRoot({ adapter, retryAttempts: 1 })];
    await expect(startApplication({ imports })).rejects.toThrow('No connection.');
  });
});

/** An orchestrator whose turn runs until released, with a record of events. */
function slowDesk() {
  const events: string[] = [];
  let finish = (): void => undefined;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const desk = defineOrchestrator({
    name: 'slow',
    intents: {
      wait: async () => {
        events.push('handler begins');
        await finished;
        events.push('handler ends');
        return 'done';
      },
    },
  });
  return { desk, events, finish: () => finish() };
}

function recordingQueue(events: string[]): TurnQueue {
  const queue = new InProcessQueue(8);
  return {
    init: async () => void events.push('queue.init'),
    notify: (...args) => queue.notify(...args),
    process: (handler) => {
      events.push('queue.process');
      return queue.process(handler);
    },
    resume: () => queue.resume(),
    pause: () => {
      events.push('queue.pause');
      return queue.pause();
    },
    close: () => {
      events.push('queue.close');
      return queue.close();
    },
  };
}

/** Returns the requested events in the order of their first occurrence. */
function inOrder(events: readonly string[], wanted: readonly string[]): string[] {
  return [...new Set(events)].filter((event) => wanted.includes(event));
}
