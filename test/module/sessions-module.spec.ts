import 'reflect-metadata';
import { type DynamicModule, type INestApplicationContext, Injectable, Logger, Module } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { jest } from '@jest/globals';
import {
  AffinityResolver,
  CheckpointStore,
  defineSessionManager,
  getOrchestratorToken,
  getSessionManagerToken,
  InjectOrchestrator,
  memoryAdapter,
  OrchestratorHandle,
  resolveSession,
  type SessionsAdapter,
  SessionGuard,
  SESSIONS_ADAPTER,
  SessionsConfigurationError,
  SessionsModule,
  type SessionsModuleAsyncOptions,
  type SessionsModuleOptions,
  type SessionsModuleStatics,
  type SessionsOptionsFactory,
  SessionStore,
  TurnService,
} from 'nestjs-agent-sessions';
import { Echo, startApplication } from '../support/application.js';

/** A service of an application, as in the README: only the handle needs a decorator. */
@Injectable()
class Support {
  constructor(
    readonly sessions: SessionStore,
    readonly turns: TurnService,
    readonly checkpoints: CheckpointStore,
    readonly affinity: AffinityResolver,
    @InjectOrchestrator(Echo) readonly echo: OrchestratorHandle,
  ) {}

  async chat(text: string): Promise<string | null> {
    const session = await this.sessions.create({ userId: 'ann' });
    return (await this.echo.execute(text, { sessionId: session.id })).reply;
  }
}

/** An adapter that identifies the options of a module. */
const marked = memoryAdapter();

@Injectable()
class OptionsFactory implements SessionsOptionsFactory {
  createSessionsOptions(): SessionsModuleOptions {
    return { adapter: marked };
  }
}

@Injectable()
class AsyncOptionsFactory implements SessionsOptionsFactory {
  async createSessionsOptions(): Promise<SessionsModuleOptions> {
    return { adapter: marked };
  }
}

@Module({ providers: [AsyncOptionsFactory], exports: [AsyncOptionsFactory] })
class SettingsModule {}

@Module({ providers: [{ provide: 'STORE', useValue: marked }], exports: ['STORE'] })
class StoreModule {}

describe('SessionsModule', () => {
  let app: INestApplicationContext | undefined;

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  it('NST-01 runs conversations in memory with forRoot()', async () => {
    app = await startApplication({
      imports: [SessionsModule.forRoot(), SessionsModule.forFeature([Echo])],
      providers: [Support],
    });

    expect(await app.get(Support).chat('hello')).toBe('You said: hello');
  });

  it.each(asyncWays())('NST-01 accepts options of forRootAsync from %s', async (_, options) => {
    app = await startApplication({
      imports: [SessionsModule.forRootAsync(options), SessionsModule.forFeature([Echo])],
      providers: [Support],
    });

    expect(app.get(SESSIONS_ADAPTER)).toBe(marked);
    expect(await app.get(Support).chat('hello')).toBe('You said: hello');
  });

  const wrongWays: [string, unknown, string][] = [
    ['nothing', undefined, 'none'],
    ['no way', {}, 'none'],
    ['only what belongs to useFactory', { inject: [StoreModule] }, 'none'],
    ['useFactory and useClass', { useFactory: () => ({}), useClass: OptionsFactory }, 'several'],
    ['useClass and useExisting', { useClass: OptionsFactory, useExisting: OptionsFactory }, 'several'],
    ['all three', { useFactory: () => ({}), useClass: OptionsFactory, useExisting: OptionsFactory }, 'several'],
  ];

  it.each(wrongWays)('NST-01 rejects forRootAsync with %s', (_, options, count) => {
    expect(() => SessionsModule.forRootAsync(options as SessionsModuleAsyncOptions)).toThrow(
      new SessionsConfigurationError(
        `SessionsModule.forRootAsync has ${count} of useFactory, useClass and useExisting. Add exactly one of them.`,
      ),
    );
  });

  it.each([
    ['adapter', memoryAdapter()],
    ['isglobal', true],
  ])('NST-03 rejects the unknown key %s of forRootAsync', (key, value) => {
    const options = { useFactory: () => ({}), [key]: value } as SessionsModuleAsyncOptions;
    expect(() => SessionsModule.forRootAsync(options)).toThrow(SessionsConfigurationError);
    expect(() => SessionsModule.forRootAsync(options)).toThrow(
      new RegExp(`forRootAsync: ${key} is not a known key\\. .+ Return the options of forRoot from useFactory\\.$`),
    );
  });

  describe.each(allWays())('with options from %s', (_, register) => {
    it('NST-01 NST-02 injects the same services into every module with isGlobal', async () => {
      @Module({ providers: [NeedsSessions] })
      class OneModule {}

      @Module({ providers: [NeedsToo] })
      class OtherModule {}

      app = await startApplication({ imports: [register(true), OneModule, OtherModule] });

      expectSameServices(app);
    });

    it('NST-01 NST-02 injects the same services into importing modules without isGlobal', async () => {
      const sessions = register(false);

      @Module({ imports: [sessions], providers: [NeedsSessions], exports: [sessions] })
      class OneModule {}

      @Module({ imports: [OneModule], providers: [NeedsToo] })
      class OtherModule {}

      app = await startApplication({ imports: [OneModule, OtherModule] });

      expectSameServices(app);
    });

    it('NST-01 DAY-04 injects the same services into modules that import a feature, or the class', async () => {
      @Module({ imports: [SessionsModule.forFeature([Echo])], providers: [NeedsSessions, SessionGuard] })
      class DeskModule {}

      @Module({ imports: [SessionsModule], providers: [NeedsToo], exports: [SessionsModule] })
      class OtherModule {}

      app = await startApplication({ imports: [OtherModule, DeskModule, register(false)] });

      expectSameServices(app);
      expect(app.select(DeskModule).get(SessionGuard)).toBeInstanceOf(SessionGuard);
    });

    it.each([false, undefined])('NST-01 injects no service without an import if isGlobal is %s', async (isGlobal) => {
      @Module({ providers: [NeedsSessions] })
      class ElsewhereModule {}

      const started = startApplication({ imports: [register(isGlobal), ElsewhereModule] });

      await expect(started).rejects.toThrow(/can't resolve dependencies of the NeedsSessions/);
    });
  });

  it('DAY-17 says that SessionStore does not belong in the providers of a module', async () => {
    @Module({ providers: [SessionStore, NeedsSessions] })
    class DeskModule {}

    await expect(startApplication({ imports: [SessionsModule.forRoot(), DeskModule] })).rejects.toThrow(
      'If a module lists SessionStore in its providers, remove it there',
    );
  });

  it('NST-01 supports forFeature in another module than a forRoot that is not global', async () => {
    @Module({ imports: [SessionsModule.forFeature([Echo])], providers: [Speaker], exports: [Speaker] })
    class DeskModule {}

    // The feature is imported first: its handle must not depend on the import order.
    app = await startApplication({ imports: [DeskModule, SessionsModule.forRoot()] });
    const { id } = await app.get(SessionStore).create({ userId: 'ann' });

    const result = await app.get(Speaker).echo.execute('hello', { sessionId: id });

    expect(result).toMatchObject({ sessionId: id, reply: 'You said: hello', turnIndex: 0 });
  });

  describe('without forRoot', () => {
    const missing = new SessionsConfigurationError(
      'SessionsModule.forFeature([Echo]), in the imports of AppModule, requires SessionsModule.forRoot(), which no module imports. ' +
        "Add SessionsModule.forRoot({ adapter }) to the imports of the application's root module, once. In tests, use " +
        'SessionsTestingModule instead.',
    );

    it('NST-01 DAY-04 stops the start, naming the feature and the module that imports it', async () => {
      const start = startApplication({ imports: [SessionsModule.forFeature([Echo])], providers: [Speaker] });
      await expect(start).rejects.toThrow(missing);
    });

    it('NST-01 DAY-04 stops the start of a module that imports the class', async () => {
      const start = startApplication({ imports: [SessionsModule], providers: [NeedsSessions] });
      await expect(start).rejects.toThrow(
        'The import of SessionsModule requires SessionsModule.forRoot(), which no module imports.',
      );
    });

    it('DAY-04 runs tests that have replaced all that a feature provides', async () => {
      const carts = defineSessionManager<{ items: string[] }>({ namespace: 'carts' });
      @Module({ imports: [SessionsModule.forFeature([Echo, carts])], providers: [Speaker] })
      class DeskModule {}
      const withHandle = () =>
        Test.createTestingModule({ imports: [DeskModule] })
          .overrideProvider(getOrchestratorToken(Echo))
          .useValue({ execute: async () => ({ reply: 'replaced' }) });
      await expect(withHandle().compile()).rejects.toThrow('SessionsModule.forFeature([Echo, carts])');

      const module = await withHandle()
        .overrideProvider(getSessionManagerToken(carts))
        .useFactory({ factory: () => ({}) })
        .compile();
      app = await module.init();
      const { echo } = app.get(Speaker, { strict: false });
      expect(await echo.execute('hello', { sessionId: 's' })).toEqual({ reply: 'replaced' });
    });

    it('NST-01 DAY-04 rejects a feature that is loaded lazily', async () => {
      app = await startApplication({});
      @Module({ imports: [SessionsModule.forFeature([Echo])] })
      class LazyModule {}
      await expect(app.get(LazyModuleLoader).load(() => LazyModule)).rejects.toThrow(
        'SessionsModule.forFeature([Echo]), in the imports of LazyModule, requires SessionsModule.forRoot()',
      );
    });
  });

  describe('in production', () => {
    const env = process.env.NODE_ENV;

    beforeEach(() => {
      process.env.NODE_ENV = 'production';
    });

    afterEach(() => {
      process.env.NODE_ENV = env;
      jest.restoreAllMocks();
    });

    it('NST-01 warns once if no durable store is configured', async () => {
      expect(await warningsOf(SessionsModule.forRoot())).toEqual([
        expect.stringMatching(
          /^No adapter is configured: sessions and turns are stored in memory .* a durable adapter to SessionsModule\.forRoot\(\{ adapter \}\)\.$/,
        ),
      ]);
    });

    it('NST-01 does not warn about a configured adapter', async () => {
      expect(await warningsOf(SessionsModule.forRoot({ adapter: memoryAdapter() }))).toEqual([]);
    });

    it('NST-01 does not warn outside production', async () => {
      process.env.NODE_ENV = 'development';

      expect(await warningsOf(SessionsModule.forRoot())).toEqual([]);
    });

    async function warningsOf(sessionsModule: ReturnType<typeof SessionsModule.forRoot>): Promise<unknown[]> {
      const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
      app = await startApplication({ imports: [sessionsModule] });
      return warn.mock.calls.map(([message]) => message as unknown);
    }
  });

  it('NST-02 injects the services by their classes and a handle by @InjectOrchestrator', async () => {
    app = await startApplication({
      imports: [SessionsModule.forRoot(), SessionsModule.forFeature([Echo])],
      providers: [Support],
    });
    const { sessions, turns, checkpoints, affinity, echo } = app.get(Support);

    expect(sessions).toBeInstanceOf(SessionStore);
    expect(turns).toBeInstanceOf(TurnService);
    expect(echo).toBeInstanceOf(OrchestratorHandle);
    expect(app.get(CheckpointStore)).toBe(checkpoints);
    expect(app.get(AffinityResolver)).toBe(affinity);

    // Both work over the same store.
    const session = await resolveSession({ userId: 'ann', surfaceId: 'web' }, sessions, affinity);
    const turn = await echo.submit('hello', { sessionId: session.id });
    expect(await turns.result(turn.id)).toMatchObject({ id: turn.id, reply: 'You said: hello' });
    expect(await checkpoints.load('echo', session.id)).toMatchObject({ turnIndex: 0, turnId: turn.id });
    expect(await affinity.resolve('ann', 'web')).toMatchObject({ id: session.id, state: 'active' });
  });
});

/** The services of this package that an application injects. */
@Injectable()
class Injected {
  constructor(
    readonly sessions: SessionStore,
    readonly turns: TurnService,
    readonly checkpoints: CheckpointStore,
    readonly affinity: AffinityResolver,
  ) {}
}

@Injectable()
class NeedsSessions extends Injected {}

@Injectable()
class NeedsToo extends Injected {}

/** Checks that services of two modules share sessions and turns in the configured store. */
function expectSameServices(app: INestApplicationContext): void {
  const one = app.get(NeedsSessions, { strict: false });
  const other = app.get(NeedsToo, { strict: false });
  expect(one.sessions).toBeInstanceOf(SessionStore);
  expect(one.turns).toBeInstanceOf(TurnService);
  for (const service of ['sessions', 'turns', 'checkpoints', 'affinity'] as const) {
    expect(one[service]).toBeDefined();
    expect(other[service]).toBe(one[service]);
  }
  expect(app.get(SESSIONS_ADAPTER, { strict: false })).toBe(marked);
}

function asyncWays(): [string, SessionsModuleAsyncOptions][] {
  return [
    ['useFactory', { useFactory: () => ({ adapter: marked }) }],
    ['an asynchronous useFactory', { useFactory: async () => ({ adapter: marked }) }],
    [
      'useFactory with what it injects from its imports',
      {
        imports: [StoreModule],
        inject: ['STORE'],
        useFactory: (adapter: SessionsAdapter) => ({ adapter }),
      },
    ],
    ['useClass', { useClass: OptionsFactory }],
    ['useExisting', { imports: [SettingsModule], useExisting: AsyncOptionsFactory }],
  ];
}

/** forRoot, and every variant of forRootAsync. */
function allWays(): [string, (isGlobal: boolean | undefined) => DynamicModule][] {
  const statics = (isGlobal: boolean | undefined): SessionsModuleStatics =>
    isGlobal === undefined ? {} : { isGlobal };
  return [
    ['forRoot', (isGlobal) => SessionsModule.forRoot({ ...statics(isGlobal), adapter: marked })],
    ...asyncWays().map(([name, options]): [string, (isGlobal: boolean | undefined) => DynamicModule] => [
      `forRootAsync with ${name}`,
      (isGlobal) => SessionsModule.forRootAsync({ ...options, ...statics(isGlobal) }),
    ]),
  ];
}

@Injectable()
class Speaker {
  constructor(@InjectOrchestrator(Echo) readonly echo: OrchestratorHandle) {}
}
