import { Injectable } from '@nestjs/common';
import {
  type Checkpoint,
  defineOrchestrator,
  Intent,
  type JsonValue,
  type MemorableTurn,
  MemoryPort,
  type MemoryQuery,
  Orchestrator,
  type OrchestratorEvent,
  type Session,
  SessionsConfigurationError,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { gate, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

/** Remembers messages by scope. */
@Injectable()
class Notes extends MemoryPort {
  readonly byScope = new Map<string, string[]>();
  readonly remembered: MemorableTurn[] = [];

  recall({ scope, input }: MemoryQuery): Promise<readonly JsonValue[]> {
    if (input.text === 'no recall') return Promise.reject(new Error('the memory is away'));
    return Promise.resolve([...(this.byScope.get(scope) ?? [])]);
  }

  remember(turn: MemorableTurn): Promise<void> {
    this.remembered.push(turn);
    if (turn.input.text === 'forget') return Promise.reject(new Error('full'));
    this.byScope.set(turn.scope, [...(this.byScope.get(turn.scope) ?? []), turn.input.text]);
    return Promise.resolve();
  }
}

function deskOf(memory: MemoryPort, memoryScope?: 'user') {
  return defineOrchestrator({
    name: 'desk',
    memory,
    ...(memoryScope ? { memoryScope } : {}),
    intents: {
      answer: ({ memories, input }) => {
        if (input.text === 'fails') throw new Error('not today');
        return memories.map((memory) => memory as string).join();
      },
    },
  });
}

describe.each(LIVE_STORES)('a memory over $name', ({ open }) => {
  it('BOT-51 recalls before dispatch and remembers turns that have settled, per session', async () => {
    const notes = new Notes();
    const desk = deskOf(notes);
    const app = await startApplication({ adapter: open(), orchestrators: [desk], turns: { retry: { attempts: 1 } } });
    const [here, there] = [await app.session(), await app.session()];
    const say = async (sessionId: string, text: string): Promise<string | null> => {
      const before = notes.remembered.length;
      const { reply } = await app.handle(desk).execute(text, { sessionId });
      await eventually(() => notes.remembered.length > before);
      return reply;
    };
    expect(await say(here, 'one')).toBe('');
    expect(await say(here, 'two')).toBe('one');
    expect(await say(there, 'three')).toBe('');
    await rejection(app.handle(desk).execute('fails', { sessionId: here }), TurnFailedError);
    expect(await say(here, 'four')).toBe('one,two');
    expect(notes.remembered).toHaveLength(4);
    expect(notes.remembered[1]).toMatchObject({
      scope: `session:${here}`,
      sessionId: here,
      turnId: expect.any(String) as string,
      input: { text: 'two' },
      reply: 'one',
      messages: [
        { role: 'user', content: 'two' },
        { role: 'assistant', content: 'one' },
      ],
    });
  });

  it('BOT-51 BOT-08 does not remember a turn whose settlement was refused', async () => {
    const notes = new Notes();
    const app = await startApplication({
      adapter: open(),
      orchestrators: [deskOf(notes)],
      turns: { retry: { attempts: 1 } },
    });
    const desk = app.handle({ name: 'desk' });
    const sessionId = await app.session();
    await desk.execute('one', { sessionId });
    const before = (await app.checkpoints.load('desk', sessionId)) as Checkpoint;
    // Another writer adds the next checkpoint while the turn runs.
    const onEvent = async ({ type }: OrchestratorEvent): Promise<void> => {
      if (type === 'session-loaded') await app.checkpoints.append({ ...before, turnIndex: 1 }, 'all');
    };
    notes.recall = async () => (await eventually(() => app.checkpoints.load('desk', sessionId, 1)), []);
    const error = await rejection(desk.execute('two', { sessionId, onEvent }), TurnFailedError);
    expect(error.failure?.code).toBe('CHECKPOINT_CONFLICT');
    await desk.execute('three', { sessionId });
    await eventually(() => notes.remembered.length >= 2);
    expect(notes.remembered.map(({ input }) => input.text)).toEqual(['one', 'three']);
  });

  it('BOT-51 shares memory between the sessions of a user only if configured', async () => {
    const notes = new Notes();
    const desk = deskOf(notes, 'user');
    const { handle, sessions } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const open_ = async (userId: string, workspaceId?: string): Promise<string> =>
      (await sessions.create({ userId, ...(workspaceId ? { workspaceId } : {}) })).id;
    const [ann, again, elsewhere, bob] = [
      await open_('ann'),
      await open_('ann'),
      await open_('ann', 'acme'),
      await open_('bob'),
    ];
    const answers: (string | null)[] = [];
    for (const sessionId of [ann, again, elsewhere, bob]) {
      const before = notes.remembered.length;
      answers.push((await handle(desk).execute('hi', { sessionId })).reply);
      await eventually(() => notes.remembered.length > before);
    }
    expect(answers).toEqual(['', 'hi', '', '']);
  });
});

it('BOT-51 rejects a scope that is not a name: all such sessions would share one memory', async () => {
  const memory = { recall: async () => [], remember: async () => {} };
  const memoryScope = ({ metadata }: Session) => metadata.team as string;
  const desk = defineOrchestrator({ name: 'desk', intents: { answer: () => 'hi' }, memory, memoryScope });
  const { handle, session, turns } = await startApplication({ orchestrators: [desk] });
  const error = await rejection(handle(desk).execute('hi', { sessionId: await session() }), TurnFailedError);

  const { message } = (await turns.get(error.turnId))?.error ?? {};
  expect(message).toContain('The result of memoryScope must be a string of 1 to 256 characters');
});

it('BOT-51 waits at shutdown until settled turns are remembered', async () => {
  const notes = new Notes();
  const { pass, open: finish } = gate();
  const remembering = gate();
  let remembered = false;
  notes.remember = async () => {
    remembering.open();
    await pass();
    remembered = true;
  };
  const desk = deskOf(notes);
  const app = await startApplication({ orchestrators: [desk], turns: { shutdownGraceMs: 20_000 } });
  await app.handle(desk).execute('hi', { sessionId: await app.session() });
  await remembering.pass();
  let closed = false;
  const closing = app.close().then(() => (closed = true));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(closed).toBe(false);
  finish();
  await closing;
  expect(remembered).toBe(true);
});

it('BOT-51 waits at shutdown at most as long as for turns', async () => {
  const notes = new Notes();
  notes.remember = () => gate().pass();
  const desk = deskOf(notes);
  const app = await startApplication({ orchestrators: [desk], turns: { shutdownGraceMs: 30 } });
  await app.handle(desk).execute('hi', { sessionId: await app.session() });
  await app.close();
});

it('BOT-51 fails the attempt if recall fails, and only logs an error if remember fails', async () => {
  const notes = new Notes();
  const desk = deskOf(notes);
  const errors: string[] = [];
  const logger = { error: (text: string) => void errors.push(text), log: () => {}, warn: () => {} };
  const { handle, session } = await startApplication({
    orchestrators: [desk],
    logger,
    turns: { retry: { attempts: 1 } },
  });
  const sessionId = await session();
  const error = await rejection(handle(desk).execute('no recall', { sessionId }), TurnFailedError);
  expect(error.failure?.message).toBe('the memory is away');
  expect(await handle(desk).execute('forget', { sessionId })).toMatchObject({ turnIndex: 0 });
  await eventually(() => errors.some((text) => /The memory failed to store turn/.test(text)));
});

it('BOT-51 resolves a memory class from the providers of the application, and uses its custom scopes', async () => {
  @Orchestrator({ name: 'desk', memory: Notes, memoryScope: ({ userId }) => `team of ${userId}` })
  class Desk {
    @Intent()
    answer({ memories }: TurnContext) {
      return memories.map((memory) => memory as string).join();
    }
  }
  const { handle, session, app } = await startApplication({ orchestrators: [Desk], providers: [Notes] });
  await handle(Desk).execute('one', { sessionId: await session() });
  const notes = app.get(Notes, { strict: false });
  await eventually(() => notes.remembered.length === 1);
  expect(await handle(Desk).execute('two', { sessionId: await session() })).toMatchObject({ reply: 'one' });
  expect([...notes.byScope.keys()]).toEqual(['team of ann']);

  const missing = await rejection(startApplication({ orchestrators: [Desk] }), SessionsConfigurationError);
  expect(missing.message).toContain('Desk: its memory Notes is not a provider.');
});

it.each([
  [
    'memory must be a MemoryPort, an object with recall() and remember(). A class is resolved only by the @Orchestrator ' +
      'decorator. Missing: remember(). Add it.',
    { memory: { recall: () => [] } as never },
  ],
  ["memoryScope must be 'session', 'user' or a function of the session.", { memoryScope: 'team' as never }],
  ['on must be an object of listeners by event type.', { on: { routed: 7 } as never }],
])('BOT-51 BOT-10 %s', (problem, extra) => {
  const define = () => defineOrchestrator({ name: 'desk', intents: { a: () => 'a' }, ...extra });
  expect(define).toThrow(`Orchestrator desk: ${problem}`);
});
