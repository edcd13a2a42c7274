import { type TurnContext } from 'nestjs-agent-sessions';
import { type EmittedEvent } from 'nestjs-agent-sessions/adapter';
import { z } from 'zod';
import { approvalSignal, toolOutputSignal } from '../../lib/chat/user-signals.js';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { idempotencyKeyOf } from '../../lib/ai-sdk/tool-call.js';
import { toProtocol } from '../../lib/chat/protocol-chunks.js';
import { type AnyUIMessage, type UIPart } from '../../lib/chat/ui-message.js';
import { type Kill, KillableStores } from '../../lib/testing/chat/killable-stores.js';
import { client7, comparable, fold } from '../chat/clients.js';
import { LIVE_STORES } from '../support/running-application.js';
import { type Chat, CHAT_SDKS, startChat } from './fixtures/chat.js';
import { type Answer, type ModelOptions, type Script } from './fixtures/models.js';

/** A turn of a new session, in which a worker may be killed. */
interface Run {
  readonly sessionId: string;
  /** All answers of the model, by the number of the step. */
  readonly answers: Answer[][];
  /** The idempotency keys of all executions of a tool, by the tool and its input. */
  readonly keys: Map<string, string[]>;
  /** What was asked or executed although its result was stored. */
  readonly repeated: string[];
}

const find = (id: string) => ({ id: `find-${id}`, name: 'find', input: { id } });
const refund = (id: string) => ({ id: `refund-${id}`, name: 'refund', input: { id } });
const locate = (id: string) => ({ id: `locate-${id}`, name: 'locate', input: { id } });

const SCENARIOS = {
  'two calls': [{ text: 'One moment.', calls: [find('7'), find('8')] }, { text: 'Both have shipped.' }],
  'a call and two approvals': [
    { text: 'One moment.', calls: [refund('7'), find('8'), refund('9')] },
    { text: 'I have refunded one.' },
  ],
  'an approval and two calls of a tool that the client runs': [
    { text: 'One moment.', calls: [locate('1'), refund('7'), locate('2')] },
    { text: 'I have refunded one.' },
  ],
} satisfies Record<string, Answer[]>;

/** The answers of the user, by the beginning of their signals. */
const PAYLOADS = {
  [approvalSignal('refund-7')]: { approved: true },
  [approvalSignal('refund-9')]: { approved: false, reason: 'Keep it.' },
  [toolOutputSignal('locate-1')]: { output: { done: 'locate 1' } },
  [toolOutputSignal('locate-2')]: { errorText: 'No permission.' },
};

// A model of an older version differs only in what the SDK converts.
describe.each(CHAT_SDKS.slice(0, 2))('streamReply with $name, if a worker is killed', ({ sdk, scripted }) => {
  const runs = new Map<string, Run>();
  let store: KillableStores;
  let chat: Chat;

  /** Answers as real models do: differently when asked again, and with other ids of calls. */
  function answering(steps: readonly Answer[]): Script {
    return (_, options) => {
      const { run, step } = placeOf(options);
      const given = (run.answers[step] ??= []);
      const stored = store.steps(run.sessionId).filter((name) => name === 'model call').length;
      if (step < stored) run.repeated.push(`step ${step}`);
      const attempt = given.length + 1;
      const { text, calls = [] } = steps[step];
      const answer = {
        text: attempt === 1 ? text : `(${attempt}) ${text}`,
        calls: calls.map((call) => ({ ...call, id: `${call.id}-${attempt}` })),
      };
      given.push(answer);
      return answer;
    };
  }

  /** Returns the run of a model call, and the number of the step in its answer, from 0. */
  function placeOf({ prompt }: ModelOptions): { run: Run; step: number } {
    const said = prompt.findLastIndex(({ role }) => role === 'user');
    const [{ text }] = prompt[said].content as { text: string }[];
    return { run: runs.get(text) as Run, step: prompt.slice(said).filter(({ role }) => role === 'assistant').length };
  }

  function toolsOf(turn: TurnContext) {
    const { keys, repeated, sessionId } = runs.get(turn.input.text) as Run;
    const tool = (name: string, needsApproval: boolean) =>
      sdk.tool({
        inputSchema: z.object({ id: z.string() }),
        needsApproval,
        execute: ({ id }, options) => {
          const call = `${name} ${id}`;
          keys.set(call, [...(keys.get(call) ?? []), idempotencyKeyOf(options)]);
          if (store.steps(sessionId).includes(options.toolCallId)) repeated.push(call);
          return { done: call };
        },
      });
    const locate = sdk.tool({ inputSchema: z.object({ id: z.string() }) });
    return { find: tool('find', false), refund: tool('refund', true), locate };
  }

  /** Runs a turn to its end, and checks it. @returns the number of writes */
  async function runTurn(text: string, kill?: Kill): Promise<number> {
    const { turns, adapter, session } = chat.app;
    const sessionId = await session();
    const run: Run = { sessionId, answers: [], keys: new Map(), repeated: [] };
    runs.set(text, run);
    if (kill) store.kill(sessionId, kill);
    const { id } = await turns.submit('chat', text, { sessionId });
    for await (const { type, data } of turns.readEvents(id)) {
      if (type === 'waiting') await answer(id, (data as { signals: string[] }).signals);
    }

    expect(await turns.get(id)).toMatchObject({
      status: 'awaiting-input',
      failures: 0,
      reply: { text: lastText(run) },
    });
    expect(run.repeated).toEqual([]);
    for (const keys of run.keys.values()) expect(new Set(keys).size).toBe(1);
    const [, { content }] = await adapter.conversations.page(sessionId);
    const message: AnyUIMessage = { id, role: 'assistant', parts: content as readonly UIPart[] };
    expect(message.parts).toEqual(expectedParts(run));
    const chunks = await chat.chunks(id);
    expect(comparable(fold(chunks))).toEqual(comparable(message));
    expect(comparable(await client7(toProtocol(chunks, 7).chunks))).toEqual(comparable(message));
    return store.writes(sessionId);
  }

  /** Answers the requests, the last one first. */
  async function answer(turnId: string, signals: readonly string[]): Promise<void> {
    for (const signal of signals.toReversed()) {
      const [, payload] = Object.entries(PAYLOADS).find(([prefix]) => signal.startsWith(prefix))!;
      await chat.app.turns.signal(turnId, signal, payload);
    }
  }

  describe.each(Object.entries(SCENARIOS))('in an answer with %s', (_, steps) => {
    async function killEverywhere(
      open: (typeof LIVE_STORES)[number]['open'],
      pace: (turn: TurnContext) => TurnContext,
    ) {
      store = new KillableStores();
      const { model } = scripted(answering(steps));
      chat = await startChat((turn) => streamReplyWith(sdk, pace(turn), { model, tools: toolsOf(turn) }), {
        adapter: store.wrap(open()),
      });
      const writes = await runTurn('undisturbed');
      const kills = Array.from({ length: 2 * writes }, (_, at) => ({ at: 1 + (at >> 1), isStored: at % 2 === 0 }));
      await Promise.all(kills.map((kill) => runTurn(JSON.stringify(kill), kill)));
    }

    it.each(LIVE_STORES)('AIS-14 continues after every write with the same answer, over $name', async ({ open }) => {
      await killEverywhere(open, (turn) => turn);
    });

    const two = LIVE_STORES.filter(({ name }) => name === 'memory' || name === 'postgres');
    it.each(two)('AIS-14 continues after every chunk with the same answer, over $name', async ({ open }) => {
      await killEverywhere(open, storingEach);
    });
  });
});

/** Returns a turn that stores each chunk before the next one is created. */
function storingEach(turn: TurnContext): TurnContext {
  return { ...turn, emit: async (event: EmittedEvent) => (await turn.emit(event), turn.flush()) };
}

function lastText({ answers }: Run): string | undefined {
  return answers.at(-1)?.at(-1)?.text;
}

/** Returns the parts of the last answer of each step, which is the one that was stored. */
function expectedParts({ answers }: Run): unknown[] {
  return answers.flatMap((given) => {
    const { text, calls = [] } = given.at(-1) as Answer;
    return [{ type: 'step-start' }, { type: 'text', text, state: 'done' }, ...calls.map(expectedCall)];
  });
}

function expectedCall({ id, name, input }: NonNullable<Answer['calls']>[number]): unknown {
  const done = `${name} ${(input as { id: string }).id}`;
  const call = { type: `tool-${name}`, toolCallId: id, input };
  if (done === 'refund 9') {
    return { ...call, state: 'output-denied', approval: { id, approved: false, reason: 'Keep it.' } };
  }
  if (done === 'locate 2') return { ...call, state: 'output-error', errorText: 'No permission.' };
  const approval = name === 'refund' ? { approval: { id, approved: true } } : {};
  return { ...call, ...approval, state: 'output-available', output: { done } };
}
