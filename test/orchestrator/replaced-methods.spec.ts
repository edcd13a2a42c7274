import { Injectable, type Type } from '@nestjs/common';
import {
  Evaluate,
  Intent,
  Orchestrator,
  type OrchestratorRef,
  Route,
  SessionsConfigurationError,
  Summarize,
  type TurnContext,
} from 'nestjs-agent-sessions';
import { rejection, startApplication } from '../support/running-application.js';

/** Wraps the method, as decorators for tracing or transactions do. */
const Timed = (): MethodDecorator => (_target, _key, descriptor) => {
  const inner = descriptor.value as (...args: unknown[]) => unknown;
  const wrapper = async function (this: unknown, ...args: unknown[]): Promise<unknown> {
    return inner.apply(this, args);
  };
  return { ...descriptor, value: wrapper } as typeof descriptor;
};

/** Replaces the method by an accessor that binds it, as autobind decorators do. */
const Bound = (): MethodDecorator => (_target, _key, descriptor) => {
  const inner = descriptor.value as (...args: unknown[]) => unknown;
  return {
    configurable: true,
    get(this: object) {
      return inner.bind(this);
    },
  } as unknown as typeof descriptor;
};

/** Replaces the method by a value that cannot be called. */
const Broken = (): MethodDecorator => () => ({ configurable: true, get: () => 'broken' }) as never;

let evaluations = 0;

@Orchestrator({ name: 'above', iterate: true, compaction: { afterTurns: 100 } })
class Above {
  readonly greeting = 'hello';

  @Timed()
  @Route()
  route({ input }: TurnContext): string {
    return input.text;
  }

  @Timed()
  @Intent('one')
  one(): string {
    return this.greeting;
  }

  @Bound()
  @Intent()
  two(): string {
    return this.greeting;
  }

  @Timed()
  @Evaluate()
  evaluate(): boolean {
    evaluations += 1;
    return true;
  }

  @Timed()
  @Summarize()
  summarize(): string {
    return 'greetings';
  }
}

@Orchestrator({ name: 'below', iterate: true, compaction: { afterTurns: 100 } })
class Below {
  readonly greeting = 'hello';

  @Route()
  @Timed()
  route({ input }: TurnContext): string {
    return input.text;
  }

  @Intent('one')
  @Timed()
  one(): string {
    return this.greeting;
  }

  @Intent()
  @Bound()
  two(): string {
    return this.greeting;
  }

  @Evaluate()
  @Timed()
  evaluate(): boolean {
    evaluations += 1;
    return true;
  }

  @Summarize()
  @Timed()
  summarize(): string {
    return 'greetings';
  }
}

@Orchestrator({ name: 'overriding', iterate: true, compaction: { afterTurns: 100 } })
class Overriding extends Above {
  override route(turn: TurnContext): string {
    return turn.input.text;
  }

  override one(): string {
    return this.greeting;
  }

  override two(): string {
    return this.greeting;
  }

  override evaluate(): boolean {
    evaluations += 1;
    return true;
  }

  override summarize(): string {
    return 'greetings';
  }
}

/** Copies the methods of classes, as in the handbook of TypeScript. */
function mixInto(target: Type, source: Type): void {
  for (const name of Object.getOwnPropertyNames(source.prototype)) {
    if (name === 'constructor') continue;
    Object.defineProperty(target.prototype, name, Object.getOwnPropertyDescriptor(source.prototype, name) ?? {});
  }
}

class Mixin {
  @Intent()
  mixed(): string {
    return 'mixed in';
  }
}

describe('marks of replaced methods', () => {
  it.each([
    ['a decorator above wraps the method', Above],
    ['a decorator below wraps the method', Below],
    ['a subclass overrides the method', Overriding],
  ])('FIX-72 keeps all marks if %s', async (_, orchestrator) => {
    evaluations = 0;
    // Without the mark of @Summarize(), the option compaction stops the start.
    const { handle, session } = await startApplication({ orchestrators: [orchestrator] });
    const sessionId = await session();
    expect(await handle(orchestrator).execute('one', { sessionId })).toMatchObject({ reply: 'hello' });
    expect(await handle(orchestrator).execute('two', { sessionId })).toMatchObject({ reply: 'hello' });
    expect(evaluations).toBe(2);
  });

  it('FIX-72 gives an override its own intent name', async () => {
    @Orchestrator({ name: 'renamed' })
    class Renamed {
      @Intent('old')
      act(): string {
        return 'old';
      }
    }
    @Orchestrator({ name: 'renamed' })
    class Renaming extends Renamed {
      @Intent('new')
      override act(): string {
        return 'new';
      }
    }
    const { handle, session } = await startApplication({ orchestrators: [Renaming] });
    const result = await handle(Renaming).execute('hi', { sessionId: await session() });
    expect(result).toMatchObject({ reply: 'new' });
  });

  it('FIX-72 keeps the mark of a method that is copied to another class', async () => {
    @Orchestrator({ name: 'mixed' })
    class Mixed {}
    mixInto(Mixed, Mixin);
    const { handle, session } = await startApplication({ orchestrators: [Mixed] });
    expect(await handle(Mixed).execute('hi', { sessionId: await session() })).toMatchObject({ reply: 'mixed in' });
  });

  it('FIX-72 calls a method that was replaced on the instance after the start', async () => {
    @Orchestrator({ name: 'spied' })
    class Spied {
      @Intent()
      act(): string {
        return 'real';
      }
    }
    const { app, handle, session } = await startApplication({ orchestrators: [Spied], providers: [Spied] });
    app.get(Spied).act = () => 'replaced';
    expect(await handle(Spied).execute('hi', { sessionId: await session() })).toMatchObject({ reply: 'replaced' });
  });

  it('FIX-72 stops the start if a mark is not on a method', async () => {
    @Orchestrator({ name: 'broken' })
    class BrokenDesk {
      @Broken()
      @Intent()
      refund(): void {}
    }
    expect(await refusal([BrokenDesk])).toMatch(/^BrokenDesk\.refund has @Intent\(\), but it is not a method\./);
  });

  it('FIX-72 stops the start if a provider has marks but is not an orchestrator', async () => {
    @Injectable()
    class Desk {
      @Route()
      refund(): string {
        return 'refund';
      }
    }
    const error = await rejection(startApplication({ providers: [Desk] }), SessionsConfigurationError);
    expect(error.message).toMatch(
      /^Desk\.refund has @Route\(\), but Desk is not an orchestrator\. .*@Orchestrator\({ name }\)/,
    );
  });

  it('FIX-72 rejects a static method where it is declared', () => {
    const declare = (): void => {
      class Desk {
        static refund(): void {}
      }
      Intent()(Desk, 'refund', Object.getOwnPropertyDescriptor(Desk, 'refund') as PropertyDescriptor);
    };
    expect(declare).toThrow(SessionsConfigurationError);
    expect(declare).toThrow('@Intent() is on Desk.refund, which is static. Expected a method of the instance.');
  });
});

async function refusal(orchestrators: readonly OrchestratorRef[]): Promise<string> {
  return (await rejection(startApplication({ orchestrators }), SessionsConfigurationError)).message;
}
