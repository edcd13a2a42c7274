import 'reflect-metadata';
import { type INestApplicationContext } from '@nestjs/common';
import {
  InMemorySessionStoreAdapter,
  memoryAdapter,
  SessionsConfigurationError,
  SessionsModule,
  type SessionsModuleOptions,
  SessionStore,
} from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { longestBackoffMs } from '../../lib/common/backoff.js';
import { resolveOptions } from '../../lib/module/sessions.settings.js';
import { startApplication } from '../support/application.js';

const ADAPTER = 'must be a SessionsAdapter, for example memoryAdapter() or typeormAdapter({ ... }).';
const CRON = 'must be a cron expression with a next run, for example */5 * * * *.';
const QUEUE = 'must be a TurnQueue, for example bullmqQueue({ ... }).';
const POLICIES = 'must be one of enqueue, reject, interrupt, rollback, latest, replace.';
const integer = (min: number, max: number) => `must be an integer from ${min} to ${max}.`;
const TTL = integer(1, 3_153_600_000);
const TTL_OR_NEVER = 'must be "never" or an integer from 1 to 3153600000.';
const NAME = 'must be a string of 1 to 256 characters without control characters or lone surrogates.';
const FALSE_OR_MS = 'must be false or an integer from 1 to 2147483647.';
const UNKNOWN_OF_SWEEP =
  'is not a known key. Did you mean cron? Allowed: cron, enabled, expireAfterSeconds, purgeAfterSeconds, ' +
  'purgeTurnsAfterSeconds, maxPerRun.';
const UNKNOWN_OF_LOGGING = 'is not a known key. Did you mean messages? Allowed: messages, ids.';
const UNKNOWN_OF_ORCHESTRATION =
  'is not a known key. Allowed: namespace, cleanup, ttlSeconds, maxSessions, recentTools.';
const UNKNOWN_LIKE_TTL =
  'is not a known key. Did you mean ttlSeconds? Allowed: adapter, retryAttempts, retryDelayMs, ttlSeconds, maxLifetimeSeconds, sweep, turns, ' +
  'orchestration, state, telemetry, logging, surfacePolicy, maxSurfacesPerSession, onSurfaceLimit, maxMetadataBytes, ' +
  'tokenCounter, principal, generateId, isGlobal, role, controllers.';
const FALSE_OR_SECONDS = 'must be false or an integer of seconds from 1 to 3153600000.';
const MS = integer(0, 2_147_483_647);
const HOUR_MS = 3_600_000;

const cycle: Record<string, unknown> = {};
cycle.self = cycle;

/** Invalid options: the name in the message, the allowed values, and the shown value. */
const WRONG: readonly [unknown, string, string, string][] = [
  [{ adapter: {} }, 'adapter', `${ADAPTER} Missing: sessions. Add it.`, '{}'],
  [{ adapter: 'sqlite' }, 'adapter', ADAPTER, "'sqlite'"],
  [{ adapter: memoryAdapter }, 'adapter', ADAPTER, 'a function'],
  [
    { adapter: new InMemorySessionStoreAdapter() },
    'adapter',
    `${ADAPTER} Missing: sessions. Add it.`,
    'an instance of InMemorySessionStoreAdapter',
  ],
  [{ adapter: null }, 'adapter', ADAPTER, 'null'],
  [{ ttlSeconds: 0 }, 'ttlSeconds', TTL, '0'],
  [{ ttlSeconds: -5 }, 'ttlSeconds', TTL, '-5'],
  [{ ttlSeconds: 1.5 }, 'ttlSeconds', TTL, '1.5'],
  [{ ttlSeconds: 'an hour' }, 'ttlSeconds', TTL, "'an hour'"],
  [{ ttlSeconds: NaN }, 'ttlSeconds', TTL, 'NaN'],
  [{ ttlSeconds: Infinity }, 'ttlSeconds', TTL, 'Infinity'],
  [{ ttlSeconds: 3600n }, 'ttlSeconds', TTL, '3600n'],
  [{ ttlSeconds: cycle }, 'ttlSeconds', TTL, '<ref *1> { self: [Circular *1] }'],
  [{ ttlSeconds: null }, 'ttlSeconds', TTL, 'null'],
  [{ sweep: true }, 'sweep', 'must be an object.', 'true'],
  [{ sweep: null }, 'sweep', 'must be an object.', 'null'],
  [{ sweep: { cron: 'every five minutes' } }, 'sweep.cron', CRON, "'every five minutes'"],
  [{ sweep: { cron: '61 * * * *' } }, 'sweep.cron', CRON, "'61 * * * *'"],
  [{ sweep: { cron: 5 } }, 'sweep.cron', CRON, '5'],
  [{ sweep: { enabled: 'false' } }, 'sweep.enabled', 'must be a boolean.', "'false'"],
  [{ sweep: { maxPerRun: 0 } }, 'sweep.maxPerRun', integer(1, 10_000_000), '0'],
  [{ sweep: { expireAfterSeconds: 0 } }, 'sweep.expireAfterSeconds', TTL, '0'],
  [{ sweep: { purgeTurnsAfterSeconds: 0 } }, 'sweep.purgeTurnsAfterSeconds', FALSE_OR_SECONDS, '0'],
  [{ sweep: { purgeTurnsAfterSeconds: true } }, 'sweep.purgeTurnsAfterSeconds', FALSE_OR_SECONDS, 'true'],
  [{ sweep: { purgeAfterSeconds: 1.5 } }, 'sweep.purgeAfterSeconds', TTL, '1.5'],
  [{ maxLifetimeSeconds: -1 }, 'maxLifetimeSeconds', TTL, '-1'],
  [{ telemetry: 'off' }, 'telemetry', 'must be a boolean.', "'off'"],
  [{ logging: null }, 'logging', 'must be an object.', 'null'],
  [{ logging: { ids: 'hashed' } }, 'logging.ids', 'must be a boolean.', "'hashed'"],
  [{ logging: { message: true } }, 'logging.message', UNKNOWN_OF_LOGGING, 'true'],
  [{ surfacePolicy: 'steal' }, 'surfacePolicy', 'must be one of move, reject, share.', "'steal'"],
  [{ sweep: { corn: '* * * * *' } }, 'sweep.corn', UNKNOWN_OF_SWEEP, "'* * * * *'"],
  [{ maxSurfacesPerSession: 1001 }, 'maxSurfacesPerSession', integer(1, 1000), '1001'],
  [{ maxMetadataBytes: 1 }, 'maxMetadataBytes', integer(2, 16_777_216), '1'],
  [{ principal: 'user' }, 'principal', 'must be a function that takes the execution context.', "'user'"],
  [{ generateId: 'uuid' }, 'generateId', 'must be a function that returns an id.', "'uuid'"],
  [{ turns: [] }, 'turns', 'must be an object.', '[]'],
  [{ turns: null }, 'turns', 'must be an object.', 'null'],
  [{ turns: { queue: 'bullmq' } }, 'turns.queue', QUEUE, "'bullmq'"],
  [
    { turns: { queue: { notify() {} } } },
    'turns.queue',
    `${QUEUE} Missing: process(). Add it.`,
    '{ notify: [Function: notify] }',
  ],
  [{ turns: { concurrency: 0 } }, 'turns.concurrency', integer(1, 10_000), '0'],
  [{ turns: { whenBusy: 'wait' } }, 'turns.whenBusy', POLICIES, "'wait'"],
  [{ turns: { maxQueuedPerSession: 0 } }, 'turns.maxQueuedPerSession', integer(1, 1_000_000), '0'],
  [{ turns: { maxInputBytes: -1 } }, 'turns.maxInputBytes', integer(1, 67_108_864), '-1'],
  [{ turns: { leaseMs: 99 } }, 'turns.leaseMs', integer(100, HOUR_MS), '99'],
  [{ turns: { reconcileMs: 9 } }, 'turns.reconcileMs', integer(10, HOUR_MS), '9'],
  [{ turns: { idempotencySeconds: 0 } }, 'turns.idempotencySeconds', integer(1, 31_536_000), '0'],
  [{ turns: { timeoutMs: 0 } }, 'turns.timeoutMs', FALSE_OR_MS, '0'],
  [{ turns: { timeoutMs: '60000' } }, 'turns.timeoutMs', FALSE_OR_MS, "'60000'"],
  [{ turns: { shutdownGraceMs: -1 } }, 'turns.shutdownGraceMs', integer(0, HOUR_MS), '-1'],
  [{ turns: { retry: 3 } }, 'turns.retry', 'must be an object.', '3'],
  [{ turns: { retry: { attempts: 0 } } }, 'turns.retry.attempts', integer(1, 1000), '0'],
  [{ turns: { retry: { backoff: null } } }, 'turns.retry.backoff', 'must be an object.', 'null'],
  [
    { turns: { retry: { backoff: { type: 'linear' } } } },
    'turns.retry.backoff.type',
    'must be fixed or exponential.',
    "'linear'",
  ],
  [{ turns: { retry: { backoff: { delayMs: -1 } } } }, 'turns.retry.backoff.delayMs', MS, '-1'],
  [{ turns: { retry: { backoff: { maxDelayMs: 2 ** 31 } } } }, 'turns.retry.backoff.maxDelayMs', MS, '2147483648'],
  [{ orchestration: false }, 'orchestration', 'must be an object.', 'false'],
  [{ orchestration: { namespace: '' } }, 'orchestration.namespace', NAME, "''"],
  [{ orchestration: { namespace: 'a\nb' } }, 'orchestration.namespace', NAME, "'a\\nb'"],
  [{ orchestration: { ttlSeconds: 0 } }, 'orchestration.ttlSeconds', TTL_OR_NEVER, '0'],
  [{ orchestration: { ttlSeconds: -1 } }, 'orchestration.ttlSeconds', TTL_OR_NEVER, '-1'],
  [{ orchestration: { ttlSeconds: 'forever' } }, 'orchestration.ttlSeconds', TTL_OR_NEVER, "'forever'"],
  [
    { orchestration: { cleanup: { enabled: true } } },
    'orchestration.cleanup',
    'must be a boolean.',
    '{ enabled: true }',
  ],
  [{ orchestration: { maxSessions: 0 } }, 'orchestration.maxSessions', integer(1, 1_000_000_000), '0'],
  [{ orchestration: { recentTools: 1001 } }, 'orchestration.recentTools', integer(1, 1000), '1001'],
  [{ orchestration: { steps: [] } }, 'orchestration.steps', UNKNOWN_OF_ORCHESTRATION, '[]'],
  [{ tllSeconds: 60 }, 'tllSeconds', UNKNOWN_LIKE_TTL, '60'],
  [{ ttlSecond: 5 }, 'ttlSecond', UNKNOWN_LIKE_TTL, '5'],
];

describe('the options of SessionsModule', () => {
  const env = process.env.SESSION_TTL_SECONDS;
  let app: INestApplicationContext | undefined;

  afterEach(async () => {
    if (env === undefined) delete process.env.SESSION_TTL_SECONDS;
    else process.env.SESSION_TTL_SECONDS = env;
    await app?.close();
    app = undefined;
  });

  it('NST-03 TRN-08 stops the start if the first pause between attempts is longer than the longest one', async () => {
    const backoff = { delayMs: 120_000, maxDelayMs: 60_000 };
    const start = startApplication({ imports: [SessionsModule.forRoot({ turns: { retry: { backoff } } })] });
    await expect(start).rejects.toThrow(SessionsConfigurationError);
    await expect(start).rejects.toThrow('must not exceed maxDelayMs, which is 60000. Received: 120000.');
  });

  it.each([
    [{ delayMs: 120_000 }, 120_000],
    [{ maxDelayMs: 100 }, 100],
    [{ type: 'fixed', delayMs: 120_000, maxDelayMs: 100 }, 120_000],
  ] as const)('NST-03 TRN-08 waits for at most %j between attempts', (backoff, longest) => {
    expect(longestBackoffMs(resolveOptions({ turns: { retry: { backoff } } }).turns.retry.backoff)).toBe(longest);
  });

  it('NST-03 TRN-21 rejects turns.concurrency next to a queue that has its own', async () => {
    const queue = bullmqQueue({ connection: {} });
    const start = startApplication({ imports: [SessionsModule.forRoot({ turns: { queue, concurrency: 64 } })] });
    await expect(start).rejects.toThrow(SessionsConfigurationError);
    await expect(start).rejects.toThrow('for example bullmqQueue({ concurrency: 64 }), and remove turns.concurrency.');
  });

  const rows = WRONG.map(([options, option, rule, value]) => ({
    options,
    message: `SessionsModule: The option ${option} ${rule} Received: ${value}.`,
  }));

  it.each(rows)('NST-03 stops the start: $message', async ({ options, message }) => {
    const start = startApplication({ imports: [SessionsModule.forRoot(options as SessionsModuleOptions)] });

    await expect(start).rejects.toThrow(new SessionsConfigurationError(message));
    await expect(start).rejects.toMatchObject({ code: 'CONFIGURATION' });
  });

  it.each(['0 0 31 2 *', '0 0 30 2 *', '0 0 31 2,4,6,9,11 *', '0 0 0 31 2 *'])(
    'FIX-77 stops the start for %s, a cron expression without a date, before the store connects',
    async (cron) => {
      const adapter = memoryAdapter();
      const connected: string[] = [];
      const init = (): Promise<void> => Promise.resolve(void connected.push(cron));

      const start = startApplication({
        imports: [SessionsModule.forRoot({ adapter: { ...adapter, init }, sweep: { cron } })],
      });

      const message = `SessionsModule: The option sweep.cron ${CRON} Received: '${cron}'.`;
      await expect(start).rejects.toThrow(new SessionsConfigurationError(message));
      expect(connected).toEqual([]);
    },
  );

  it('FIX-77 accepts a cron expression whose next date is years away', async () => {
    app = await startApplication({ imports: [SessionsModule.forRoot({ sweep: { cron: '0 0 29 2 *' } })] });

    expect(app.get(SessionStore)).toBeDefined();
  });

  it.each([
    [null, 'The options must be an object. Received: null.'],
    ['memory', "The options must be an object. Received: 'memory'."],
    [[{ password: 'hunter2' }], "The options must be an object. Received: [ { password: '***' } ]."],
    ['redis://me:hunter2@cache', "The options must be an object. Received: 'redis://***@cache'."],
  ])('NST-03 stops the start when a factory makes %s of them', async (made, message) => {
    const useFactory = (): SessionsModuleOptions => made as unknown as SessionsModuleOptions;

    const start = startApplication({ imports: [SessionsModule.forRootAsync({ useFactory })] });

    await expect(start).rejects.toThrow(new SessionsConfigurationError(`SessionsModule: ${message}`));
  });

  it('NST-03 ORC-12 stops the start if a factory returns invalid orchestration options', async () => {
    const useFactory = (): SessionsModuleOptions => ({ orchestration: { ttlSeconds: 1.5 } });

    const start = startApplication({ imports: [SessionsModule.forRootAsync({ useFactory })] });

    const message = `SessionsModule: The option orchestration.ttlSeconds ${TTL_OR_NEVER} Received: 1.5.`;
    await expect(start).rejects.toThrow(new SessionsConfigurationError(message));
  });

  it.each(['__proto__', 'constructor', 'hasOwnProperty', 'toString'])(
    'NST-03 rejects an option named %s, which objects inherit',
    async (name) => {
      const options = JSON.parse(`{ "turns": { "${name}": {} } }`) as SessionsModuleOptions;

      const start = startApplication({ imports: [SessionsModule.forRoot(options)] });

      await expect(start).rejects.toThrow(`The option turns.${name} is not a known key.`);
    },
  );

  it('NST-03 accepts valid options, at their limits and omitted', async () => {
    const options: SessionsModuleOptions[] = [
      {},
      { turns: {}, sweep: {} },
      { turns: undefined, sweep: undefined, ttlSeconds: undefined },
      { ttlSeconds: 1, maxSurfacesPerSession: 1000, turns: { retry: { attempts: 1, backoff: { delayMs: 0 } } } },
      { sweep: { cron: '*/10 * * * * *', enabled: false } },
      { sweep: false },
      { orchestration: { namespace: 'o', ttlSeconds: 'never', cleanup: false, maxSessions: 1, recentTools: 1000 } },
    ];

    for (const option of options) {
      const started = await startApplication({ imports: [SessionsModule.forRoot(option)] });
      await started.close();
    }
  });

  it('NST-03 SES-19 reads the idle time from SESSION_TTL_SECONDS if the option is omitted', async () => {
    process.env.SESSION_TTL_SECONDS = '60';

    expect(await suspendedAfter({}, 60_000)).toBe(false);
    expect(await suspendedAfter({}, 60_001)).toBe(true);
  });

  it('NST-03 prefers the option to SESSION_TTL_SECONDS', async () => {
    process.env.SESSION_TTL_SECONDS = '60';

    expect(await suspendedAfter({ ttlSeconds: 120 }, 120_000)).toBe(false);
    expect(await suspendedAfter({ ttlSeconds: 120 }, 120_001)).toBe(true);
  });

  it('NST-03 accepts the idle time as a string of digits, as from a configuration service', async () => {
    expect(await suspendedAfter({ ttlSeconds: '120' }, 120_000)).toBe(false);
    expect(await suspendedAfter({ ttlSeconds: '120' }, 120_001)).toBe(true);
  });

  it('NST-03 uses an idle time of one hour by default', async () => {
    delete process.env.SESSION_TTL_SECONDS;

    expect(await suspendedAfter({}, HOUR_MS)).toBe(false);
    expect(await suspendedAfter({}, HOUR_MS + 1)).toBe(true);
  });

  it.each(['', '0', '-1', '1.5', '1e3', ' 60', '60s', 'an hour', '3153600001'])(
    'NST-03 stops the start if SESSION_TTL_SECONDS is "%s"',
    async (text) => {
      process.env.SESSION_TTL_SECONDS = text;

      const start = startApplication({ imports: [SessionsModule.forRoot()] });

      await expect(start).rejects.toThrow(
        new SessionsConfigurationError(
          `SessionsModule: The environment variable SESSION_TTL_SECONDS must be an integer from 1 to 3153600000. Received: '${text}'.`,
        ),
      );
    },
  );

  /** Returns whether the sweep suspends a session that was idle this long. */
  async function suspendedAfter(options: SessionsModuleOptions, idleMs: number): Promise<boolean> {
    let now = Date.parse('2026-11-21T08:00:00.000Z');
    const adapter = memoryAdapter({ clock: () => now });
    app = await startApplication({ imports: [SessionsModule.forRoot({ ...options, adapter, sweep: false })] });
    const sessions = app.get(SessionStore);
    const { id } = await sessions.create({ userId: 'ann' });
    await sessions.touch(id);
    now += idleMs;
    await sessions.sweepStale();
    const session = await sessions.get(id);
    await app.close();
    return session?.state === 'suspended';
  }
});
