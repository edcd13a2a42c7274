import { Inject, Injectable, Module, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import {
  getOrchestratorToken,
  Intent,
  Orchestrator,
  type OrchestratorHandle,
  Route,
  SessionsConfigurationError,
  SessionsModule,
  SessionStateModule,
  SessionStateService,
  SessionStore,
  type StateModule,
} from 'nestjs-agent-sessions';
import { capturingLogger } from '../support/capturing-logger.js';
import { rejection } from '../support/running-application.js';

@Injectable()
class Orders {
  readonly status: string = 'real';
}

@Orchestrator({ name: 'desk' })
class Desk {
  constructor(@Inject(Orders) private readonly orders: Orders) {}

  @Route()
  route(): string {
    return 'status';
  }

  @Intent()
  status(): string {
    return this.orders.status;
  }

  @Intent()
  refund(): string {
    return 'refunded';
  }
}

/** Has the methods of Desk, without marks. */
class StandIn {
  private readonly name = 'stand-in';

  route(): string {
    return 'refund';
  }

  status(): string {
    return this.name;
  }

  refund(): string {
    return this.name;
  }
}

@SessionStateModule('counters')
class Counters implements StateModule {
  describe(): { exists: boolean } {
    return { exists: true };
  }

  reset(): { cleared: boolean } {
    return { cleared: false };
  }
}

describe('an orchestrator that a test replaces with overrideProvider', () => {
  let module: TestingModule | undefined;

  afterEach(async () => {
    await module?.close();
    module = undefined;
  });

  async function replyOf(
    metadata: ModuleMetadata,
    override: (builder: TestingModuleBuilder) => TestingModuleBuilder,
  ): Promise<unknown> {
    const builder = Test.createTestingModule({
      ...metadata,
      imports: [SessionsModule.forRoot({ sweep: false }), ...(metadata.imports ?? [])],
    });
    module = await override(builder).setLogger(capturingLogger().logger).compile();
    await module.init();
    const { id } = await module.get(SessionStore).create({ userId: 'ann' });
    const handle = module.get<OrchestratorHandle>(getOrchestratorToken(Desk), { strict: false });
    return (await handle.execute('hi', { sessionId: id })).reply;
  }

  const listed = { imports: [SessionsModule.forFeature([Desk])], providers: [Orders] };
  const provided = { ...listed, providers: [Orders, Desk] };

  it.each([
    ['only forFeature lists it', listed],
    ['it is also a provider', provided],
  ])('FIX-79 uses a value, a class and a factory if %s', async (_, metadata) => {
    expect(await replyOf(metadata, (builder) => builder)).toBe('real');
    await module?.close();
    expect(await replyOf(metadata, (builder) => builder.overrideProvider(Desk).useValue(new StandIn()))).toBe(
      'stand-in',
    );
    await module?.close();
    expect(await replyOf(metadata, (builder) => builder.overrideProvider(Desk).useClass(StandIn))).toBe('stand-in');
    await module?.close();
    expect(
      await replyOf(metadata, (builder) => builder.overrideProvider(Desk).useFactory({ factory: () => new StandIn() })),
    ).toBe('stand-in');
    expect(module?.get(Desk, { strict: false })).toBeInstanceOf(StandIn);
  });

  it('FIX-79 uses a plain object with the marked methods', async () => {
    const standIn = { route: () => 'status', status: () => 'plain', refund: () => 'plain' };
    expect(await replyOf(listed, (builder) => builder.overrideProvider(Desk).useValue(standIn))).toBe('plain');
  });

  it.each([
    ['a value without a method', { route: () => 'status', status: () => 'plain' }],
    ['null', null],
  ])('FIX-79 names the missing method of %s', async (_, standIn) => {
    const start = replyOf(listed, (builder) => builder.overrideProvider(Desk).useValue(standIn));
    const error = await rejection(start, SessionsConfigurationError);
    expect(error.message).toMatch(
      /^The provider that replaces Desk has no method (refund|status), which has @Intent\(\) in Desk\. Add the method to it\.$/,
    );
  });

  it('FIX-79 does not provide a class that only forFeature lists to the application', async () => {
    await replyOf(listed, (builder) => builder);
    expect(() => module?.get(Desk, { strict: false })).toThrow(/could not find Desk/);
  });

  it('FIX-79 replaces a state module that only forFeature lists', async () => {
    const described: string[] = [];
    const standIn = {
      describe: () => {
        described.push('stand-in');
        return Promise.resolve({ exists: false });
      },
      reset: () => Promise.resolve(),
    };
    module = await Test.createTestingModule({
      imports: [SessionsModule.forRoot({ sweep: false }), SessionsModule.forFeature({ stateModules: [Counters] })],
    })
      .overrideProvider(Counters)
      .useValue(standIn)
      .compile();
    await module.init();
    const { id } = await module.get(SessionStore).create({ userId: 'ann' });
    await module.get(SessionStateService).describe({ sessionId: id });
    expect(described).toEqual(['stand-in']);
  });

  it('FIX-79 names the cure if two modules provide the class', async () => {
    @Module({ providers: [Orders, Desk] })
    class SalesModule {}
    @Module({ providers: [Orders, Desk] })
    class SupportModule {}
    const start = replyOf({ imports: [SalesModule, SupportModule] }, (builder) => builder);
    const error = await rejection(start, SessionsConfigurationError);
    expect(error.message).toBe(
      'The orchestrator Desk is a provider of two modules: SalesModule and SupportModule. Remove it from one of them, and import the ' +
        'other module, which must export it.',
    );
  });
});
