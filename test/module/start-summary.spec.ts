import { type DynamicModule } from '@nestjs/common';
import {
  memoryAdapter,
  SESSIONS_ADAPTER,
  SessionsConfigurationError,
  SessionsModule,
  type SessionsModuleOptions,
  type SessionsOptionsFactory,
} from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { SESSIONS_CONTROLLERS } from '../../lib/common/sessions.tokens.js';
import { sessionsControllers } from '../../lib/module/sessions.controllers.js';
import { startSummary } from '../../lib/module/start-summary.js';
import { InProcessQueue } from '../../lib/queue/in-process/in-process-queue.js';
import { Echo, startApplication as startModules } from '../support/application.js';
import { capturingLogger } from '../support/capturing-logger.js';
import { LIVE_STORES, startApplication } from '../support/running-application.js';

class Guard {
  canActivate(): boolean {
    return true;
  }
}

const STORE = '(memory of this process|SQLite /\\S+|(PostgreSQL|MySQL|MariaDB|Redis) at \\S+)';

describe('the log entry of the start', () => {
  it.each(LIVE_STORES)('DAY-15 names the store and what runs, with $name', async ({ open }) => {
    const { lines, logger } = capturingLogger();
    await startApplication({ adapter: open(), orchestrators: [Echo], logger });
    const summary = `^log Store: ${STORE}\\. Queue: in this process\\. Role: both\\. Orchestrators: echo\\. Controllers: none\\. Session TTL: 60 min\\. Logs: messages shown, ids shown\\.`;
    expect(lines.filter((line) => new RegExp(summary).test(line))).toHaveLength(1);
  });

  it('DAY-15 names the role, and the queue of a process that runs no turns', async () => {
    const { lines, logger } = capturingLogger();
    await startApplication({ adapter: memoryAdapter(), role: 'submit', logger });
    expect(lines.find((line) => line.startsWith('log Store: '))).toMatch(
      /Queue: none; workers find turns in the store\. Role: submit\. Orchestrators: none\./,
    );
  });

  it('DAY-15 names controllers with their paths', () => {
    const { providers } = sessionsControllers({
      sessions: { guards: [Guard] },
      chat: { guards: [Guard], path: 'api/chat', orchestrators: ['echo'] },
    });
    expect(providers).toContainEqual({
      provide: SESSIONS_CONTROLLERS,
      useValue: ['sessions at /sessions', 'chat at /api/chat'],
    });
  });

  it('DAY-15 shows no user and no password', () => {
    const secret = 'desk:hunter2';
    const stores = [
      typeormAdapter({ dataSource: { type: 'postgres', url: `postgres://${secret}@db:5433/app` } }),
      typeormAdapter({
        dataSource: { type: 'mysql', host: 'db', username: 'desk', password: 'hunter2', database: 'app' },
      }),
      redisAdapter({ url: `redis://${secret}@cache/0` }),
    ];
    const queue = bullmqQueue({ connection: { url: `redis://${secret}@cache:6380` } });
    const logging = { messages: false, ids: false };
    const parts = { role: 'both', orchestrators: [], controllers: [], ttlMs: 0, logging } as const;
    const entries = stores.map((adapter) => startSummary({ adapter, queue, ...parts }));
    expect(entries).toEqual([
      expect.stringContaining('Store: PostgreSQL at db:5433/app. Queue: BullMQ agent-sessions at cache:6380.'),
      expect.stringContaining('Store: MySQL at db:3306/app.'),
      expect.stringContaining('Store: Redis at cache:6379'),
    ]);
    for (const entry of entries) expect(entry).not.toMatch(/desk|hunter2/);
  });

  it('DAY-15 warns of a store in memory beside a queue that other processes can share', async () => {
    const { lines, logger } = capturingLogger();
    await startApplication({ adapter: memoryAdapter(), turns: { queue: new InProcessQueue(1) }, logger });
    expect(lines.filter((line) => line.startsWith('warn Turns are queued with turns.queue'))).toHaveLength(1);
  });

  it('DAY-15 names a store without a label by its system', () => {
    const logging = { messages: false, ids: true };
    const parts = {
      queue: {},
      role: 'work',
      orchestrators: ['a', 'b'],
      controllers: [],
      ttlMs: 7000,
      logging,
    } as const;
    expect(startSummary({ adapter: { system: 'filedb' }, ...parts })).toBe(
      'Store: filedb. Queue: custom. Role: work. Orchestrators: a, b. Controllers: none. Session TTL: 7 s. Logs: messages hidden, ids shown.',
    );
  });

  it.each([
    [1000, '1 s'],
    [90_000, '90 s'],
    [1_800_000, '30 min'],
    [5_400_000, '90 min'],
    [86_400_000, '24 h'],
    // Milliseconds where seconds were expected.
    [3_600_000_000, '41.7 days'],
  ])('DAY-15 shows a TTL of %d ms as %s', (ttlMs, shown) => {
    const logging = { messages: false, ids: true };
    const parts = { adapter: {}, queue: {}, role: 'both', orchestrators: [], controllers: [], ttlMs, logging } as const;
    expect(startSummary(parts)).toContain(`Session TTL: ${shown}.`);
  });

  it('DAY-15 shows the maximum lifetime of sessions', async () => {
    const { lines, logger } = capturingLogger();
    await startApplication({ adapter: memoryAdapter(), maxLifetimeSeconds: 30 * 86_400, logger });
    expect(lines.find((line) => line.startsWith('log Store: '))).toContain('Session TTL: 60 min, at most 30 days.');
  });
});

describe('an adapter that is undefined', () => {
  const refused = new SessionsConfigurationError(
    'SessionsModule: The option adapter is undefined. Pass an adapter, for example typeormAdapter({ ... }). To store sessions in ' +
      'memory, pass memoryAdapter() or omit the option.',
  );
  const forgotten: SessionsModuleOptions = { adapter: undefined };

  it.each([
    ['forRoot', () => SessionsModule.forRoot(forgotten)],
    ['a factory', () => SessionsModule.forRootAsync({ useFactory: () => forgotten })],
  ])('DAY-15 stops the start, passed to %s', async (_, register) => {
    await expect(startModules({ imports: [register()] })).rejects.toThrow(refused);
  });

  it('DAY-15 is not the same as an omitted one', async () => {
    const app = await startModules({ imports: [SessionsModule.forRoot({})] });
    expect(app.get(SESSIONS_ADAPTER)).toMatchObject({ label: 'memory of this process' });
    await app.close();
  });

  class Forgetful implements SessionsOptionsFactory {
    createSessionsOptions(): SessionsModuleOptions {
      return undefined as unknown as SessionsModuleOptions;
    }
  }

  it.each([
    ['useFactory', { useFactory: () => undefined as unknown as SessionsModuleOptions }],
    ['useClass', { useClass: Forgetful }],
    ['useExisting', { imports: [providing(new Forgetful())], useExisting: Forgetful }],
  ])('DAY-15 stops the start if %s returns undefined instead of options', async (_, options) => {
    await expect(startModules({ imports: [SessionsModule.forRootAsync(options)] })).rejects.toThrow(
      new SessionsConfigurationError(
        'SessionsModule.forRootAsync: The factory returned undefined. Expected an object, such as ' +
          '{ adapter: typeormAdapter({ ... }) }. Return {} to use the defaults.',
      ),
    );
  });

  it.each([
    ['undefined', undefined, 'undefined'],
    ['an object without the method', {}, 'an object'],
  ])('DAY-15 stops the start if the provider of useExisting resolves to %s', async (_, value, received) => {
    const options = { imports: [providing(value)], useExisting: Forgetful };

    await expect(startModules({ imports: [SessionsModule.forRootAsync(options)] })).rejects.toThrow(
      new SessionsConfigurationError(
        'SessionsModule.forRootAsync: Forgetful must be an object with the method createSessionsOptions(). ' +
          `Received: ${received}. Check the provider of Forgetful.`,
      ),
    );
  });

  /** A module that provides the value as the class. */
  function providing(value: unknown): DynamicModule {
    class Provided {}
    return { module: Provided, providers: [{ provide: Forgetful, useFactory: () => value }], exports: [Forgetful] };
  }
});
