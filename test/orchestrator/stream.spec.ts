import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import {
  defineOrchestrator,
  InvalidInputError,
  OrchestratorDriftError,
  reply,
  SessionNotFoundError,
  type TurnContext,
  TurnCancelledError,
  type TurnEvent,
  TurnReentryError,
  type TurnStream,
} from 'nestjs-agent-sessions';
import {
  aborted,
  gate,
  LASTING_STORES,
  rejection,
  SAMPLED_STORES,
  startApplication,
} from '../support/running-application.js';

describe.each(SAMPLED_STORES)('the stream of a turn over $name', ({ open }) => {
  it('BOT-01 yields the emitted events and then the end of the turn; its result equals that of execute', async () => {
    const { say, session, turns } = await startDesk(open, async (turn) => {
      for (const word of ['a', 'b', 'c']) void turn.emit({ type: 'word', data: word });
      return reply(`You said ${turn.input.text}.`);
    });
    const sessionId = await session();
    const stream = say('hello', { sessionId });
    const events = await eventsOf(stream);
    const { id } = await stream.turn;
    const expected = { id, sessionId, status: 'awaiting-input', turnIndex: 0, reply: 'You said hello.' };
    expect(await stream.result).toEqual(expected);
    expect(events).toEqual([
      { offset: 1, type: 'word', data: 'a' },
      { offset: 2, type: 'word', data: 'b' },
      { offset: 3, type: 'word', data: 'c' },
      { offset: 4, type: 'settled', data: expected },
    ]);
    expect(await eventsOf(stream)).toEqual(events);
    expect(await turns.get(id)).toMatchObject({ request: { input: { text: 'hello' } } });
  });

  it('BOT-01 keeps the turn running when the caller leaves the loop', async () => {
    const { pass, open: release } = gate();
    const { say, session } = await startDesk(open, async (turn) => {
      void turn.emit({ type: 'word', data: 'first' });
      await pass(turn.signal);
      void turn.emit({ type: 'word', data: 'second' });
      return 'done';
    });
    const stream = say('hi', { sessionId: await session() });
    for await (const event of stream) {
      expect(event.data).toBe('first');
      break;
    }
    release();
    expect(await stream.result).toMatchObject({ reply: 'done' });
    expect((await eventsOf(stream)).map(({ data, type }) => (type === 'word' ? data : type))).toEqual([
      'first',
      'second',
      'settled',
    ]);
  });

  it('BOT-01 BOT-02 cancels the turn and ends the stream when the signal is aborted', async () => {
    const { say, session } = await startDesk(open, async (turn) => {
      void turn.emit({ type: 'word', data: 'first' });
      return aborted(turn.signal);
    });
    const controller = new AbortController();
    const stream = say('hi', { sessionId: await session(), signal: controller.signal });
    const events: TurnEvent[] = [];
    for await (const event of stream) {
      events.push(event);
      controller.abort();
    }
    expect(events.at(-1)).toMatchObject({ type: 'settled', data: { status: 'cancelled', code: 'TURN_CANCELLED' } });
    await rejection(stream.result, TurnCancelledError);
  });

  it('BOT-01 rejects the loop, the turn and the result of a turn that is not accepted, and throws nothing earlier', async () => {
    const { say } = await startDesk(open, () => 'hi');
    const unknown = say('hi', { sessionId: 'no-such-session' });
    await rejection(eventsOf(unknown), SessionNotFoundError);
    await rejection(unknown.turn, SessionNotFoundError);
    await rejection(unknown.result, SessionNotFoundError);
    await rejection(say(' ', { sessionId: 's' }).result, InvalidInputError);
    await rejection(say('hi', { sessionId: 's', timeoutMs: 5 } as never).result, InvalidInputError);
    const gone = AbortSignal.abort(new Error('gone'));
    expect((await rejection(say('hi', { sessionId: 's', signal: gone }).turn, Error)).message).toBe('gone');
  });

  it('BOT-01 TRN-12 rejects a handler that streams a turn of the session it runs in, instead of a deadlock', async () => {
    const seen: unknown[] = [];
    const { say, session } = await startDesk(open, async ({ sessionId, input }) => {
      if (input.text === 'outer') seen.push(await rejection(eventsOf(say('inner', { sessionId })), TurnReentryError));
    });
    await say('outer', { sessionId: await session() }).result;
    expect(seen).toHaveLength(1);
  });
});

it.each(LASTING_STORES)(
  'BOT-23 rejects the result of a stream on drift, whose code is in the event settled, over $name',
  async ({ create }) => {
    const open = create();
    const first = await startDesk(open, () => 'hi');
    const sessionId = await first.session();
    await first.say('hi', { sessionId }).result;
    await first.close();
    const changed = defineOrchestrator({ name: 'desk', route: () => 'other', intents: { other: () => 'no' } });
    const { handle } = await startApplication({ adapter: open(), orchestrators: [changed] });
    const stream = handle(changed).stream('hi', { sessionId });
    const [settled, ...more] = await eventsOf(stream);
    expect(settled).toMatchObject({ type: 'settled', data: { status: 'failed', code: 'ORCHESTRATOR_DRIFT' } });
    expect(more).toEqual([]);
    const error = await rejection(stream.result, OrchestratorDriftError);
    expect(error).toMatchObject({ currentSignature: changed.signature, sessionId });
  },
);

it('BOT-23 keeps the process alive on drift if the result of a stream is not awaited (known failure: it died)', () => {
  const program = join(import.meta.dirname, 'fixtures/drift-on-stream.mjs');
  expect(execFileSync(process.execPath, [program], { encoding: 'utf8', stdio: 'pipe' })).toBe(
    'failed ORCHESTRATOR_DRIFT\n',
  );
});

async function startDesk(open: (typeof SAMPLED_STORES)[number]['open'], answer: (turn: TurnContext) => unknown) {
  const desk = defineOrchestrator({ name: 'desk', intents: { answer: answer as () => object } });
  const app = await startApplication({ adapter: open(), orchestrators: [desk] });
  const handle = app.handle(desk);
  const say = (text: string, options: Parameters<typeof handle.stream>[1]): TurnStream => handle.stream(text, options);
  return { ...app, say };
}

async function eventsOf(stream: TurnStream): Promise<TurnEvent[]> {
  const events: TurnEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}
