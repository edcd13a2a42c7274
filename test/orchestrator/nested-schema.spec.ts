import { Exclude, Transform, Type } from 'class-transformer';
import { IsInt, IsOptional, IsString, ValidateNested } from 'class-validator';
import {
  defineOrchestrator,
  InvalidInputError,
  type JsonObject,
  reply,
  type StateSchema,
  TurnFailedError,
  turnOutcome,
  type TurnResult,
} from 'nestjs-agent-sessions';
import { z } from 'zod';
import { rejection, SAMPLED_STORES, startApplication } from '../support/running-application.js';
import { eventually } from '../support/eventually.js';

class Price {
  @IsInt()
  cents!: number;
}

class Item {
  @IsString()
  @Transform(() => 'changed')
  sku!: string;

  @IsInt()
  @Exclude()
  count!: number;

  @IsOptional()
  @ValidateNested()
  @Type(() => Price)
  price?: Price;
}

class Cart {
  @ValidateNested({ each: true })
  @Type(() => Item)
  items!: Item[];

  @IsOptional()
  @ValidateNested()
  untyped?: Price;
}

class Address {
  @IsString()
  street!: string;

  get label(): string {
    return `at ${this.street}`;
  }
}

class Approval {
  @IsString()
  by!: string;

  @ValidateNested()
  @Type(() => Address)
  address!: Address;
}

const WRONG: readonly {
  readonly what: string;
  readonly state: object;
  readonly path: string;
  readonly rule: string;
}[] = [
  {
    what: 'a rule of an item',
    state: { items: [{ sku: 'a', count: 1 }, { sku: 'b', count: 'two' }] }, // prettier-ignore
    path: 'state.items[1].count',
    rule: 'count must be an integer number',
  },
  {
    what: 'a rule two levels down',
    state: { items: [{ sku: 'a', count: 1, price: { cents: 0.5 } }] },
    path: 'state.items[0].price.cents',
    rule: 'cents must be an integer number',
  },
  {
    what: 'an unknown key',
    state: { items: [{ sku: 'a', count: 1, counts: 2 }] },
    path: 'state.items[0].counts',
    rule: 'is not a known key. Did you mean count? Allowed: sku, count, price.',
  },
  {
    what: 'a list that is not a list',
    state: { items: 'none' },
    path: 'state.items',
    rule: 'each value in nested property items must be either object or array',
  },
  {
    what: 'a nested class without @Type()',
    state: { items: [], untyped: { cents: 1 } },
    path: 'state.untyped',
    rule: 'has rules of an unknown class. Add @Type(() => TheClass) next to @ValidateNested().',
  },
];

const INPUTS: readonly {
  readonly what: string;
  readonly schema: StateSchema;
  readonly path: string;
  readonly problem: unknown;
}[] = [
  {
    what: 'a class with nested classes',
    schema: Cart,
    path: 'options.input.items[0].count',
    problem: 'count must be an integer number',
  },
  {
    what: 'a Standard Schema',
    schema: z.object({ items: z.array(z.object({ sku: z.string(), count: z.int() })) }),
    path: 'options.input.items.0.count',
    problem: expect.stringMatching(/expected number/),
  },
];

describe.each(SAMPLED_STORES)('nested schema classes over $name', ({ open }) => {
  const desk = defineOrchestrator<Record<string, unknown>>({
    name: 'desk',
    initialState: () => ({ items: [] }),
    stateSchema: Cart,
    intents: { set: ({ input }) => turnOutcome({ state: JSON.parse(input.text) as object }) },
  });

  it('FIX-73 accepts a state with nested objects, and stores it unchanged', async () => {
    const { handle, session, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const state = {
      items: [
        { sku: 'lamp', count: 1, price: { cents: 5 } },
        { sku: 'bulb', count: 2 },
      ],
    };
    await handle(desk).execute(JSON.stringify(state), { sessionId });
    expect((await checkpoints.load('desk', sessionId))?.state).toEqual(state);
  });

  it.each(WRONG)('FIX-73 names the path and the rule of $what', async ({ state, path, rule }) => {
    const { handle, session, checkpoints } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const error = await rejection(handle(desk).execute(JSON.stringify(state), { sessionId }), TurnFailedError);
    expect(error.failure).toMatchObject({ code: 'STATE_SCHEMA', details: { path, rule } });
    expect(await checkpoints.load('desk', sessionId)).toBeNull();
  });

  it('FIX-73 gives the payload of a signal nested classes, and rejects a wrong one', async () => {
    const asking = defineOrchestrator({
      name: 'asking',
      intents: {
        ask: async (turn) => {
          const { by, address } = await turn.waitFor('approval', { schema: Approval });
          return reply(`${by} ${address.label}`);
        },
      },
    });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [asking] });
    const answered = async (payload: JsonObject): Promise<TurnResult> => {
      const { id } = await handle(asking).submit('May I?', { sessionId: await session() });
      await eventually(async () => (await turns.get(id))?.status === 'waiting');
      await turns.signal(id, 'approval', payload);
      return turns.result(id);
    };
    expect(await answered({ by: 'Ann', address: { street: 'Main Street' } })).toMatchObject({
      reply: 'Ann at Main Street',
    });
    const error = await rejection(answered({ by: 'Ann', address: { street: 7 } }), TurnFailedError);
    expect(error.failure).toMatchObject({
      code: 'INVALID_INPUT',
      details: { path: 'signal approval.address.street' },
      message: 'signal approval.address.street street must be a string',
    });
  });

  it('FIX-73 stores the outcome of onTimeout with nested instances', async () => {
    const timing = defineOrchestrator({
      name: 'timing',
      intents: {
        ask: async (turn) => {
          const onTimeout = () =>
            Object.assign(new Approval(), {
              by: 'Bob',
              address: Object.assign(new Address(), { street: 'Side Street' }),
            });
          const { by, address } = await turn.waitFor('approval', { schema: Approval, timeoutMs: 1, onTimeout });
          return reply(`${by} ${address.label}`);
        },
      },
    });
    const { handle, session } = await startApplication({ adapter: open(), orchestrators: [timing] });
    expect(await handle(timing).execute('May I?', { sessionId: await session() })).toMatchObject({
      reply: 'Bob at Side Street',
    });
  });

  it.each(INPUTS)(
    'FIX-73 checks the input of a tool with $what before the plan admits the use',
    async ({ schema, path, problem }) => {
      const valid = { items: [{ sku: 'lamp', count: 1 }] };
      const ran: string[] = [];
      const errors: unknown[] = [];
      const buying = defineOrchestrator({
        name: 'buying',
        steps: [{ name: 'open', isDefault: true }],
        intents: {
          buy: async ({ tools }) => {
            const buy = (id: string, input: JsonObject) => tools.use('buy', id, () => ran.push(id), { input, schema });
            const wrong = { items: [{ sku: 'lamp', count: 'two' }] };
            errors.push(await rejection(buy('1', wrong), InvalidInputError));
            await buy('2', valid);
            return reply(tools.state.toolHistory.map(({ tool }) => tool).join());
          },
        },
      });
      const { handle, session } = await startApplication({ adapter: open(), orchestrators: [buying] });
      const result = await handle(buying).execute('A lamp.', { sessionId: await session() });
      expect(errors).toMatchObject([{ code: 'INVALID_INPUT', path, problem }]);
      expect(ran).toEqual(['2']);
      expect(result).toMatchObject({ reply: 'buy' });
      expect(valid).toEqual({ items: [{ sku: 'lamp', count: 1 }] });
    },
  );

  it('FIX-73 returns the stored result of a tool without another check, and rejects a value that is not a schema', async () => {
    class Nothing {}
    const buying = defineOrchestrator({
      name: 'buying',
      intents: {
        buy: async ({ attempt, tools }) => {
          const schema = attempt === 1 ? Cart : Nothing;
          const bought = await tools.use('buy', '1', () => 'bought', { input: { items: [] }, schema });
          if (attempt === 1) throw new Error('the attempt is repeated');
          const error = await rejection(
            tools.use('buy', '2', () => 'bought', { schema: { parse: () => true } as never }),
            InvalidInputError,
          );
          return reply(`${bought}: ${error.message}`);
        },
      },
    });
    const { handle, session } = await startApplication({
      adapter: open(),
      orchestrators: [buying],
      turns: { retry: { backoff: { type: 'fixed', delayMs: 1 } } },
    });
    expect(await handle(buying).execute('A lamp.', { sessionId: await session() })).toMatchObject({
      reply: 'bought: options.schema must be a class or a Standard Schema.',
    });
  });
});
