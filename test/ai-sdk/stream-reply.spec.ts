import {
  memoryAdapter,
  reply as replyWith,
  TurnCancelledError,
  type TurnContext,
  TurnFailedError,
} from 'nestjs-agent-sessions';
import { scriptedModel } from 'nestjs-agent-sessions/testing';
import type * as ai6 from 'ai';
import { z } from 'zod';
import { approvalSignal, toolOutputSignal } from '../../lib/chat/user-signals.js';
import { type StreamReplyOptions, streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { toUIMessages } from '../../lib/ai-sdk/ui-messages.js';
import { toProtocol } from '../../lib/chat/protocol-chunks.js';
import { segmentsOf } from '../../lib/chat/replay.js';
import { INTERRUPTED } from '../../lib/ledger/interrupted-result.js';
import { type Kill, KillableStores } from '../../lib/testing/chat/killable-stores.js';
import { type AnyUIMessage, type UIChunk } from '../../lib/chat/ui-message.js';
import { uiStream } from '../../lib/chat/ui-stream.js';
import { client6, client7, comparable, fold } from '../chat/clients.js';
import { toolsOf } from '../chat/front-ends.js';
import { eventually } from '../support/eventually.js';
import { gate, LIVE_STORES, rejection } from '../support/running-application.js';
import { type Chat, CHAT_SDKS, type ChatOptions, startChat } from './fixtures/chat.js';
import { failUntil } from './fixtures/desk.js';
import { durableModel } from '../../lib/ai-sdk/durable-model.js';
import {
  type Answer,
  type ModelOptions,
  type Part,
  partsOf,
  type Script,
  textParts,
  USAGE,
} from './fixtures/models.js';

type Options = Partial<StreamReplyOptions<ai6.ToolSet>>;

const inputSchema = z.object({ id: z.string() });
const find = (id: string) => ({ id: `find-${id}`, name: 'find', input: { id } });
const refund = (id: string) => ({ id: `refund-${id}`, name: 'refund', input: { id } });

/** Returns the messages of a model call with roles and texts. */
function saidIn({ prompt }: ModelOptions): unknown[] {
  return prompt.map(({ role, content }) => [
    role,
    typeof content === 'string'
      ? content
      : content.map((part) => {
          if (part.type === 'text') return part.text;
          if (part.type === 'tool-result') return part.output;
          return part.type === 'tool-call' ? part.toolCallId : part.type;
        }),
  ]);
}

async function waiting({ app: { turns } }: Chat, id: string): Promise<void> {
  await eventually(async () => (await turns.get(id))?.status === 'waiting');
}

/** Returns the message of the assistant as the endpoint for stored messages returns it. */
async function storedMessage({ log }: Chat): Promise<AnyUIMessage | undefined> {
  return toUIMessages(await log()).findLast(({ role }) => role === 'assistant');
}

describe.each(CHAT_SDKS)('streamReply with $name', ({ name: version, sdk, scripted }) => {
  /** Starts a chat. The model gives the answers of a list in order. */
  async function start(
    script: Script | readonly (Answer | readonly Part[])[],
    options: Options | ((turn: TurnContext) => Options) = {},
    { after = () => {}, ...chat }: ChatOptions & { readonly after?: (turn: TurnContext) => unknown } = {},
  ) {
    const { model, asked } = scripted(typeof script === 'function' ? script : (call) => script[call - 1]);
    const started = await startChat(async (turn) => {
      const own = typeof options === 'function' ? options(turn) : options;
      const outcome = await streamReplyWith(sdk, turn, { model, ...own });
      await after(turn);
      return outcome;
    }, chat);
    return { ...started, asked };
  }

  const tool = (execute: (input: { id: string }) => unknown) => sdk.tool({ inputSchema, execute });
  const approvedTool = (execute: (input: { id: string }) => unknown) =>
    sdk.tool({ inputSchema, needsApproval: true, execute });

  describe.each(LIVE_STORES)('over $name', ({ open }) => {
    it('AIS-01 replies with the last text, and stores the message that clients have', async () => {
      const answers = [{ text: 'One moment.', calls: [find('7')] }, { text: 'It has shipped.' }];
      const chat = await start(answers, { tools: { find: tool(() => 'shipped') } }, { adapter: open() });
      const { id, reply, usage } = await chat.send('Where is order 7?');
      expect(reply).toBe('It has shipped.');
      // Two calls of 10 and 2 tokens.
      expect(usage).toEqual({ promptTokens: 20, completionTokens: 4, totalTokens: 24 });
      const message = await storedMessage(chat);
      expect(message).toEqual({
        id,
        role: 'assistant',
        parts: [
          { type: 'step-start' },
          { type: 'text', text: 'One moment.', state: 'done' },
          {
            type: 'tool-find',
            toolCallId: 'find-7',
            state: 'output-available',
            input: { id: '7' },
            output: 'shipped',
          },
          { type: 'step-start' },
          { type: 'text', text: 'It has shipped.', state: 'done' },
        ],
      });
      const chunks = await chat.chunks(id);
      expect(comparable(await client6(toProtocol(chunks, 6).chunks))).toEqual(comparable(message as AnyUIMessage));
      expect(comparable(await client7(toProtocol(chunks, 7).chunks))).toEqual(comparable(message as AnyUIMessage));
    });

    it('AIS-31 shows and stores an interrupted call as an error, wherever the worker is killed', async () => {
      const store = new KillableStores();
      const executed = new Map<string, number>();
      const execute = ({ id }: { id: string }) => {
        executed.set(id, (executed.get(id) ?? 0) + 1);
        return 'refunded';
      };
      const script: Script = (_, { prompt }) => {
        const [{ text }] = prompt[0].content as { text: string }[];
        return prompt.at(-1)?.role === 'tool' ? { text: 'Done.' } : { calls: [refund(text)] };
      };
      const tools = { refund: tool(execute) };
      const chat = await start(script, { tools, onInterrupted: 'report' }, { adapter: store.wrap(open()) });
      let reports = 0;
      const runTurn = async (kill?: Kill): Promise<number> => {
        const sessionId = await chat.app.session();
        if (kill) store.kill(sessionId, kill);
        const { id } = await chat.app.turns.execute('chat', sessionId, { sessionId });
        const messages: readonly AnyUIMessage[] = toUIMessages(await chat.app.adapter.conversations.page(sessionId));
        const call = { type: 'tool-refund', toolCallId: `refund-${sessionId}`, input: { id: sessionId } };
        const times = executed.get(sessionId) ?? 0;
        const part = messages[1].parts.find(({ type }) => type === 'tool-refund')!;
        if (part.state === 'output-available') {
          expect(part).toEqual({ ...call, state: 'output-available', output: 'refunded' });
          expect(times).toBe(1);
        } else {
          // Version 7 has the name of the error before it.
          const errorText = expect.stringContaining(INTERRUPTED) as unknown;
          expect(part).toEqual({ ...call, state: 'output-error', errorText });
          expect(times).toBeLessThanOrEqual(1);
          reports += 1;
        }
        const shown = await client7(toProtocol(await chat.chunks(id), 7).chunks);
        expect(comparable(shown)).toEqual(comparable(messages[1]));
        return store.writes(sessionId);
      };
      // Batches of events differ from run to run, and with them the number of writes.
      const writes = 4 + (await runTurn());
      const kills = Array.from({ length: 2 * writes }, (_, at) => ({ at: 1 + (at >> 1), isStored: at % 2 === 0 }));
      // Nor is the write of a call always the same one, so a round can miss the calls.
      for (let round = 0; round < 5 && reports < 2; round += 1) await Promise.all(kills.map(runTurn));
      expect(reports).toBeGreaterThanOrEqual(2);
    });

    it('AIS-05 counts the tokens of an answer once, although attempts fail', async () => {
      const answers = [{ calls: [find('7')] }, { text: 'It has shipped.' }];
      const options = { tools: { find: tool(() => 'shipped') } };
      const chat = await start(answers, options, { adapter: open(), after: (turn) => failUntil(3, turn) });
      const { usage } = await chat.send('Where is order 7?');
      expect(usage).toEqual({ promptTokens: 20, completionTokens: 4, totalTokens: 24 });
      expect(chat.asked).toHaveLength(2);
    });
  });

  describe('its prompt', () => {
    it('AIS-06 contains earlier turns with their calls and results', async () => {
      const answers = [{ calls: [find('7'), find('8')] }, { text: 'One has shipped.' }, { text: 'Bye.' }];
      const found = tool(({ id }) => {
        if (id === '8') throw new Error('There is no order 8.');
        return 'shipped';
      });
      const chat = await start(answers, { system: 'Be brief.', tools: { find: found } });
      await chat.send('Where are orders 7 and 8?');
      await chat.send('Thanks.');
      const error = version === 'ai 6' ? 'There is no order 8.' : 'Error: There is no order 8.';
      const before = [
        ['system', 'Be brief.'],
        ['user', ['Where are orders 7 and 8?']],
        ['assistant', ['find-7', 'find-8']],
        [
          'tool',
          [
            { type: 'text', value: 'shipped' },
            { type: 'error-text', value: error },
          ],
        ],
      ];
      expect(saidIn(chat.asked[1])).toEqual(before);
      expect(saidIn(chat.asked[2])).toEqual([...before, ['assistant', ['One has shipped.']], ['user', ['Thanks.']]]);
    });

    it('AIS-01 is what `messages` contains', async () => {
      const chat = await start([{ text: 'Yes.' }], { messages: [{ role: 'user', content: 'Is it so?' }] });
      await chat.send('hi');
      expect(saidIn(chat.asked[0])).toEqual([['user', ['Is it so?']]]);
    });

    it('AIS-01 AIS-03 may contain a summary that replaces earlier messages while the turn waits', async () => {
      const found: string[] = [];
      const begun = gate();
      const summary = gate();
      const summarize = async () => {
        begun.open();
        await summary.pass();
        return 'They said hello twice.';
      };
      const chat = await start(
        [{ text: 'Hello.' }, { text: 'Hello again.' }, { calls: [find('7'), refund('7')] }, { text: 'Done.' }],
        { tools: { refund: approvedTool(() => 'refunded'), find: tool(({ id }) => found.push(id)) } },
        { definition: { compaction: { afterTurns: 1, keep: 0, summarize } } },
      );
      await chat.send('Hello!');
      await chat.send('Hello?');
      await begun.pass();
      const id = await chat.submit('Refund order 7.');
      await waiting(chat, id);
      const isApplied = gate();
      chat.handle.on('compaction-applied', isApplied.open);
      summary.open();
      await isApplied.pass();
      await chat.app.turns.signal(id, approvalSignal('refund-7'), { approved: true });
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'Done.' });
      // The number of earlier messages is no part of the key of a call.
      expect(found).toEqual(['7']);
      expect(saidIn(chat.asked[2])).toHaveLength(5);
      expect(saidIn(chat.asked[3]).slice(0, 2)).toEqual([
        ['system', 'They said hello twice.'],
        ['user', ['Refund order 7.']],
      ]);
    });
  });

  describe('in an answer with approvals', () => {
    const answers = [{ text: 'One moment.', calls: [refund('7'), find('8'), refund('9')] }, { text: 'Done.' }];

    async function ask(chat: Chat): Promise<string> {
      const id = await chat.submit('Refund orders 7 and 9.');
      await waiting(chat, id);
      return id;
    }

    it('AIS-16 ends the response before it waits, and continues with the next one', async () => {
      const refunded: string[] = [];
      const chat = await start(answers, {
        tools: { refund: approvedTool(({ id }) => refunded.push(id)), find: tool(() => 'found') },
      });
      const id = await ask(chat);
      const stored = await chat.app.adapter.events.read(id, 0, 100);
      expect(stored.at(-1)?.data).toEqual({ type: 'finish', finishReason: 'tool-calls' });
      expect((await chat.app.turns.get(id))?.waitingFor).toMatchObject({
        signal: approvalSignal('refund-7'),
        others: [approvalSignal('refund-9')],
      });
      expect(refunded).toEqual([]);

      await chat.app.turns.signal(id, approvalSignal('refund-9'), { approved: false, reason: 'Too expensive.' });
      await chat.app.turns.signal(id, approvalSignal('refund-7'), { approved: true, reason: 'It was broken.' });
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'Done.' });
      expect(refunded).toEqual(['7']);
      expect(chat.asked).toHaveLength(2);
      expect(saidIn(chat.asked[1]).at(-1)).toEqual([
        'tool',
        expect.arrayContaining([
          { type: 'text', value: 'found' },
          { type: 'json', value: 1 },
          { type: 'execution-denied', reason: 'Too expensive.' },
        ]),
      ]);

      const message = (await storedMessage(chat)) as AnyUIMessage;
      expect(message.parts.filter(({ type }) => type.startsWith('tool-'))).toMatchObject([
        { state: 'output-available', approval: { id: 'refund-7', approved: true, reason: 'It was broken.' } },
        { state: 'output-available', output: 'found' },
        { state: 'output-denied', approval: { id: 'refund-9', approved: false, reason: 'Too expensive.' } },
      ]);
      const segments = segmentsOf(await chat.chunks(id));
      expect(segments).toHaveLength(2);
      expect(segments.map(([first]) => first)).toEqual([1, 2].map(() => ({ type: 'start', messageId: id })));
      expect(comparable(fold(segments.flat()))).toEqual(comparable(message));
      let shown: AnyUIMessage | undefined;
      for (const segment of segments) shown = await client7(toProtocol(segment, 7).chunks, shown);
      expect(comparable(shown as AnyUIMessage)).toEqual(comparable(message));
    });

    it('AIS-16 gives clients the same ids of approvals in every attempt', async () => {
      const chat = await start(
        answers,
        { tools: { refund: approvedTool(() => 'refunded'), find: tool(() => 'found') } },
        { after: (turn) => failUntil(2, turn) },
      );
      const id = await ask(chat);
      for (const call of ['refund-7', 'refund-9']) {
        await chat.app.turns.signal(id, approvalSignal(call), { approved: true });
      }
      await chat.app.turns.result(id);
      const requests = (await chat.chunks(id)).filter(({ type }) => type === 'tool-approval-request');
      expect(requests).toEqual(
        ['refund-7', 'refund-9'].map((call) => ({
          type: 'tool-approval-request',
          approvalId: call,
          toolCallId: call,
        })),
      );
    });

    it('AIS-16 asks the same in every attempt, whichever approved tool is faster', async () => {
      const isOver = gate();
      const refunded: string[] = [];
      const slow = approvedTool(async ({ id }) => {
        if (id === '7') await isOver.pass();
        else isOver.open();
        return refunded.push(id);
      });
      const chat = await start(
        answers,
        { tools: { refund: slow, find: tool(() => 'found') } },
        { after: (turn) => failUntil(3, turn) },
      );
      const id = await ask(chat);
      for (const call of ['refund-7', 'refund-9']) {
        await chat.app.turns.signal(id, approvalSignal(call), { approved: true });
      }
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'Done.' });
      expect(refunded).toEqual(['9', '7']);
      expect(chat.asked).toHaveLength(2);
    });

    it('AIS-16 waits again for approvals of a later step', async () => {
      const loop = [{ calls: [refund('7')] }, { calls: [find('8')] }, { calls: [refund('9')] }, { text: 'Done.' }];
      const chat = await start(loop, { tools: { refund: approvedTool(({ id }) => id), find: tool(() => 'found') } });
      const id = await ask(chat);
      await chat.app.turns.signal(id, approvalSignal('refund-7'), { approved: true });
      await eventually(async () => {
        return (await chat.app.turns.get(id))?.waitingFor?.signal === approvalSignal('refund-9');
      });
      await chat.app.turns.signal(id, approvalSignal('refund-9'), { approved: false });
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'Done.' });
      expect(chat.asked).toHaveLength(4);
      expect(saidIn(chat.asked[3]).slice(1)).toEqual([
        ['assistant', ['refund-7']],
        ['tool', [{ type: 'text', value: '7' }]],
        ['assistant', ['find-8']],
        ['tool', [{ type: 'text', value: 'found' }]],
        ['assistant', ['refund-9']],
        ['tool', [{ type: 'execution-denied' }]],
      ]);
      expect(segmentsOf(await chat.chunks(id))).toHaveLength(3);
    });

    if (version !== 'ai 6') {
      it('AIS-16 does not wait for approvals that the application decides', async () => {
        const toolApproval = ({ toolCall }: { toolCall: { toolCallId: string } }) =>
          toolCall.toolCallId === 'refund-9' ? { type: 'denied', reason: 'Never.' } : 'approved';
        const refunded: string[] = [];
        const chat = await start(
          [{ calls: [refund('7'), refund('9')] }, { text: 'Done.' }],
          { tools: { refund: tool(({ id }) => refunded.push(id)) }, ...({ toolApproval } as object) },
          { after: (turn) => failUntil(2, turn) },
        );
        const { id, reply } = await chat.send('Refund orders 7 and 9.');
        expect(reply).toBe('Done.');
        expect(refunded).toEqual(['7']);
        const message = (await storedMessage(chat)) as AnyUIMessage;
        expect(message.parts.filter(({ type }) => type.startsWith('tool-'))).toMatchObject([
          { state: 'output-available', approval: { id: 'refund-7', approved: true, isAutomatic: true } },
          { state: 'output-denied', approval: { id: 'refund-9', approved: false, isAutomatic: true } },
        ]);
        expect(comparable(await client7(await chat.chunks(id)))).toEqual(comparable(message));
      });

      it.each([
        ['of all tools', (decide: () => unknown) => decide],
        ['of a tool', (decide: () => unknown) => ({ refund: decide })],
      ])('AIS-16 keeps the first decision of the `toolApproval` %s', async (_, approvalOf) => {
        const decisions = ['user-approval', undefined, 'not-applicable', 'user-approval'];
        const decide = () => decisions.shift();
        const refunded: string[] = [];
        const chat = await start(
          [{ calls: [refund('7')] }, { calls: [refund('9')] }, { text: 'Done.' }],
          {
            tools: { refund: tool(({ id }) => refunded.push(id)) },
            ...({ toolApproval: approvalOf(decide) } as object),
          },
          { after: (turn) => failUntil(4, turn) },
        );
        const id = await ask(chat);
        await chat.app.turns.signal(id, approvalSignal('refund-7'), { approved: false });
        expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'Done.' });
        expect(refunded).toEqual(['9']);
        expect(decisions).toHaveLength(2);
      });
    }
  });

  describe('with a tool that only clients can run', () => {
    const ask = (id: string) => ({ id: `ask-${id}`, name: 'ask', input: { id } });
    const askTool = (options: object = {}) => sdk.tool({ inputSchema, ...options }) as ai6.Tool;

    async function waitingFor(chat: Chat, text: string): Promise<string> {
      const id = await chat.submit(text);
      await waiting(chat, id);
      return id;
    }

    it('AIS-16 waits for the output, which clients and the model get, in the same turn', async () => {
      const chat = await start(
        [{ calls: [find('7'), ask('1'), ask('2')] }, { text: 'It is in Paris.' }, { text: 'Bye.' }],
        {
          tools: { ask: askTool(), find: tool(() => 'found') },
        },
      );
      const id = await waitingFor(chat, 'Where is my order?');
      expect((await chat.app.adapter.events.read(id, 0, 100)).at(-1)?.data).toMatchObject({ type: 'finish' });
      expect((await chat.app.turns.get(id))?.waitingFor).toMatchObject({
        signal: toolOutputSignal('ask-1'),
        others: [toolOutputSignal('ask-2')],
      });
      await chat.app.turns.signal(id, toolOutputSignal('ask-2'), { errorText: 'No permission.' });
      await chat.app.turns.signal(id, toolOutputSignal('ask-1'), { output: { city: 'Paris' } });
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'It is in Paris.' });
      const results = [
        ['assistant', ['find-7', 'ask-1', 'ask-2']],
        [
          'tool',
          [
            { type: 'text', value: 'found' },
            { type: 'json', value: { city: 'Paris' } },
            { type: 'error-text', value: 'No permission.' },
          ],
        ],
      ];
      expect(saidIn(chat.asked[1]).slice(1)).toEqual(results);

      const message = (await storedMessage(chat)) as AnyUIMessage;
      expect(message.parts.filter(({ type }) => type.startsWith('tool-'))).toMatchObject([
        { state: 'output-available', output: 'found' },
        { state: 'output-available', input: { id: '1' }, output: { city: 'Paris' } },
        { state: 'output-error', input: { id: '2' }, errorText: 'No permission.' },
      ]);
      const segments = segmentsOf(await chat.chunks(id));
      expect(segments.map(([first]) => first)).toEqual([1, 2].map(() => ({ type: 'start', messageId: id })));
      expect(segments[1].slice(1, 3)).toEqual([
        { type: 'tool-output-available', toolCallId: 'ask-1', output: { city: 'Paris' } },
        { type: 'tool-output-error', toolCallId: 'ask-2', errorText: 'No permission.' },
      ]);
      for (const protocol of [6, 7] as const) {
        const client = protocol === 6 ? client6 : client7;
        let shown: AnyUIMessage | undefined;
        for (const segment of segments) shown = await client(toProtocol(segment, protocol).chunks, shown);
        expect(comparable(shown as AnyUIMessage)).toEqual(comparable(message));
      }

      await chat.send('Thanks.');
      expect(saidIn(chat.asked[2]).slice(1, 3)).toEqual(results);
    });

    it('AIS-16 gives the model what `toModelOutput` of the tool returns, in each attempt', async () => {
      const seen: unknown[] = [];
      const toModelOutput = ({ output, ...call }: { output: unknown }) => {
        seen.push({ ...call, output });
        return { type: 'text', value: `The city is ${String(output)}.` };
      };
      const chat = await start(
        [{ calls: [ask('1')] }, { text: 'It is in Paris.' }, { text: 'Bye.' }],
        { tools: { ask: askTool({ toModelOutput }) } },
        { after: (turn) => failUntil(3, turn) },
      );
      const id = await waitingFor(chat, 'Where is my order?');
      await chat.app.turns.signal(id, toolOutputSignal('ask-1'), { output: 'Paris' });
      await chat.app.turns.result(id);
      await chat.send('Thanks.');
      expect(chat.asked).toHaveLength(3);
      for (const asked of chat.asked.slice(1)) {
        expect(saidIn(asked)[2]).toEqual(['tool', [{ type: 'text', value: 'The city is Paris.' }]]);
      }
      expect(seen).toEqual(seen.map(() => ({ toolCallId: 'ask-1', input: { id: '1' }, output: 'Paris' })));
      expect((await chat.chunks(id)).filter(({ type }) => type === 'tool-output-available')).toHaveLength(1);
    });

    it('AIS-16 waits for outputs and approvals of a step together', async () => {
      const refunded: string[] = [];
      const chat = await start([{ calls: [refund('7'), ask('1')] }, { text: 'Done.' }], {
        tools: { ask: askTool(), refund: approvedTool(({ id }) => (refunded.push(id), 'refunded')) },
      });
      const id = await waitingFor(chat, 'Refund my order.');
      await chat.app.turns.signal(id, approvalSignal('refund-7'), { approved: true });
      await eventually(async () => {
        const { waitingFor } = (await chat.app.turns.get(id))!;
        return waitingFor?.signal === toolOutputSignal('ask-1') && !waitingFor.others;
      });
      expect(refunded).toEqual([]);
      await chat.app.turns.signal(id, toolOutputSignal('ask-1'), {});
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'Done.' });
      expect(refunded).toEqual(['7']);
      expect(saidIn(chat.asked[1]).at(-1)).toEqual([
        'tool',
        expect.arrayContaining([
          { type: 'json', value: null },
          { type: 'text', value: 'refunded' },
        ]),
      ]);
      const message = (await storedMessage(chat)) as AnyUIMessage;
      expect(comparable(fold(await chat.chunks(id)))).toEqual(comparable(message));
      expect(toolsOf(message)).toEqual(['tool-refund: output-available', 'tool-ask: output-available']);
    });

    it('AIS-16 does not wait for calls with an invalid input, which the model can correct', async () => {
      const invalid = { id: 'ask-0', name: 'ask', input: { city: 7 } };
      const chat = await start([{ calls: [invalid] }, { text: 'Sorry.' }], { tools: { ask: askTool() } });
      expect(await chat.send('Where is my order?')).toMatchObject({ reply: 'Sorry.' });
    });

    it('AIS-16 fails the turn if the signal has another payload', async () => {
      const chat = await start([{ calls: [ask('1')] }], { tools: { ask: askTool() } });
      const id = await waitingFor(chat, 'Where is my order?');
      await chat.app.turns.signal(id, toolOutputSignal('ask-1'), { errorText: 7 });
      const { failure } = await rejection(chat.app.turns.result(id), TurnFailedError);
      expect(failure).toMatchObject({ code: 'INVALID_INPUT' });
    });
  });

  describe('over several steps', () => {
    const again = (call: number) => ({ calls: [call % 3 === 0 ? refund(String(call)) : find(String(call))] });
    const tools = { refund: approvedTool(({ id }) => id), find: tool(({ id }) => id) };

    /** Approves everything. */
    async function run(chat: Chat): Promise<void> {
      const { turns } = chat.app;
      const id = await chat.submit('hi');
      for await (const { type, data } of turns.readEvents(id)) {
        if (type === 'waiting') await turns.signal(id, (data as { signals: string[] }).signals[0], { approved: true });
      }
      await turns.result(id);
    }

    it('AIS-01 ends an answer after 20 steps', async () => {
      const chat = await start(again, { tools });
      await run(chat);
      expect(chat.asked).toHaveLength(20);
    });

    it('AIS-01 shows `stopWhen` and `prepareStep` all steps of the answer, also those before a wait', async () => {
      const seen: number[][] = [];
      const chat = await start(again, {
        tools,
        stopWhen: [({ steps }) => steps.length === 8, sdk.stepCountIs(5)],
        prepareStep: ({ stepNumber, steps }) => (seen.push([stepNumber, steps.length]), {}),
      });
      await run(chat);
      expect(chat.asked).toHaveLength(5);
      expect(new Set(seen.map(String))).toEqual(new Set(['0,0', '1,1', '2,2', '3,3', '4,4']));
    });

    it('AIS-01 ends the answer if a step that waits is the last one, and runs the tools that the user approves', async () => {
      const refunded: string[] = [];
      const approved = approvedTool(({ id }) => (refunded.push(id), 'refunded'));
      const chat = await start(
        [{ text: 'One moment.', calls: [refund('7'), refund('9')] }],
        { tools: { refund: approved }, stopWhen: sdk.stepCountIs(1) },
        { after: (turn) => failUntil(3, turn) },
      );
      const id = await chat.submit('Refund orders 7 and 9.');
      await waiting(chat, id);
      await chat.app.turns.signal(id, approvalSignal('refund-7'), { approved: true });
      await chat.app.turns.signal(id, approvalSignal('refund-9'), { approved: false });
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'One moment.' });
      expect(refunded).toEqual(['7']);
      expect(chat.asked).toHaveLength(1);
      const message = (await storedMessage(chat)) as AnyUIMessage;
      expect(toolsOf(message)).toEqual(['tool-refund: output-available', 'tool-refund: output-denied']);
      const chunks = await chat.chunks(id);
      expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'tool-calls' });
      expect(comparable(fold(chunks))).toEqual(comparable(message));
      let shown: AnyUIMessage | undefined;
      for (const segment of segmentsOf(chunks)) shown = await client7(toProtocol(segment, 7).chunks, shown);
      expect(comparable(shown as AnyUIMessage)).toEqual(comparable(message));
    });

    it('AIS-01 ends an answer with the output of a tool that the client runs in its last step', async () => {
      const chat = await start(
        [{ calls: [find('7')] }, { calls: [{ id: 'ask-1', name: 'ask', input: { id: '1' } }] }],
        { tools: { ...tools, ask: sdk.tool({ inputSchema }) as ai6.Tool }, stopWhen: sdk.hasToolCall('ask') },
      );
      const id = await chat.submit('Where is my order?');
      await waiting(chat, id);
      await chat.app.turns.signal(id, toolOutputSignal('ask-1'), { output: 'Paris' });
      await chat.app.turns.result(id);
      expect(chat.asked).toHaveLength(2);
      const message = (await storedMessage(chat)) as AnyUIMessage;
      expect(toolsOf(message)).toEqual(['tool-find: output-available', 'tool-ask: output-available']);
      expect(comparable(fold(await chat.chunks(id)))).toEqual(comparable(message));
    });

    it('AIS-04 keeps the key of a durable model', async () => {
      const primary = scripted((call) => {
        if (call === 1) throw new Error('The model is down.');
        return call === 2 ? { calls: [refund('7')] } : { text: 'Done.' };
      });
      const fallback = scripted(() => ({ calls: [refund('7')] }));
      const chat = await startChat(async (turn) => {
        const model = durableModel(turn, fallback.model, { key: 'fallback' });
        return streamReplyWith(sdk, turn, { model: primary.model, tools }).catch((error: Error) => {
          if (error.message !== 'The model is down.') throw error;
          return streamReplyWith(sdk, turn, { model, tools });
        });
      });
      const id = await chat.submit('Refund order 7.');
      await waiting(chat, id);
      await chat.app.turns.signal(id, approvalSignal('refund-7'), { approved: true });
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'Done.' });
      expect([primary.asked.length, fallback.asked.length]).toEqual([3, 1]);
    });

    it('AIS-01 makes the models of `prepareStep` durable', async () => {
      const other = scripted(() => ({ text: 'From the other model.' }));
      const chat = await start(
        [{ calls: [find('7')] }],
        {
          tools,
          prepareStep: ({ stepNumber, model }) => ({ model: stepNumber === 0 ? model : other.model }),
        },
        { after: (turn) => failUntil(3, turn) },
      );
      expect(await chat.send('hi')).toMatchObject({ reply: 'From the other model.' });
      expect([chat.asked.length, other.asked.length]).toEqual([1, 1]);
    });
  });

  describe('if the answer of the model ends early', () => {
    const REASONS = ['length', 'content-filter', 'error', 'other'] as const;
    const cut = (unified: (typeof REASONS)[number], answer: Answer): Part[] => [
      ...partsOf(answer).slice(0, -1),
      { type: 'finish', finishReason: { unified, raw: unified }, usage: USAGE },
    ];
    const INTERRUPTED_CALL = { state: 'output-error', errorText: INTERRUPTED };

    it.each(REASONS)('AIS-16 does not wait for the output of a tool that the server runs: %s', async (reason) => {
      const found: string[] = [];
      const chat = await start(
        [cut(reason, { text: 'One moment.', calls: [find('7')] }), { text: 'Bye.' }],
        { tools: { find: tool(({ id }) => found.push(id)) } },
        { after: (turn) => failUntil(2, turn) },
      );
      const { id, reply } = await chat.send('Where is order 7?');
      expect(reply).toBe('One moment.');
      expect(found).toEqual([]);
      const message = (await storedMessage(chat)) as AnyUIMessage;
      expect(message.parts.at(-1)).toMatchObject({ type: 'tool-find', input: { id: '7' }, ...INTERRUPTED_CALL });
      const chunks = await chat.chunks(id);
      expect(comparable(await client6(toProtocol(chunks, 6).chunks))).toEqual(comparable(message));
      expect(comparable(await client7(toProtocol(chunks, 7).chunks))).toEqual(comparable(message));

      await chat.send('Thanks.');
      expect(saidIn(chat.asked[1]).slice(1, 3)).toEqual([
        ['assistant', ['One moment.', 'find-7']],
        ['tool', [{ type: 'error-text', value: INTERRUPTED }]],
      ]);
    });

    it('AIS-16 waits for the user, and gives the model an error for the calls that did not run', async () => {
      const ask = { id: 'ask-1', name: 'ask', input: { id: '1' } };
      const found: string[] = [];
      const chat = await start([cut('length', { calls: [find('8'), ask, refund('7')] }), { text: 'Done.' }], {
        tools: {
          find: tool(({ id }) => found.push(id)),
          ask: sdk.tool({ inputSchema }) as ai6.Tool,
          refund: approvedTool(() => 'refunded'),
        },
      });
      const id = await chat.submit('Refund order 7.');
      await waiting(chat, id);
      await chat.app.turns.signal(id, approvalSignal('refund-7'), { approved: true });
      await chat.app.turns.signal(id, toolOutputSignal('ask-1'), { output: 'Paris' });
      expect(await chat.app.turns.result(id)).toMatchObject({ reply: 'Done.' });
      expect(found).toEqual([]);
      expect(saidIn(chat.asked[1]).at(-1)).toEqual([
        'tool',
        expect.arrayContaining([
          { type: 'error-text', value: INTERRUPTED },
          { type: 'text', value: 'Paris' },
          { type: 'text', value: 'refunded' },
        ]),
      ]);
      const message = (await storedMessage(chat)) as AnyUIMessage;
      expect(message.parts.filter(({ type }) => type.startsWith('tool-'))).toMatchObject([
        INTERRUPTED_CALL,
        { state: 'output-available', output: 'Paris' },
        { state: 'output-available', output: 'refunded' },
      ]);
      expect(comparable(fold(await chat.chunks(id)))).toEqual(comparable(message));
    });

    if (version !== 'ai 6') {
      it('AIS-16 gives an error for a call that the application has approved', async () => {
        const toolApproval = { find: 'approved' };
        const chat = await start([cut('length', { calls: [find('7')] })], {
          tools: { find: tool(() => 'found') },
          ...({ toolApproval } as object),
        });
        await chat.send('Where is order 7?');
        expect((await storedMessage(chat))?.parts.at(-1)).toMatchObject(INTERRUPTED_CALL);
      });
    }
  });

  describe('if something fails', () => {
    it('AIS-14 ignores `streamRetries`, and continues in the next attempt', async () => {
      const cut: Part[] = [{ type: 'stream-start', warnings: [] }, ...textParts('Hello my friend.').slice(0, 3)];
      const answers = [
        [...cut, { type: 'error' as const, error: new Error('overloaded') }],
        { text: 'Hello my dear.' },
      ];
      const chat = await start(answers, { streamRetries: 2 } as object);
      expect(await chat.send('hi')).toMatchObject({ reply: 'Hello my dear.' });
      expect(chat.asked).toHaveLength(2);
    });

    it('AIS-14 gives a call the same repaired input in every attempt', async () => {
      const repaired: string[] = [];
      const found: string[] = [];
      const repair = ({ toolCall }: { toolCall: { toolCallId: string } }) => {
        repaired.push(toolCall.toolCallId);
        if (toolCall.toolCallId === 'find-8') throw new Error(`Repair ${repaired.length} failed.`);
        return Promise.resolve({ ...toolCall, input: JSON.stringify({ id: String(repaired.length) }) });
      };
      const chat = await start(
        [{ calls: [7, 8].map((id) => ({ id: `find-${id}`, name: 'find', input: { id } })) }, { text: 'Done.' }],
        { tools: { find: tool(({ id }) => found.push(id)) }, experimental_repairToolCall: repair as never },
        { after: (turn) => failUntil(3, turn) },
      );
      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(repaired).toEqual(['find-7', 'find-8']);
      expect(found).toEqual(['1']);
      expect(chat.asked).toHaveLength(2);
      expect(toolsOf((await storedMessage(chat)) as AnyUIMessage)).toEqual([
        'tool-find: output-available',
        'tool-find: output-error',
      ]);
    });

    it('AIS-14 writes no errors, and continues in the next attempt', async () => {
      const cut: Part[] = [{ type: 'stream-start', warnings: [] }, ...textParts('Hello my friend.').slice(0, 3)];
      const chat = await start((call) =>
        call === 1 ? [...cut, { type: 'error', error: new Error('overloaded') }] : { text: 'Hello my dear friend.' },
      );
      const { id, reply } = await chat.send('hi');
      expect(reply).toBe('Hello my dear friend.');
      const chunks = await chat.chunks(id);
      expect(chunks.filter(({ type }) => type === 'error' || type === 'ui-reset')).toEqual([]);
      expect(chunks.map(({ delta = '' }) => delta).join('')).toBe('Hello my dear friend.');
    });

    it('AIS-05 retries the turn, not the call, after the pause that the provider asks for', async () => {
      let attempt = 0;
      const chat = await start(
        (call) => {
          if (call > 1) return { text: 'Hello.' };
          const responseHeaders = { 'retry-after-ms': '300' };
          throw new sdk.APICallError({
            message: 'busy',
            url: '',
            requestBodyValues: {},
            statusCode: 429,
            responseHeaders,
          });
        },
        {},
        { after: (turn) => (attempt = turn.attempt) },
      );
      const startedAt = performance.now();
      await chat.send('hi');
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(299);
      expect(attempt).toBe(2);
    });

    it('AIS-01 fails the attempt if a timeout of the SDK ends the answer', async () => {
      let attempt = 0;
      const never = gate();
      const script: Script = (_, { prompt }) => {
        if (prompt.at(-1)?.role !== 'tool') return { text: 'One moment.', calls: [find('7')] };
        return attempt === 1 ? new ReadableStream<Part>({ pull: () => never.pass() }) : { text: 'Done.' };
      };
      const chat = await start(script, (turn) => {
        attempt = turn.attempt;
        return { tools: { find: tool(() => 'found') }, ...(attempt === 1 && { timeout: { stepMs: 100 } }) };
      });
      expect(await chat.send('hi')).toMatchObject({ reply: 'Done.' });
      expect(chat.asked).toHaveLength(3);
      never.open();
    });

    it('AIS-03 fails the turn with the permanent error of a tool', async () => {
      const closed = tool(() => {
        throw Object.assign(new Error('The account is closed.'), { permanent: true });
      });
      const chat = await start([{ calls: [find('7')] }], { tools: { find: closed } });
      const { failure } = await rejection(chat.send('hi'), TurnFailedError);
      expect(failure).toMatchObject({ message: 'The account is closed.' });
      expect(chat.asked).toHaveLength(1);
    });

    it('AIS-01 ends without an error chunk if the turn is cancelled', async () => {
      const written = gate();
      const aborted = gate();
      const answer: Script = (_, { abortSignal }) => {
        abortSignal?.addEventListener('abort', aborted.open);
        const parts: Part[] = [{ type: 'stream-start', warnings: [] }, ...textParts('Hello my friend.').slice(0, 3)];
        return new ReadableStream<Part>({
          pull: (controller) => {
            const part = parts.shift();
            if (part) return controller.enqueue(part);
            written.open();
            return new Promise(() => {});
          },
        });
      };
      const chat = await start(answer);
      const id = await chat.submit('hi');
      await written.pass();
      await eventually(async () => (await chat.app.adapter.events.last(id)) >= 5);
      await chat.app.turns.cancel(id);
      await rejection(chat.app.turns.result(id), TurnCancelledError);
      await aborted.pass();
      expect((await chat.chunks(id)).map(({ type, delta }) => delta ?? type)).toEqual([
        'start',
        'start-step',
        'text-start',
        'Hello ',
        'my ',
      ]);
    });
  });

  describe('with an orchestrator that iterates', () => {
    /** Accepts the second answer. */
    const definition = {
      iterate: true,
      maxIterations: 3,
      evaluate: (turn: TurnContext) =>
        turn.iteration === 1 ? { satisfied: true } : { satisfied: false, feedback: 'Be more precise.' },
    } as const;

    it('AIS-01 continues the message, and asks with the earlier answers and the feedback', async () => {
      const answers = [{ calls: [find('7')] }, { text: 'It has shipped.' }, { text: 'It has shipped today.' }];
      const chat = await start(answers, { tools: { find: tool(() => 'shipped') } }, { definition });
      const { id, reply } = await chat.send('Where is order 7?');
      expect(reply).toBe('It has shipped today.');
      expect(saidIn(chat.asked[2])).toEqual([
        ['user', ['Where is order 7?']],
        ['assistant', ['find-7']],
        ['tool', [{ type: 'text', value: 'shipped' }]],
        ['assistant', ['It has shipped.']],
        ['user', ['Be more precise.']],
      ]);
      const message = (await storedMessage(chat)) as AnyUIMessage;
      expect(message.parts.flatMap(({ text }) => text ?? [])).toEqual(['It has shipped.', 'It has shipped today.']);
      const chunks = await chat.chunks(id);
      expect(comparable(fold(chunks))).toEqual(comparable(message));
      expect(comparable(await client6(toProtocol(chunks, 6).chunks))).toEqual(comparable(message));
    });

    it('AIS-06 AIS-14 stores one message with the metadata of all iterations', async () => {
      const options = (turn: TurnContext): Options => ({
        messageMetadata: ({ part }) =>
          part.type === 'start' ? { last: turn.iteration, [`at${turn.iteration}`]: true } : undefined,
      });
      const chat = await start([{ text: 'It has shipped.' }, { text: 'It has shipped today.' }], options, {
        definition,
      });
      const { id } = await chat.send('Where is order 7?');
      const messages = toUIMessages(await chat.log());
      expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
      expect(messages[1]).toMatchObject({ id, metadata: { last: 1, at0: true, at1: true } });
      expect(comparable(fold(await chat.chunks(id)))).toEqual(comparable(messages[1]));
    });

    it('FIX-63 runs a tool again if a later iteration uses the id of a call again', async () => {
      const found: string[] = [];
      const answers = [
        { calls: [find('7')] },
        { text: 'Shipped.' },
        { calls: [find('7')] },
        { text: 'Shipped today.' },
      ];
      const options = { tools: { find: tool(({ id }) => found.push(id)) } };
      const chat = await start(answers, options, { definition, after: (turn) => failUntil(3, turn) });
      expect(await chat.send('Where is order 7?')).toMatchObject({ reply: 'Shipped today.' });
      expect(found).toEqual(['7', '7']);
    });

    it.each([0, 1])('AIS-14 continues after a failure in iteration %i with the same answer', async (failing) => {
      const answers = [{ text: 'It has shipped.' }, { text: 'It has shipped today.' }];
      const after = (turn: TurnContext) => turn.iteration === failing && failUntil(3, turn);
      const chat = await start(answers, {}, { definition, after });
      const { id } = await chat.send('Where is order 7?');
      expect(chat.asked).toHaveLength(2);
      const chunks = await chat.chunks(id);
      expect(chunks.filter(({ type }) => type === 'text-start')).toHaveLength(2);
      expect(comparable(fold(chunks))).toEqual(comparable((await storedMessage(chat)) as AnyUIMessage));
    });
  });

  it('AIS-01 rejects a second answer of the same turn in a parallel intent', async () => {
    const { model } = scripted(() => ({ text: 'Hello.' }));
    const answer = (turn: TurnContext) => streamReplyWith(sdk, turn, { model });
    const definition = { route: () => ['one', 'two'], intents: { one: answer, two: answer } };
    const chat = await startChat(answer, { definition });
    const { failure } = await rejection(chat.send('hi'), TurnFailedError);
    expect(failure).toMatchObject({ code: 'PARALLEL_ANSWERS' });
  });

  it('AIS-14 writes the answers of a handler one after the other', async () => {
    const { model, asked } = scripted((call) => ({ text: `Answer ${call}.` }));
    const chat = await startChat(async (turn) => {
      await streamReplyWith(sdk, turn, { model, system: 'First.' });
      const outcome = await streamReplyWith(sdk, turn, { model, system: 'Second.' });
      failUntil(2, turn);
      return outcome;
    });
    const { id } = await chat.send('hi');
    expect(asked).toHaveLength(2);
    const message = (await storedMessage(chat)) as AnyUIMessage;
    expect(message.parts.flatMap(({ text }) => text ?? [])).toEqual(['Answer 1.', 'Answer 2.']);
    expect(comparable(fold(await chat.chunks(id)))).toEqual(comparable(message));
  });

  it('AIS-14 writes data and metadata of the application into the same message', async () => {
    const chat = await start(
      [{ calls: [find('7')] }, { text: 'Done.' }],
      (turn) => ({
        tools: {
          find: tool(async () => {
            const ui = await uiStream(turn);
            for (const data of [1, 2]) await ui.write({ type: 'data-progress', id: 'p', data });
            return 'found';
          }),
        },
        messageMetadata: ({ part }) => (part.type === 'start' ? { attempt: turn.attempt } : undefined),
      }),
      { after: (turn) => failUntil(2, turn) },
    );
    const { id } = await chat.send('hi');
    const message = (await storedMessage(chat)) as AnyUIMessage;
    expect(message.metadata).toEqual({ attempt: 1 });
    expect(message.parts).toContainEqual({ type: 'data-progress', id: 'p', data: 2 });
    expect(comparable(fold(await chat.chunks(id)))).toEqual(comparable(message));
  });

  it.each([1, 2])('AIS-14 stores what the handler writes after the answer, in attempt %i', async (attempt) => {
    const suggestions = { type: 'data-suggestions', data: ['And order 9?'] };
    const suggest = async (turn: TurnContext) => {
      await (await uiStream(turn)).write(suggestions);
      failUntil(attempt, turn);
    };
    const chat = await start([{ text: 'It has shipped.' }], {}, { after: suggest });
    const { id } = await chat.send('hi');
    const message = (await storedMessage(chat)) as AnyUIMessage;
    expect(message.parts.slice(1)).toMatchObject([{ text: 'It has shipped.' }, suggestions]);
    expect(comparable(fold(await chat.chunks(id)))).toEqual(comparable(message));
  });

  it('AIS-14 stores the reply after a failed call as clients have it, wherever the worker is killed', async () => {
    const store = new KillableStores();
    const failed = new Set<string>();
    /** The second call of a turn fails once, after a part of its answer. */
    const model = scriptedModel(({ said, step }) => {
      if (step === 0) return { calls: [find('7')] };
      if (failed.has(said)) return 'It has shipped.';
      failed.add(said);
      return { text: 'It was ', error: new Error('The provider is down.') };
    });
    const answer = async (turn: TurnContext) => {
      await (await uiStream(turn)).write({ type: 'data-progress', id: 'p', data: 1 });
      const answered = streamReplyWith(sdk, turn, { model, tools: { find: tool(() => 'shipped') } });
      return answered.catch((error: Error) => {
        if (error.message !== 'The provider is down.') throw error;
        return replyWith('Sorry.');
      });
    };
    const chat = await startChat(answer, { adapter: store.wrap(memoryAdapter()) });
    const runTurn = async (kill?: Kill) => {
      const sessionId = await chat.app.session();
      if (kill) store.kill(sessionId, kill);
      const { id, reply } = await chat.app.turns.execute('chat', sessionId, { sessionId });
      const stored: readonly AnyUIMessage[] = toUIMessages(await chat.app.adapter.conversations.page(sessionId));
      const shown = await client7(toProtocol(await chat.chunks(id), 7).chunks);
      const [inPage, inStore] = [shown, stored[1]].map((message) => ({
        ...message,
        parts: message.parts.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : part)),
      }));
      expect(comparable(inStore)).toEqual(comparable(inPage));
      expect(inPage.parts[0]).toMatchObject({ type: 'data-progress' });
      return { reply, last: inPage.parts.at(-1)?.text, writes: store.writes(sessionId) };
    };
    const { writes, reply } = await runTurn();
    expect(reply).toBe('Sorry.');
    const kills = Array.from({ length: 2 * writes + 8 }, (_, at) => ({ at: 1 + (at >> 1), isStored: at % 2 === 0 }));
    const ends = await Promise.all(kills.map(runTurn));
    expect(ends.map(({ last }) => last)).toEqual(ends.map((end) => end.reply));
    expect(new Set(ends.map((end) => end.reply))).toEqual(new Set(['Sorry.', 'It has shipped.']));
  });

  it('AIS-01 writes dates in the input of a tool as JSON', async () => {
    const dated = { id: 'find-1', name: 'find', input: { since: '2026-11-25T00:00:00.000Z' } };
    const since: unknown[] = [];
    const dates = sdk.tool({
      inputSchema: z.object({ since: z.string().transform((text) => new Date(text)) }),
      execute: (input) => (since.push(input.since), input),
    });
    const chat = await start([{ calls: [dated] }, { text: 'Done.' }], { tools: { find: dates } });
    await chat.send('hi');
    expect(since).toEqual([new Date('2026-11-25')]);
    expect((await storedMessage(chat))?.parts[1]).toMatchObject({ input: dated.input, output: dated.input });
  });

  it('AIS-14 stores texts, inputs, outputs and files of any size', async () => {
    const large = 'Ä"😀'.repeat(10_000);
    const image = 'a'.repeat(200_000);
    const answer: Part[] = [
      { type: 'stream-start', warnings: [] },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: large },
      { type: 'text-end', id: 't' },
      {
        type: 'file',
        mediaType: 'image/png',
        data: version === 'ai 7' ? ({ type: 'data', data: image } as never) : image,
      },
      ...partsOf({ calls: [{ ...find('1'), input: { id: large } }] }).slice(2),
    ];
    const chat = await start(
      (call) => (call === 1 ? answer : { text: 'Done.' }),
      { tools: { find: tool(({ id }) => ({ found: id })) } },
      { after: (turn) => failUntil(2, turn) },
    );
    const { id } = await chat.send('hi');
    const message = (await storedMessage(chat)) as AnyUIMessage;
    expect(message.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'text', text: large },
      { type: 'file', mediaType: 'image/png', url: `data:image/png;base64,${image}` },
      { type: 'tool-find', input: { id: large }, output: { found: large } },
      { type: 'step-start' },
      { type: 'text', text: 'Done.' },
    ]);
    const chunks: UIChunk[] = await chat.chunks(id);
    expect(chunks.map(({ type }) => type).filter((type) => /file|output/.test(type))).toHaveLength(2);
    expect(comparable(fold(chunks))).toEqual(comparable(message));
  });
});
