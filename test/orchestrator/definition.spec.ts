import fc from 'fast-check';
import {
  defineOrchestrator,
  getOrchestratorToken,
  Intent,
  IntentRouter,
  Orchestrator,
  type OrchestratorConfig,
  type OrchestratorRef,
  Route,
  type RouteDecision,
  SessionsConfigurationError,
  SessionsModule,
} from 'nestjs-agent-sessions';
import { rejection, startApplication } from '../support/running-application.js';

class AnyRouter extends IntentRouter {
  route(): RouteDecision {
    return 'a';
  }
}

const a = (): string => 'a';

const WRONG: readonly { readonly what: string; readonly config: object; readonly message: RegExp }[] = [
  { what: 'no name', config: { intents: { a } }, message: /name must be a string .* Received: undefined/ },
  { what: 'an empty name', config: { name: '', intents: { a } }, message: /name must be a string .* Received: ""/ },
  { what: 'a name with a line break', config: { name: 'a\nb', intents: { a } }, message: /name must be a string .* Received: "a\\nb"/ },
  { what: 'an empty version', config: { name: 'x', version: '', intents: { a } }, message: /x: version must be/ },
  { what: 'no intents', config: { name: 'x' }, message: /x: intents must be an object of functions/ },
  { what: 'empty intents', config: { name: 'x', intents: {} }, message: /x: intents must not be empty/ },
  { what: 'an intent that is not a function', config: { name: 'x', intents: { a: 'a' } }, message: /x: intent a must be a function/ },
  { what: 'an intent without a name', config: { name: 'x', intents: { '': a } }, message: /intent "" must have a name/ },
  { what: 'both route and router', config: { name: 'x', intents: { a }, route: a, router: new AnyRouter() }, message: /x: set either route or router, not both/ },
  { what: 'several intents and neither', config: { name: 'x', intents: { a, b: a } }, message: /x: several intents require a route or a router/ },
  { what: 'a route that is not a function', config: { name: 'x', intents: { a }, route: 'a' }, message: /x: route must be a function/ },
  { what: 'a router class', config: { name: 'x', intents: { a }, router: AnyRouter }, message: /x: router must be an IntentRouter.*only by the @Orchestrator/ },
  { what: 'a router without route()', config: { name: 'x', intents: { a }, router: {} }, message: /x: router must be an IntentRouter/ },
  { what: 'a router that is null', config: { name: 'x', intents: { a }, router: null }, message: /x: router must be an IntentRouter/ },
  { what: 'an initial state that is not a function', config: { name: 'x', intents: { a }, initialState: {} }, message: /x: initialState must be a function/ },
  { what: 'no checkpoints', config: { name: 'x', intents: { a }, keepCheckpoints: 0 }, message: /x: keepCheckpoints must be an integer of 1 or more, or 'all'/ },
  { what: 'half a checkpoint', config: { name: 'x', intents: { a }, keepCheckpoints: 1.5 }, message: /x: keepCheckpoints/ },
  { what: 'a negative window', config: { name: 'x', intents: { a }, historyWindow: -1 }, message: /x: historyWindow.agents must be an integer from 0 .* Received: -1/ },
  { what: 'a window in words', config: { name: 'x', intents: { a }, historyWindow: { router: 'all' } }, message: /x: historyWindow.router must be an integer .* Received: "all"/ },
  { what: 'a state limit of nothing', config: { name: 'x', intents: { a }, maxStateBytes: 0 }, message: /x: maxStateBytes must be an integer/ },
]; // prettier-ignore

const NO_ORCHESTRATORS: readonly { readonly what: string; readonly value: unknown; readonly message: RegExp }[] = [
  {
    what: 'a plain object',
    value: { name: 'forged', intents: { a } },
    message: /item 1 is not an orchestrator.*created with defineOrchestrator\(\), /,
  },
  {
    what: 'a class that is not imported yet',
    value: undefined,
    message: /item 1 is undefined \(check for a circular import\)/,
  },
  { what: 'null', value: null, message: /item 1 is not an orchestrator/ },
];

describe('defineOrchestrator', () => {
  it.each(WRONG)('BOT-01 refuses $what', ({ config, message }) => {
    const error = thrown(() => defineOrchestrator(config as OrchestratorConfig));
    expect(error).toBeInstanceOf(SessionsConfigurationError);
    expect(error).toMatchObject({ code: 'CONFIGURATION' });
    expect((error as Error).message).toMatch(message);
  });

  it('BOT-01 needs no route for a single intent', () => {
    expect(defineOrchestrator({ name: 'x', intents: { a } }).intents.size).toBe(1);
  });

  it('BOT-01 freezes the definition', () => {
    const intents: Record<string, () => string> = { a };
    const definition = defineOrchestrator({ name: 'x', intents });
    intents.b = a;
    expect([...definition.intents.keys()]).toEqual(['a']);
    expect(() => Object.assign(definition, { name: 'y' })).toThrow(TypeError);
  });

  it('BOT-01 the signature is of the structure: the same for any order, another for another structure', () => {
    const orders = fc
      .uniqueArray(fc.string({ minLength: 1, maxLength: 5 }), { minLength: 2 })
      .chain((names) => fc.tuple(fc.constant(names), fc.shuffledSubarray(names, { minLength: names.length })));
    fc.assert(
      fc.property(orders, ([names, shuffled]) => {
        expect(signature(shuffled)).toBe(signature(names));
        expect(signature(names.slice(1))).not.toBe(signature(names));
      }),
    );
    const one = { name: 'x', intents: { a } };
    const shapes = [one, { ...one, name: 'y' }, { ...one, route: a }, { ...one, router: new AnyRouter() }];
    expect(new Set(shapes.map((shape) => defineOrchestrator(shape).signature)).size).toBe(4);
  });

  it('BOT-22 the signature knows the loop, and neither code nor descriptions nor the numbers of a window', () => {
    const loop = { name: 'x', intents: { a, b: a }, route: a, iterate: true };
    const shapes = [
      { ...loop, iterate: false },
      loop,
      { ...loop, evaluate: () => true },
      { ...loop, initialIntent: 'b' as const },
      { ...loop, maxIterations: 3 },
    ];
    const signatures = shapes.map((shape) => defineOrchestrator(shape).signature);
    expect(new Set(signatures).size).toBe(5);
    const other = {
      route: () => 'b',
      evaluate: () => false,
      historyWindow: { router: 3, agents: 7 },
      keepCheckpoints: 3,
    };
    expect(defineOrchestrator({ ...shapes[2], ...other, version: '9', maxStateBytes: 99 }).signature).toBe(
      signatures[2],
    );
    expect(defineOrchestrator({ ...loop, maxIterations: 10 }).signature).toBe(signatures[1]);
  });
});

describe('decorators', () => {
  it('BOT-01 compile to the same as defineOrchestrator', async () => {
    @Orchestrator({ name: 'desk', version: '3', historyWindow: { router: 1, agents: 2 } })
    class Desk {
      readonly greeting = 'hello';

      @Route()
      route(): string {
        return 'say hello';
      }

      @Intent('say hello')
      hello(): string {
        return this.greeting;
      }

      @Intent()
      other(): string {
        return 'other';
      }

      helper(): string {
        return 'no intent';
      }
    }
    const { handle, session } = await startApplication({ orchestrators: [Desk] });
    const plain = defineOrchestrator({ name: 'desk', route: a, intents: { other: a, 'say hello': a } });
    expect(handle(Desk)).toMatchObject({ name: 'desk', version: '3', signature: plain.signature });
    expect(await handle(Desk).execute('hi', { sessionId: await session() })).toMatchObject({ reply: 'hello' });
  });

  it('BOT-01 includes inherited methods of a class', async () => {
    class Base {
      @Intent()
      inherited(): string {
        return 'from the base';
      }
    }
    @Orchestrator({ name: 'desk' })
    class Desk extends Base {}
    const { handle, session } = await startApplication({ orchestrators: [Desk] });
    expect(await handle(Desk).execute('hi', { sessionId: await session() })).toMatchObject({ reply: 'from the base' });
  });

  it('BOT-01 two methods of one intent', async () => {
    @Orchestrator({ name: 'desk' })
    class Desk {
      @Intent('same')
      one(): void {}

      @Intent('same')
      two(): void {}
    }
    expect(await refusal([Desk])).toMatch(/desk: two methods have the intent "same"/);
  });

  it('BOT-01 two routes', async () => {
    @Orchestrator({ name: 'desk' })
    class Desk {
      @Route()
      one(): string {
        return 'act';
      }

      @Route()
      two(): string {
        return 'act';
      }

      @Intent()
      act(): void {}
    }
    expect(await refusal([Desk])).toMatch(/desk must have at most one method with @Route\(\)\. Found: 2\./);
  });

  it('BOT-01 a route and a router', async () => {
    @Orchestrator({ name: 'desk', router: new AnyRouter() })
    class Desk {
      @Route()
      route(): string {
        return 'a';
      }

      @Intent()
      a(): void {}
    }
    expect(await refusal([Desk])).toMatch(/desk: set either route or router, not both/);
  });

  it('BOT-01 no intents, and several without a route', async () => {
    @Orchestrator({ name: 'empty' })
    class Empty {}
    @Orchestrator({ name: 'undecided' })
    class Undecided {
      @Intent()
      one(): void {}

      @Intent()
      two(): void {}
    }
    expect(await refusal([Empty])).toMatch(
      /empty: intents must not be empty\. Decorate a method of the class with @Intent\(\)/,
    );
    expect(await refusal([Undecided])).toMatch(
      /undecided: several intents require a route .* @Route\(\) route\(turn\) { return "one"; }/,
    );
  });

  it('BOT-01 rejects a class that is not an orchestrator where it is listed or requested', () => {
    class Plain {}
    const problems = [() => SessionsModule.forFeature([Plain]), () => getOrchestratorToken(Plain)].map(thrown);
    for (const problem of problems) {
      expect(problem).toBeInstanceOf(SessionsConfigurationError);
      expect((problem as Error).message).toMatch(/Plain is not an orchestrator. Decorate the class with @Orchestrator/);
    }
  });

  it.each(NO_ORCHESTRATORS)('BOT-01 refuses $what in forFeature', ({ value, message }) => {
    const desk = defineOrchestrator({ name: 'desk', intents: { a } });
    const problem = thrown(() => SessionsModule.forFeature([desk, value as OrchestratorRef]));
    expect(problem).toBeInstanceOf(SessionsConfigurationError);
    expect((problem as Error).message).toMatch(message);
  });
});

function signature(intents: readonly string[]): string {
  const named = Object.fromEntries(intents.map((intent) => [intent, a]));
  return defineOrchestrator({ name: 'x', route: a, intents: named }).signature;
}

/** Why an application with these does not start. */
async function refusal(orchestrators: readonly OrchestratorRef[]): Promise<string> {
  return (await rejection(startApplication({ orchestrators }), SessionsConfigurationError)).message;
}

function thrown(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error('Nothing was thrown.');
}
