import 'reflect-metadata';
import { type INestApplicationContext, Inject, Injectable, Module, type Provider, type Type } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { afterEach } from '@jest/globals';
import { lastValueFrom } from 'rxjs';
import {
  defineOrchestrator,
  InjectOrchestrator,
  Intent,
  memoryAdapter,
  Orchestrator,
  type OrchestratorHandle,
  getOrchestratorToken,
  type ProcessRole,
  reply,
  SessionsConfigurationError,
  SessionsModule,
  SessionStore,
  type TurnResult,
  TurnService,
} from 'nestjs-agent-sessions';
import { startApplication } from '../support/application.js';
import { steadyClock } from '../support/steady-clock.js';

const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => reply('Ready.') } });

const started: INestApplicationContext[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((app) => app.close()));
});

async function start(
  providers: Provider[],
  { role = 'both', isGlobal = false, adapter = memoryAdapter() }: StartOptions = {},
): Promise<INestApplicationContext> {
  @Module({ imports: [SessionsModule.forFeature([desk])], providers })
  class FeatureModule {}
  // Its hooks run before those of modules that are nearer to the root.
  @Module({ imports: [FeatureModule] })
  class OuterModule {}
  const app = await startApplication({
    imports: [OuterModule, SessionsModule.forRoot({ adapter, sweep: false, role, isGlobal })],
  });
  started.push(app);
  return app;
}

interface StartOptions {
  readonly role?: ProcessRole;
  readonly isGlobal?: boolean;
  readonly adapter?: ReturnType<typeof memoryAdapter>;
}

/** The services that hooks use. A deep module cannot inject those of a module that is not global. */
interface Early {
  readonly handle: OrchestratorHandle;
  readonly turns: TurnService;
  readonly sessionId: string;
}

type Wait = (early: Early) => Promise<unknown>;

/** The ways to wait for a turn. */
const WAITS: readonly [string, Wait][] = [
  ['handle.execute', ({ handle, sessionId }) => handle.execute('hi', { sessionId })],
  ['handle.stream', ({ handle, sessionId }) => handle.stream('hi', { sessionId }).result],
  ['handle.undo', ({ handle, sessionId }) => handle.undo(sessionId)],
  ['turns.execute', ({ turns, sessionId }) => turns.execute('desk', 'hi', { sessionId })],
  ['turns.result', async ({ turns, sessionId }) => turns.result((await turns.submit('desk', 'hi', { sessionId })).id)],
  [
    'turns.readEvents',
    async ({ turns, sessionId }) => {
      const { id } = await turns.submit('desk', 'hi', { sessionId });
      for await (const event of turns.readEvents(id)) if (event.type === 'settled') return event;
      return null;
    },
  ],
  [
    'turns.events',
    async ({ turns, sessionId }) => {
      const { id } = await turns.submit('desk', 'hi', { sessionId });
      return lastValueFrom(await turns.events(id));
    },
  ],
  [
    'turns.lanes.drain',
    async ({ turns, sessionId }) => {
      await turns.submit('desk', 'hi', { sessionId });
      return turns.lanes.drain({ sessionId }, { timeoutMs: 60_000 });
    },
  ],
];

interface Hooked {
  readonly provider: Type;
  readonly outcomes: unknown[];
  /** How long each call took, in milliseconds. */
  readonly durations: number[];
}

/** A provider that calls `use` in a hook and keeps the outcome. */
function hooked(hook: 'onModuleInit' | 'onApplicationBootstrap', use: Wait): Hooked {
  const outcomes: unknown[] = [];
  const durations: number[] = [];
  @Injectable()
  class Warming {
    constructor(
      @InjectOrchestrator(desk) readonly handle: OrchestratorHandle,
      @Inject(LazyModuleLoader) readonly loader: unknown,
    ) {}
  }
  Object.defineProperty(Warming.prototype, hook, {
    value: async function (this: Warming): Promise<void> {
      const { turns, sessions } = (this.handle as unknown as { find(): Found }).find();
      const { id: sessionId } = await sessions.create({ userId: 'warm-up' });
      const begun = steadyClock.now();
      outcomes.push(await use({ handle: this.handle, turns, sessionId }).catch((error: unknown) => error));
      durations.push(steadyClock.now() - begun);
    },
  });
  return { provider: Warming, outcomes, durations };
}

interface Found {
  readonly turns: TurnService;
  readonly sessions: SessionStore;
}

describe('turns before the application has started', () => {
  it.each(WAITS)('FIX-71 refuses %s in onModuleInit within a second, and the application starts', async (_, wait) => {
    const { provider, outcomes, durations } = hooked('onModuleInit', wait);

    await start([provider]);

    const [error] = outcomes;
    expect(error).toBeInstanceOf(SessionsConfigurationError);
    expect((error as Error).message).toMatch(/before the application has started.*onApplicationBootstrap/);
    expect(durations).toHaveLength(1);
    expect(durations[0]).toBeLessThan(1000);
  });

  it.each([false, true])(
    'FIX-71 runs turns that are awaited in onApplicationBootstrap; isGlobal: %s',
    async (isGlobal) => {
      const { provider, outcomes } = hooked('onApplicationBootstrap', WAITS[0][1]);

      await start([provider], { isGlobal });

      expect(outcomes).toMatchObject([{ reply: 'Ready.' }]);
    },
  );

  it('FIX-71 accepts a turn without a wait in onModuleInit, and runs it after the start', async () => {
    const { provider, outcomes } = hooked('onModuleInit', ({ handle, sessionId }) =>
      handle.submit('hi', { sessionId }),
    );

    const app = await start([provider]);

    const [turn] = outcomes as { id: string }[];
    expect(turn).toMatchObject({ status: 'queued' });
    expect(await app.get(TurnService).result(turn.id)).toMatchObject({ reply: 'Ready.' });
  });

  it('FIX-71 waits in onModuleInit with the role submit, because other processes work', async () => {
    const adapter = memoryAdapter();
    const worker = await start([], { adapter, role: 'work' });
    const { provider, outcomes } = hooked('onModuleInit', WAITS[0][1]);

    await start([provider], { adapter: { ...adapter, close: () => Promise.resolve() }, role: 'submit' });

    expect(outcomes).toMatchObject([{ reply: 'Ready.' }]);
    expect(worker.get(TurnService)).toBeDefined();
  });

  it.each(['both', 'submit'] as const)('FIX-71 refuses a submit in a factory with the same error: %s', async (role) => {
    const errors: unknown[] = [];
    const provider = {
      provide: 'MADE',
      inject: [getOrchestratorToken(desk)],
      useFactory: async (handle: OrchestratorHandle) => {
        errors.push(await handle.submit('hi', { sessionId: 's' }).catch((error: unknown) => error));
      },
    };

    await start([provider], { role });

    expect(errors).toHaveLength(1);
    expect(errors[0]).toBeInstanceOf(SessionsConfigurationError);
    expect((errors[0] as Error).message).toMatch(/onApplicationBootstrap/);
  });

  it('FIX-71 refuses a submit through TurnService in a factory with the same error', async () => {
    const errors: unknown[] = [];
    const provider = {
      provide: 'MADE',
      inject: [TurnService],
      useFactory: async (turns: TurnService) => {
        errors.push(await turns.submit('desk', 'hi', { sessionId: 's' }).catch((error: unknown) => error));
      },
    };

    await start([provider], { isGlobal: true });

    expect(errors[0]).toBeInstanceOf(SessionsConfigurationError);
    expect((errors[0] as Error).message).toMatch(/onApplicationBootstrap/);
  });
});

@Injectable()
class Greetings {
  readonly text = 'Hello from a lazy module.';
}

@Orchestrator({ name: 'greeter' })
class Greeter {
  constructor(private readonly greetings: Greetings) {}

  @Intent()
  greet(): string {
    return this.greetings.text;
  }
}

describe('forFeature in a lazily loaded module', () => {
  const early = defineOrchestrator({ name: 'lazy', intents: { answer: () => reply('Lazy.') } });

  async function run(app: INestApplicationContext, name: string): Promise<TurnResult> {
    const { id: sessionId } = await app.get(SessionStore, { strict: false }).create({ userId: 'ann' });
    return app.get(TurnService, { strict: false }).execute(name, 'hi', { sessionId });
  }

  it.each([
    ['a class', [Greetings]],
    ['a class that is also a provider', [Greetings, Greeter]],
  ])('FIX-71 works from the moment it is loaded: %s', async (_, providers) => {
    const app = await start([]);
    @Module({ imports: [SessionsModule.forFeature([Greeter, early])], providers })
    class LazyModule {}

    const lazy = await app.get(LazyModuleLoader).load(() => LazyModule);

    const { id: sessionId } = await app.get(SessionStore).create({ userId: 'ann' });
    const handle = lazy.get<OrchestratorHandle>(getOrchestratorToken(Greeter), { strict: false });
    expect(await handle.execute('hi', { sessionId })).toMatchObject({ reply: 'Hello from a lazy module.' });
    expect(await run(app, 'lazy')).toMatchObject({ reply: 'Lazy.' });
    if (providers.includes(Greeter)) expect(lazy.get(Greeter)).toBeInstanceOf(Greeter);
  });

  it('FIX-71 loads the token counter for a window in tokens of a lazily loaded orchestrator', async () => {
    const app = await start([]);
    const counting = defineOrchestrator({
      name: 'counting',
      historyWindow: { maxTokens: 100 },
      intents: { answer: () => reply('Counted.') },
    });
    @Module({ imports: [SessionsModule.forFeature([counting])] })
    class LazyModule {}

    await app.get(LazyModuleLoader).load(() => LazyModule);
    const { sessionId } = await run(app, 'counting');
    // Reads the messages of the first turn.
    const second = app.get(TurnService).execute('counting', 'hi', { sessionId, timeoutMs: 5000 });
    expect(await second).toMatchObject({ reply: 'Counted.' });
  });

  it('FIX-71 rejects the load of a second orchestrator with a known name', async () => {
    const app = await start([]);
    const other = defineOrchestrator({ name: 'desk', intents: { other: () => reply('Other.') } });
    @Module({ imports: [SessionsModule.forFeature([other])] })
    class LazyModule {}

    await expect(app.get(LazyModuleLoader).load(() => LazyModule)).rejects.toThrow(
      'Two orchestrators are named "desk"',
    );
    expect(await run(app, 'desk')).toMatchObject({ reply: 'Ready.' });
  });

  it('FIX-71 runs turns that waited for the orchestrator in the store', async () => {
    const app = await start([]);
    await expect(run(app, 'lazy')).rejects.toThrow('lazy');
    @Module({ imports: [SessionsModule.forFeature([early])] })
    class LazyModule {}

    await app.get(LazyModuleLoader).load(() => LazyModule);

    expect(await run(app, 'lazy')).toMatchObject({ reply: 'Lazy.' });
  });
});
