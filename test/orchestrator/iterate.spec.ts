import {
  defineOrchestrator,
  END_TURN,
  Evaluate,
  Intent,
  type JsonValue,
  type MemoryQuery,
  Orchestrator,
  type OrchestratorConfig,
  turnOutcome,
  reply,
  Route,
  SessionsConfigurationError,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, rejection, SAMPLED_STORES, startApplication } from '../support/running-application.js';

interface Research {
  found?: string[];
  drafts?: number;
}

/** An orchestrator that looks things up and writes. Its evaluate requests a second draft. */
function researcher(extra: Partial<OrchestratorConfig<Research>> = {}) {
  const seen: Record<string, unknown>[] = [];
  const note = ({ iteration, state, messages, replies, feedback }: TurnContext<Research>): void =>
    void seen.push({ iteration, state: { ...state }, messages: messages.length, replies, feedback });
  const desk = defineOrchestrator<Research>({
    name: 'desk',
    iterate: true,
    route: (turn) => (turn.iteration === 0 ? ['look-up', 'ask-ann'] : 'write'),
    intents: {
      'look-up': (turn) => (
        note(turn),
        turnOutcome({ state: { found: ['a'] }, messages: [{ role: 'tool', content: 'a' }] })
      ),
      'ask-ann': () => undefined,
      write: (turn) => {
        note(turn);
        const drafts = (turn.state.drafts ?? 0) + 1;
        return reply(`draft ${drafts}`, { state: { drafts }, data: { drafts } });
      },
    },
    evaluate: (turn, replies) => {
      note(turn);
      if (turn.iteration === 0) return undefined;
      return turn.state.drafts === 2 || { feedback: `longer than ${replies[0].text}` };
    },
    ...extra,
  });
  return { desk, seen };
}

describe.each(SAMPLED_STORES)('iterating over $name', ({ open }) => {
  it('BOT-05 decides, dispatches, merges and evaluates until it is satisfied', async () => {
    const { desk, seen } = researcher();
    const { handle, session, turns, checkpoints, adapter } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
    });
    const sessionId = await session();
    const result = await handle(desk).execute('write', { sessionId });

    expect(result).toMatchObject({ status: 'awaiting-input', turnIndex: 0, reply: 'draft 2', data: { drafts: 2 } });
    expect(seen).toEqual([
      { iteration: 0, state: {}, messages: 0, replies: [] },
      {
        iteration: 0,
        state: { found: ['a'] },
        messages: 1,
        replies: [
          { intent: 'look-up', text: null },
          { intent: 'ask-ann', text: null },
        ],
      },
      { iteration: 1, state: { found: ['a'] }, messages: 1, replies: expect.any(Array) as unknown[] },
      expect.objectContaining({ iteration: 1, state: { found: ['a'], drafts: 1 }, messages: 2 }),
      {
        iteration: 2,
        state: { found: ['a'], drafts: 1 },
        messages: 2,
        replies: [{ intent: 'write', text: 'draft 1', data: { drafts: 1 } }],
        feedback: 'longer than draft 1',
      },
      expect.objectContaining({ iteration: 2, state: { found: ['a'], drafts: 2 } }),
    ]);
    expect(await checkpoints.load('desk', sessionId)).toMatchObject({
      turnIndex: 0,
      state: { found: ['a'], drafts: 2 },
      lastRoute: ['write'],
    });
    // The conversation does not contain the replaced answer.
    const messages = await adapter.conversations.page(sessionId);
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'write'],
      ['tool', 'a'],
      ['assistant', 'draft 2'],
    ]);
    expect(await turns.get(result.id)).toMatchObject({
      report: {
        status: 'awaiting-input',
        endedBy: 'satisfied',
        iterations: [
          { decision: { source: 'route', intents: ['look-up', 'ask-ann'] }, evaluation: { satisfied: false } },
          { decision: { intents: ['write'] }, evaluation: { satisfied: false, feedback: 'longer than draft 1' } },
          { decision: { intents: ['write'] }, intents: [{ intent: 'write', text: 'draft 2' }] },
        ],
      },
    });
  });

  it('BOT-05 ends with END_TURN, with an outcome that has a status, and at maxIterations', async () => {
    const ways: Record<string, Partial<OrchestratorConfig<Research>>> = {
      end: { evaluate: () => false, route: ({ iteration }) => (iteration < 2 ? 'write' : END_TURN) },
      outcome: {
        evaluate: () => false,
        route: () => 'write',
        intents: { write: ({ iteration }) => reply('ask', iteration === 2 ? { status: 'awaiting-input' } : {}) },
      },
      'max-iterations': { evaluate: () => ({ satisfied: false }), route: () => 'write', maxIterations: 3 },
    };
    const desks = Object.entries(ways).map(([name, way]) => researcher({ name, ...way }).desk);
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: desks });
    for (const desk of desks) {
      const { id } = await handle(desk).execute('go', { sessionId: await session() });
      const turn = await turns.get(id);
      expect(turn).toMatchObject({ status: 'awaiting-input', report: { endedBy: desk.name } });
      expect(turn?.report?.iterations).toHaveLength(3);
    }
  });

  it('BOT-05 keeps the text and data of an iteration until another one answers', async () => {
    const { desk } = researcher({
      route: ({ iteration }) => (iteration === 2 ? END_TURN : 'write'),
      evaluate: undefined,
      intents: { write: ({ iteration }) => (iteration === 0 ? reply('first', { data: [1] }) : { drafts: 1 }) },
    });
    const { handle, session, adapter } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    expect(await handle(desk).execute('go', { sessionId })).toMatchObject({ reply: 'first', data: [1] });
    expect((await adapter.conversations.page(sessionId)).map(({ content }) => content)).toEqual(['go', 'first']);
  });

  it('BOT-05 BOT-06 ends the turn if an intent completes the conversation', async () => {
    const { desk } = researcher({
      evaluate: () => false,
      route: () => 'write',
      intents: { write: () => reply('bye', { status: 'completed' }) },
    });
    const { handle, session } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const result = await handle(desk).execute('go', { sessionId: await session() });
    expect(result).toMatchObject({ status: 'completed', reply: 'bye' });
  });

  it('BOT-05 evaluate reassigns; the first iteration goes to the initialIntent; neither asks the route', async () => {
    let routed = 0;
    const { desk } = researcher({
      initialIntent: 'write',
      route: () => ((routed += 1), END_TURN),
      evaluate: ({ iteration }) => (iteration === 0 ? { reassignTo: ['look-up', 'ask-ann'] } : undefined),
    });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { id } = await handle(desk).execute('go', { sessionId: await session() });
    expect(await turns.get(id)).toMatchObject({
      report: {
        endedBy: 'end',
        iterations: [
          { decision: { source: 'initial', intents: ['write'] } },
          { decision: { source: 'reassigned', intents: ['look-up', 'ask-ann'] } },
          { decision: { source: 'route', intents: [] }, intents: [] },
        ],
      },
    });
    expect(routed).toBe(1);
  });

  it('BOT-30 resumes a retry at the failed iteration, and keeps the merged results', async () => {
    const ran: string[] = [];
    const { desk } = researcher({
      route: ({ iteration }) => (iteration === 3 ? END_TURN : 'write'),
      evaluate: undefined,
      intents: {
        write: async (turn) => {
          const { iteration, attempt, state } = turn;
          ran.push(`${iteration}/${attempt}`);
          await turn.step('effect', () => void ran.push(`effect ${iteration}`));
          if (iteration === 2 && attempt < 3) throw new Error('not yet');
          return reply(`${iteration}`, {
            state: { found: [...(state.found ?? []), `${iteration}`] },
            messages: [{ role: 'assistant', content: `said ${iteration}` }],
          });
        },
      },
    });
    const { handle, session, checkpoints, adapter, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { delayMs: 1 } } },
    });
    const sessionId = await session();
    const { id, reply: answer } = await handle(desk).execute('go', { sessionId });
    expect(answer).toBe('2');
    expect(ran).toEqual(['0/1', 'effect 0', '1/1', 'effect 1', '2/1', 'effect 2', '2/2', '2/3']);
    expect((await checkpoints.load('desk', sessionId))?.state).toEqual({ found: ['0', '1', '2'] });
    const said = (await adapter.conversations.page(sessionId)).map(({ content }) => content);
    expect(said).toEqual(['go', 'said 0', 'said 1', 'said 2']);
    expect((await turns.get(id))?.report?.iterations).toHaveLength(4);
  });

  it('BOT-05 TRN-13 resumes a wait in its iteration, and does not repeat earlier work', async () => {
    const ran: number[] = [];
    const { desk } = researcher({
      route: ({ iteration }) => (iteration === 2 ? END_TURN : 'write'),
      evaluate: undefined,
      intents: {
        write: async (turn) => {
          ran.push(turn.iteration);
          return turn.iteration === 1 ? reply(await turn.waitFor<string>('word')) : undefined;
        },
      },
    });
    const { handle, session, turns } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const { id } = await handle(desk).submit('go', { sessionId: await session() });
    await eventually(async () => (await turns.get(id))?.status === 'waiting');
    await turns.signal(id, 'word', 'yes');
    expect(await turns.result(id)).toMatchObject({ reply: 'yes' });
    expect(ran).toEqual([0, 1, 1]);
  });

  it('ORC-30 BOT-30 FIX-15 uses of tools and tokens of iterations that are not run again still count, once', async () => {
    const desk = defineOrchestrator({
      name: 'desk',
      iterate: true,
      steps: [{ name: 'work', isDefault: true, sequence: ['search', 'book'] }],
      route: ({ iteration }) => (iteration === 2 ? END_TURN : 'work'),
      intents: {
        work: async (turn) => {
          turn.usage.add({ totalTokens: 5 });
          await turn.tools.use(['search', 'book'][turn.iteration], `call ${turn.iteration}`, () => null);
          if (turn.iteration === 1 && turn.attempt === 1) throw new Error('after the tool');
          return undefined;
        },
      },
    });
    const { handle, session, turns, app } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { delayMs: 1 } } },
    });
    const { OrchestrationStateManager } = await import('nestjs-agent-sessions');
    const sessionId = await session();
    const { id } = await handle(desk).execute('go', { sessionId });
    const state = await app.get(OrchestrationStateManager, { strict: false }).getState(sessionId);
    expect(state?.toolHistory?.map(({ tool, outcome: how }) => `${tool} ${how}`)).toEqual([
      'search succeeded',
      'book succeeded',
    ]);
    // The second iteration asked twice.
    expect(state?.cumulativeTokenUsage.totalTokens).toBe(15);
    expect(await turns.get(id)).toMatchObject({ failures: 1 });
  });

  it('BOT-30 evaluate and the route do not get the results of each other’s steps', async () => {
    let cached: string | undefined;
    const asked: string[] = [];
    const { desk } = researcher({
      // Caches the result, so that the second attempt does not call the step.
      route: async (turn) => (cached ??= await turn.step('ask', () => (asked.push('route'), 'write'))),
      intents: {
        write: ({ attempt }) => {
          if (attempt === 1) throw new Error('not yet');
          return reply('done');
        },
      },
      evaluate: (turn) => turn.step('ask', () => (asked.push('evaluate'), true)),
    });
    const { handle, session } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { delayMs: 1 } } },
    });
    await handle(desk).execute('go', { sessionId: await session() });
    expect(asked).toEqual(['route', 'evaluate']);
  });

  it('TRN-06 BOT-30 keeps the messages of iterations of an earlier attempt if the turn is interrupted before the next attempt begins', async () => {
    const recalling = gate();
    const memory = {
      recall: async ({ input }: MemoryQuery): Promise<JsonValue[]> => {
        if (input.text === 'go' && failed) {
          recalling.open();
          await gate().pass();
        }
        return [];
      },
      remember: () => Promise.resolve(),
    };
    let failed = false;
    const { desk } = researcher({
      memory,
      route: () => 'write',
      evaluate: undefined,
      intents: {
        write: ({ iteration, input }) => {
          if (input.text === 'next') return reply('next', { status: 'completed' });
          if (iteration === 0) return reply('first part');
          failed = true;
          throw new Error('not yet');
        },
      },
    });
    const { handle, session, adapter } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { backoff: { delayMs: 1 } } },
    });
    const sessionId = await session();
    await handle(desk).submit('go', { sessionId });
    await recalling.pass();
    await handle(desk).execute('next', { sessionId, whenBusy: 'interrupt' });
    const said = (await adapter.conversations.page(sessionId)).map(({ content }) => content);
    expect(said).toEqual(['go', 'first part', 'next', 'next']);
  });

  it('TRN-06 keeps the messages of complete iterations of an interrupted turn', async () => {
    const { pass, open: release } = gate();
    const reached = gate();
    const { desk } = researcher({
      route: () => 'write',
      evaluate: undefined,
      intents: {
        write: async ({ iteration, signal, input }) => {
          if (input.text === 'next') return reply('next', { status: 'completed' });
          if (iteration === 1) {
            reached.open();
            await pass(signal);
          }
          return reply('first part');
        },
      },
    });
    const { handle, session, turns, adapter } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();
    const { id } = await handle(desk).submit('go', { sessionId });
    await reached.pass();
    await handle(desk).execute('next', { sessionId, whenBusy: 'interrupt' });
    release();
    const said = (await adapter.conversations.page(sessionId)).map(({ content }) => content);
    expect(said).toEqual(['go', 'first part', 'next', 'next']);
    expect(await turns.get(id)).toMatchObject({
      status: 'cancelled',
      report: { status: 'cancelled', iterations: [{ intents: [{ intent: 'write' }] }, { intents: [] }] },
    });
  });
});

describe('evaluate', () => {
  it.each([
    ['a number', 7],
    ['null', null],
    ['satisfied that is not a boolean', { satisfied: 'yes' }],
    ['feedback that is not a string', { feedback: 7 }],
  ])('BOT-05 fails the turn if it returns %s', async (_, given) => {
    const { desk } = researcher({ evaluate: () => given as never });
    const { handle, session } = await startApplication({ orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('go', { sessionId: await session() }), TurnFailedError);
    expect(error.failure?.code).toBe('ORCHESTRATOR_RESULT');
  });

  it('BOT-05 fails the turn if it reassigns to an unknown intent, and names the known ones', async () => {
    const { desk } = researcher({ evaluate: () => ({ reassignTo: 'wirte' }) });
    const { handle, session } = await startApplication({ orchestrators: [desk] });
    const error = await rejection(handle(desk).execute('go', { sessionId: await session() }), TurnFailedError);
    expect(error.failure).toMatchObject({
      code: 'UNKNOWN_INTENT',
      details: { intent: 'wirte', known: ['look-up', 'ask-ann', 'write'] },
    });
  });

  it('BOT-01 BOT-05 can be a method with @Evaluate()', async () => {
    @Orchestrator({ name: 'desk', iterate: true })
    class Desk {
      private readonly enough = 2;
      @Route()
      route() {
        return 'count';
      }
      @Intent()
      count({ iteration }: TurnContext) {
        return `${iteration + 1}`;
      }
      @Evaluate()
      judge(_: TurnContext, [{ text }]: readonly { text: string | null }[]) {
        return Number(text) === this.enough;
      }
    }
    const { handle, session } = await startApplication({ orchestrators: [Desk] });
    expect(await handle(Desk).execute('go', { sessionId: await session() })).toMatchObject({ reply: '2' });
  });

  it.each([
    ['evaluate', { evaluate: () => true }],
    ['maxIterations', { maxIterations: 3 }],
    ['initialIntent', { initialIntent: 'write' }],
  ])('BOT-05 %s without iterate is a mistake that is found at once', (field, extra) => {
    const define = () => researcher({ ...NO_LOOP, ...extra });
    expect(define).toThrow(SessionsConfigurationError);
    expect(define).toThrow(`Orchestrator desk: ${field} requires iterate: true.`);
  });

  it.each([
    ['maxIterations must be an integer from 1 to 1000.', { maxIterations: 0 }],
    ['initialIntent must be one of look-up, ask-ann, write.', { initialIntent: 'wirte' }],
    ['iterate must be a boolean.', { iterate: 'yes' as never }],
  ])('BOT-05 %s', (problem, extra) => {
    expect(() => researcher(extra)).toThrow(`Orchestrator desk: ${problem}`);
  });
});

const NO_LOOP = { iterate: false, evaluate: undefined };
