import { jest } from '@jest/globals';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import { MockLanguageModelV4 } from '../ai-7/ai-test.js';
import { MockLanguageModelV3 } from 'ai/test';
import fc from 'fast-check';
import { type MessageDraft } from 'nestjs-agent-sessions';
import { z } from 'zod';
import { convertStored, fromModelMessages, toModelMessages } from '../../lib/ai-sdk/model-messages.js';
import { type ModelMessageLike, type ModelPart } from '../../lib/chat/stored-model-message.js';
import { fromUIMessage, toUIMessages } from '../../lib/chat/stored-messages.js';
import { type AnyUIMessage, type UIPart } from '../../lib/chat/ui-message.js';
import { interruptedResult } from '../../lib/ledger/interrupted-result.js';
import { toMessageDrafts } from '../../lib/conversation/message-draft.js';
import { MessageTokens } from '../../lib/conversation/message-tokens.js';
import { cutWindow, viewOf } from '../../lib/conversation/window.js';
import { completeCall, incompleteCall, logOf, uiMessages } from '../chat/arbitrary-messages.js';
import { type Exchange, exchanges } from '../chat/arbitrary-model-messages.js';

type ModelMessage = ai6.ModelMessage;

type Response7 = Pick<Awaited<ReturnType<typeof ai7.generateText>>, 'responseMessages'>;

/** Both versions by the types of ai 6, and what their models need. */
const VERSIONS = [
  { name: 'ai 6', version: 6, sdk: ai6, Model: MockLanguageModelV3 },
  {
    name: 'ai 7',
    version: 7,
    sdk: ai7 as unknown as typeof ai6,
    Model: MockLanguageModelV4 as unknown as typeof MockLanguageModelV3,
  },
] as const;

// The messages include deprecated parts, about which the SDK warns.
const settings = globalThis as { AI_SDK_LOG_WARNINGS?: false };
beforeAll(() => void (settings.AI_SDK_LOG_WARNINGS = false));
afterAll(() => void delete settings.AI_SDK_LOG_WARNINGS);

const next: MessageDraft = { role: 'user', content: 'And now?' };
const draftsOf = (messages: readonly ModelMessageLike[]): MessageDraft[] =>
  toMessageDrafts(fromModelMessages(messages as unknown as ModelMessage[]), 'messages');
const partsOf = (content: unknown): ModelPart[] => (typeof content === 'string' ? [] : (content as ModelPart[]));
const idsOf = (parts: readonly ModelPart[], type: string): unknown[] =>
  parts.flatMap((part) => (part.type === type ? [part.toolCallId ?? part.approvalId] : []));

/** Programs also store calls and results without the AI SDK. */
const nativeExchange = fc
  .tuple(fc.uniqueArray(fc.stringMatching(/^[a-z]{1,3}$/), { minLength: 1, maxLength: 3 }), fc.nat(3))
  .map(([ids, answered]): MessageDraft[] => [
    { role: 'assistant', content: null, toolCalls: ids.map((id) => ({ id, name: 'find', arguments: '{"order":7}' })) },
    ...ids.slice(0, answered).map((id): MessageDraft => ({ role: 'tool', toolCallId: id, content: `found ${id}` })),
  ]);

describe.each(VERSIONS)('stored messages for models of $name', ({ version, sdk, Model }) => {
  const convert = (messages: readonly MessageDraft[], options?: object): Promise<ModelMessage[]> =>
    convertStored(sdk.convertToModelMessages, messages, options);

  /** Asks a model, which rejects what the SDK rejects. Returns the prompt of the last call. */
  async function ask(messages: readonly ModelMessage[], tools?: ai6.ToolSet): Promise<unknown> {
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const model = new Model({
      supportedUrls: { '*/*': [/.*/] },
      doGenerate: { content: [], finishReason: { unified: 'stop', raw: 'stop' }, usage, warnings: [] } as never,
    });
    const request = { model, tools, messages: [...messages], allowSystemInMessages: true };
    await sdk.generateText(request);
    return model.doGenerateCalls.at(-1)?.prompt;
  }

  /** UI messages, model messages and others in one log. */
  const mixedLog = fc
    .array(
      fc.oneof(
        uiMessages(fc.oneof(completeCall, incompleteCall)).map((messages) => messages.map(fromUIMessage)),
        exchanges(version).map((all) => draftsOf(all.flat())),
        nativeExchange,
      ),
      { minLength: 1, maxLength: 3 },
    )
    .map((logs) => logOf(logs.flat()));

  it('AIS-06 converts UI messages like convertToModelMessages', async () => {
    await fc.assert(
      fc.asyncProperty(uiMessages(completeCall), async (messages) => {
        const expected = await sdk.convertToModelMessages(messages as ai6.UIMessage[]);
        expect(await convert(logOf(messages.map(fromUIMessage)))).toEqual(expected.filter(isAnswerable));
      }),
    );
  });

  it('AIS-06 restores model messages exactly', async () => {
    await fc.assert(
      fc.asyncProperty(exchanges(version), async (all) => {
        expect(await convert(logOf(draftsOf(all.flat())))).toEqual(all.flat());
      }),
    );
  });

  it('AIS-06 tests with model messages that the SDK accepts', async () => {
    await fc.assert(
      fc.asyncProperty(exchanges(version), async (all) => {
        const messages = [...all.flat(), { role: 'user' as const, content: 'And now?' }];
        z.array(sdk.modelMessageSchema).parse(messages);
        await ask(messages as ModelMessage[]);
      }),
    );
  });

  it('AIS-06 gives models no call without a result and no result without a call, wherever a window starts', async () => {
    await fc.assert(
      fc.asyncProperty(mixedLog, fc.nat(), async (log, from) => {
        const messages = await convert([...log.slice(from % log.length), next]);
        expectWholeCalls(messages);
        await ask(messages);
      }),
    );
  });

  it('AIS-06 removes only results whose call is before the window', async () => {
    await fc.assert(
      fc.asyncProperty(exchanges(version), fc.nat(), async (all, nth) => {
        const messages = all.flat();
        const window = messages.slice(nth % messages.length);
        expect(await convert(logOf(draftsOf(window)))).toEqual(withoutCutResults(window));
      }),
    );
  });

  it('AIS-06 keeps tool calls and results together in the windows of turns', async () => {
    const isOwn = (exchange: Exchange): boolean =>
      exchange.every(({ content }) => partsOf(content).every((part) => part.providerExecuted !== true));
    await fc.assert(
      fc.asyncProperty(exchanges(version), fc.nat(8), async (all, limit) => {
        const log = logOf(draftsOf(all.filter(isOwn).flat()));
        const window = cutWindow(limit, viewOf(log), new MessageTokens(null), 'historyWindow');
        expect(await convert(window)).toHaveLength(window.length);
      }),
    );
  });

  it('AIS-06 shows stored model messages as valid UI messages, with the results of their calls', async () => {
    await fc.assert(
      fc.asyncProperty(exchanges(version), async (all) => {
        const messages = toUIMessages<ai6.UIMessage>(logOf(draftsOf(withUniqueIds(all).flat())));
        await expect(sdk.validateUIMessages({ messages })).resolves.toEqual(messages);
        const states = messages.flatMap(({ parts }) => parts.filter(sdk.isToolUIPart).map(({ state }) => state));
        const outputs = all.flat().flatMap(({ content }) => partsOf(content).flatMap(({ output }) => output ?? []));
        expect(states.sort()).toEqual(outputs.map((output) => stateOf(output as ModelPart)).sort());
      }),
    );
  });

  it('AIS-06 restores the messages of a real response', async () => {
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const answer = (content: object[], unified: string): object => ({
      content,
      finishReason: { unified, raw: unified },
      usage,
      warnings: [],
    });
    const providerMetadata = { maker: { signature: 's' } };
    const reasoning = { type: 'reasoning', text: 'An order.', providerMetadata };
    const call = { type: 'tool-call', toolCallId: 'call-1', toolName: 'find', input: '{"day":"2026-11-25"}' };
    const model = new Model({
      doGenerate: [
        answer([reasoning, { type: 'text', text: 'Let me look.' }, call], 'tool-calls'),
        answer([{ type: 'text', text: 'It is on its way.' }], 'stop'),
      ] as never,
    });
    const find = sdk.tool({
      inputSchema: z.object({ day: z.string().transform((day) => new Date(day)) }),
      execute: () => ({ found: [7, 8] }),
      toModelOutput: () => ({
        type: 'content',
        value: [
          { type: 'text', text: 'found' },
          { type: 'image-data', data: 'AAAA', mediaType: 'image/png' },
        ],
      }),
    });
    const result = await sdk.generateText({
      model,
      prompt: 'Where is my order?',
      tools: { find },
      stopWhen: sdk.stepCountIs(2),
    });
    const messages = version === 6 ? result.response.messages : (result as unknown as Response7).responseMessages;
    const log = logOf(draftsOf(messages as unknown as ModelMessageLike[]));
    expect(log.map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant']);
    expect(await convert(log)).toEqual(messages);
    expect(JSON.stringify(await ask([...(await convert(log)), { role: 'user', content: 'Thanks.' }]))).toContain(
      'AAAA',
    );
  });

  describe('with a call that has no result', () => {
    const answered: UIPart = {
      type: 'tool-find',
      toolCallId: 'a',
      state: 'output-available',
      input: {},
      output: 'found',
    };
    const thought: UIPart = { type: 'reasoning', text: 'Another order.' };

    it.each([
      { state: 'input-streaming', input: { order: 8 } },
      { state: 'input-available', input: { order: 8 } },
      { state: 'approval-requested', input: { order: 8 }, approval: { id: 'ask' } },
      { state: 'output-available', input: { order: 8 }, output: 'half', preliminary: true },
    ])('AIS-06 removes the call and the reasoning that led to it ($state)', async (fields) => {
      const open: UIPart = { type: 'tool-find', toolCallId: 'b', ...fields };
      const assistant = (parts: UIPart[]): MessageDraft => fromUIMessage({ id: 'answer', role: 'assistant', parts });
      const callAndResult = await convert([assistant([answered])]);
      expect(callAndResult).toHaveLength(2);
      expect(await convert([assistant([answered, { type: 'step-start' }, thought, open]), next])).toEqual([
        ...callAndResult,
        next,
      ]);
      expect(await convert([assistant([answered, thought, open])])).toEqual(callAndResult);
    });

    it('AIS-06 removes a call of the provider, even if an earlier call with its id has a result', async () => {
      const ids = { toolCallId: 'a', toolName: 'search' };
      const call: ModelPart = { type: 'tool-call', ...ids, input: {}, providerExecuted: true };
      const result: ModelPart = { type: 'tool-result', ...ids, output: { type: 'text', value: 'found' } };
      const whole: ModelMessageLike = { role: 'assistant', content: [call, result] };
      expect(await convert(draftsOf([whole, { role: 'assistant', content: [call] }]))).toEqual([whole]);
    });

    it('AIS-06 removes an answer of nothing but reasoning, as it remains of a cancelled turn', async () => {
      expect(await convert([fromUIMessage({ id: 'answer', role: 'assistant', parts: [thought] }), next])).toEqual([
        next,
      ]);
    });
  });

  describe('with results of a tool that the client has run', () => {
    const call: UIPart = { type: 'tool-locate', toolCallId: 'a', state: 'input-available', input: {} };
    const log = (calling: MessageDraft, ...parts: UIPart[]): MessageDraft[] => [
      next,
      calling,
      { role: 'user', content: parts as unknown as MessageDraft['content'] },
    ];
    const byParts = fromUIMessage({ id: 'answer', role: 'assistant', parts: [call] });
    const byCalls: MessageDraft = {
      role: 'assistant',
      content: null,
      toolCalls: [{ id: 'a', name: 'locate', arguments: {} }],
    };

    it.each([
      { name: 'a UI message', calling: byParts },
      { name: 'a message with toolCalls', calling: byCalls },
    ])('FIX-60 gives models the result of a call of $name, then what the user has said', async ({ calling }) => {
      const text = { type: 'text', text: 'Is it far?' };
      const results = await convert(
        log(calling, { type: 'tool-result', toolCallId: 'a', output: { city: 'Rome' } }, text),
      );
      expect(results.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
      const ids = { type: 'tool-result', toolCallId: 'a', toolName: 'locate' };
      expect(results[2].content).toMatchObject([{ ...ids, output: { type: 'json', value: { city: 'Rome' } } }]);
      expect(results[3].content).toEqual([text]);
      expectWholeCalls(results);
      await ask(results);
      const failed = await convert(log(calling, { type: 'tool-result', toolCallId: 'a', errorText: 'No permission.' }));
      expect(failed).toHaveLength(3);
      expect(failed[2].content).toMatchObject([{ ...ids, output: { type: 'error-text', value: 'No permission.' } }]);
    });

    it('FIX-60 shows the result in the part of the call', () => {
      const shown = (part: UIPart): UIPart[][] => toUIMessages(log(byParts, part)).map(({ parts }) => [...parts]);
      const id = { type: 'tool-result', toolCallId: 'a' };
      expect(shown({ ...id, output: 'Rome' }).slice(1)).toEqual([
        [{ ...call, state: 'output-available', output: 'Rome' }],
      ]);
      const failure = { state: 'output-error', errorText: 'No.' };
      expect(shown({ ...id, errorText: 'No.' }).slice(1)).toEqual([[{ ...call, ...failure }]]);
    });

    it('FIX-60 gives models and pages an interrupted call as an error', async () => {
      const cut = interruptedResult({ id: 'a', name: 'locate' });
      const [, , result] = await convert([next, byParts, cut, next]);
      expect(result.content).toMatchObject([{ output: { type: 'error-text', value: cut.content } }]);
      expect(toUIMessages([next, byParts, cut])[1].parts).toMatchObject([
        { state: 'output-error', errorText: cut.content },
      ]);
    });
  });

  describe('with an answer to an approval', () => {
    const call: UIPart = { type: 'tool-refund', toolCallId: 'a', state: 'approval-responded', input: { order: 7 } };
    const answer = (approved: boolean): MessageDraft =>
      fromUIMessage({ id: 'answer', role: 'assistant', parts: [{ ...call, approval: { id: 'ask', approved } }] });

    it.each([true, false])(
      'AIS-06 lets the SDK run or deny the call if nothing follows (approved: %s)',
      async (approved) => {
        const execute = jest.fn(() => 'refunded');
        const refund = sdk.tool({ inputSchema: z.object({ order: z.number() }), execute, needsApproval: true });
        const prompt = await ask(await convert([next, answer(approved)]), { refund });
        expect(execute).toHaveBeenCalledTimes(approved ? 1 : 0);
        expect(JSON.stringify(prompt)).toContain(approved ? 'refunded' : 'execution-denied');
      },
    );

    it('AIS-06 removes the approved call if the user has written since', async () => {
      expect(await convert([answer(true), next])).toEqual([next]);
    });
  });

  it('AIS-06 passes outputs of UI messages, but not what models received, to toModelOutput', async () => {
    const toModelOutput = jest.fn(({ output }: { output: { order: number } }) => ({
      type: 'text',
      value: `order ${output.order}`,
    }));
    const tools = { find: sdk.tool({ inputSchema: z.object({}), toModelOutput } as never) };
    const part = { type: 'tool-find', toolCallId: 'a', state: 'output-available', input: {}, output: { order: 7 } };
    const log: MessageDraft[] = [
      fromUIMessage({ id: 'answer', role: 'assistant', parts: [part] }),
      { role: 'assistant', content: null, toolCalls: [{ id: 'b', name: 'find', arguments: '' }] },
      { role: 'tool', toolCallId: 'b', content: '{"order":8}' },
    ];
    const results = (await convert(log, { tools })).flatMap(({ role, content }) => (role === 'tool' ? content : []));
    expect(results).toMatchObject([
      { output: { value: 'order 7' } },
      { output: { type: 'text', value: '{"order":8}' } },
    ]);
    expect(toModelOutput).toHaveBeenCalledTimes(1);
  });

  it('AIS-06 gives data parts to models if the application converts them', async () => {
    const log = [fromUIMessage({ id: 'm1', role: 'user', parts: [{ type: 'data-place', data: 'Rome' }] })];
    const convertDataPart = ({ data }: UIPart): object => ({ type: 'text', text: data });
    expect(await convert(log)).toEqual([]);
    expect(await convert(log, { convertDataPart })).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Rome' }] },
    ]);
  });
});

describe('model messages', () => {
  it('AIS-06 are converted with the installed version of ai', async () => {
    const message: AnyUIMessage = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] };
    expect(await toModelMessages([fromUIMessage(message)])).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    ]);
  });

  it('AIS-06 are stored so that other readers of the log find text, calls and results', () => {
    const drafts = fromModelMessages([
      { role: 'user', content: 'Where is order 7?' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me look.' },
          { type: 'tool-call', toolCallId: 'a', toolName: 'find', input: { order: 7 } },
          { type: 'tool-call', toolCallId: 'b', toolName: 'search', input: {}, providerExecuted: true },
        ],
      },
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: 'a', toolName: 'find', output: { type: 'text', value: 'found' } }],
      },
    ]);
    expect(drafts).toEqual([
      { role: 'user', content: 'Where is order 7?' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me look.' },
          { type: 'tool-call', toolCallId: 'a' },
          { type: 'tool-call', toolCallId: 'b', toolName: 'search', input: {}, providerExecuted: true },
        ],
        toolCalls: [{ id: 'a', name: 'find', arguments: { order: 7 } }],
        metadata: { modelMessage: {} },
      },
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: 'a', toolName: 'find', output: { type: 'text', value: 'found' } }],
        toolCallId: 'a',
        metadata: { modelMessage: {} },
      },
    ]);
  });

  it('AIS-06 keep the bytes of every kind of buffer', async () => {
    const bytes = Uint8Array.of(1, 2, 3);
    const content = [Buffer.from(bytes), bytes.buffer, bytes].map((data) => ({ type: 'file', data, mediaType: 'a/b' }));
    const restored = await toModelMessages(logOf(draftsOf([{ role: 'user', content }])));
    expect(restored).toEqual([{ role: 'user', content: content.map((part) => ({ ...part, data: bytes })) }]);
  });

  it('AIS-06 with other values are rejected, with their path', () => {
    const output = { type: 'json', value: { when: new Map() } };
    const content = [{ type: 'tool-result', toolCallId: 'a', toolName: 'find', output }];
    expect(() => draftsOf([{ role: 'tool', content }])).toThrow('messages[0].content[0].output.value.when');
  });
});

/** Returns whether providers accept the message: it has content other than reasoning. */
function isAnswerable({ content }: ModelMessage): boolean {
  return typeof content === 'string' ? content !== '' : content.some(({ type }) => !type.startsWith('reasoning'));
}

/** Removes leading results of tools, and results of the provider whose call is missing. */
function withoutCutResults(window: Exchange): ModelMessageLike[] {
  const [first, ...rest] = window.slice(window.findIndex(({ role }) => role !== 'tool'));
  if (first.role === 'tool') return [];
  if (typeof first.content === 'string') return [first, ...rest];
  const calls = idsOf(first.content, 'tool-call');
  const content = first.content.filter(({ type, toolCallId }) => type !== 'tool-result' || calls.includes(toolCallId));
  return [{ ...first, content }, ...rest];
}

/** Checks what OpenAI, Anthropic and Google check. */
function expectWholeCalls(messages: readonly ModelMessage[]): void {
  const called = new Set<unknown>();
  for (const [index, { role, content }] of messages.entries()) {
    const parts = partsOf(content);
    expect(content).not.toHaveLength(0);
    if (role === 'tool') {
      const before = partsOf(messages.slice(0, index).findLast((message) => message.role !== 'tool')?.content ?? '');
      const directly = messages.slice(0, index).findLastIndex((message) => message.role !== 'tool');
      expect(messages[directly].role).toBe('assistant');
      expect(idsOf(before, 'tool-call')).toEqual(expect.arrayContaining(idsOf(parts, 'tool-result')));
      const requests = before.flatMap(({ type, approvalId }) => (type === 'tool-approval-request' ? [approvalId] : []));
      expect(requests).toEqual(expect.arrayContaining(idsOf(parts, 'tool-approval-response')));
      continue;
    }
    for (const id of idsOf(parts, 'tool-call')) called.add(id);
    for (const id of idsOf(parts, 'tool-result')) expect(called).toContain(id);
    const end = messages.findIndex((message, at) => at > index && message.role !== 'tool');
    const answers = messages
      .slice(index + 1, end === -1 ? undefined : end)
      .flatMap((message) => partsOf(message.content));
    const own = parts.filter(({ providerExecuted }) => providerExecuted !== true);
    expect(idsOf(answers, 'tool-result')).toEqual(expect.arrayContaining(idsOf(own, 'tool-call')));
    const later = messages.slice(index).flatMap((message) => partsOf(message.content));
    const decided = parts.filter(({ approvalId }) =>
      answers.some((part) => part.approvalId === approvalId && approvalId),
    );
    expect([...idsOf(later, 'tool-result'), ...idsOf(decided, 'tool-approval-request')]).toEqual(
      expect.arrayContaining(idsOf(parts, 'tool-call')),
    );
  }
}

/** Calls of different exchanges have different ids, as in one turn. */
function withUniqueIds(all: readonly Exchange[]): Exchange[] {
  return all.map((exchange, index) =>
    exchange.map(({ content, ...message }) => ({
      ...message,
      content:
        typeof content === 'string'
          ? content
          : content.map((part) => ({
              ...part,
              ...(part.toolCallId === undefined ? {} : { toolCallId: `${index}-${part.toolCallId as string}` }),
              ...(part.approvalId === undefined ? {} : { approvalId: `${index}-${part.approvalId as string}` }),
            })),
    })),
  );
}

function stateOf({ type }: ModelPart): string {
  if (type === 'execution-denied') return 'output-denied';
  return type.startsWith('error') ? 'output-error' : 'output-available';
}
