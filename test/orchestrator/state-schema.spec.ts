import { IsInt, IsOptional, IsString } from 'class-validator';
import { defineOrchestrator, turnOutcome, type StateSchema, TurnFailedError } from 'nestjs-agent-sessions';
import { z } from 'zod';
import { LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

class DeskState {
  @IsInt()
  count!: number;

  @IsOptional()
  @IsString()
  note?: string;
}

const Standard = z.object({ count: z.int(), note: z.string().optional() }).strict();

/** Its state becomes what the caller says. */
function deskOf(stateSchema?: StateSchema) {
  return defineOrchestrator<Record<string, unknown>>({
    name: 'desk',
    initialState: () => ({ count: 0 }),
    ...(stateSchema ? { stateSchema } : {}),
    intents: { set: ({ input }) => turnOutcome({ state: JSON.parse(input.text) as object }) },
  });
}

describe.each(LIVE_STORES)('a state schema over $name', ({ open }) => {
  it.each([
    [
      'a class',
      DeskState,
      'state.count',
      'count must be an integer number',
      'state.more',
      'is not a known key. Did you mean note? Allowed: count, note.',
    ],
    [
      'a Standard Schema',
      Standard,
      'state.count',
      expect.stringMatching(/expected number/) as string,
      'state',
      expect.stringMatching(/more/) as string,
    ],
  ])(
    'BOT-07 %s refuses what does not fit, before anything is stored',
    async (_, schema, path, rule, unknownPath, unknownRule) => {
      const desk = deskOf(schema);
      const { handle, session, checkpoints, adapter } = await startApplication({
        adapter: open(),
        orchestrators: [desk],
      });
      const sessionId = await session();
      await handle(desk).execute('{"count":1,"note":"x"}', { sessionId });
      const wrong = await rejection(handle(desk).execute('{"count":"two"}', { sessionId }), TurnFailedError);
      expect(wrong.failure).toMatchObject({ code: 'STATE_SCHEMA', details: { orchestrator: 'desk', path, rule } });
      const unknown = await rejection(handle(desk).execute('{"more":1}', { sessionId }), TurnFailedError);
      expect(unknown.failure).toMatchObject({
        code: 'STATE_SCHEMA',
        details: { path: unknownPath, rule: unknownRule },
      });
      expect(await checkpoints.load('desk', sessionId)).toMatchObject({ turnIndex: 0, state: { count: 1, note: 'x' } });
      expect(await adapter.conversations.page(sessionId)).toHaveLength(1);
    },
  );
});

it('BOT-07 accepts an asynchronous schema, and does not change the state by its transforms', async () => {
  const desk = deskOf(
    z
      .object({ count: z.int().refine((count) => Promise.resolve(count < 5), 'is too many') })
      .transform(() => 'changed'),
  );
  const { handle, session, checkpoints } = await startApplication({ orchestrators: [desk] });
  const sessionId = await session();
  await handle(desk).execute('{"count":4}', { sessionId });
  expect((await checkpoints.load('desk', sessionId))?.state).toEqual({ count: 4 });
  const error = await rejection(handle(desk).execute('{"count":5}', { sessionId }), TurnFailedError);
  expect(error.failure?.message).toBe(
    'Orchestrator desk: the new state does not match its schema: state.count is too many',
  );
});

it('BOT-07 rejects a value that is not a schema when the orchestrator is defined', () => {
  expect(() => deskOf({ parse: () => true } as never)).toThrow(
    'Orchestrator desk: stateSchema must be a class or a Standard Schema.',
  );
});

it('BOT-22 the signature knows whether there is a schema, and the rules of a class', () => {
  class Same {
    @IsOptional()
    @IsString()
    note?: string;

    @IsInt()
    count!: number;
  }
  class Other {
    @IsString()
    count!: string;
  }
  const [none, own, same, changed, standard] = [undefined, DeskState, Same, Other, Standard].map(
    (schema) => deskOf(schema as StateSchema | undefined).signature,
  );
  expect(same).toBe(own);
  expect(new Set([none, own, changed, standard]).size).toBe(4);
  expect(deskOf(z.object({})).signature).toBe(standard);
});
