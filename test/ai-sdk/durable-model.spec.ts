import { getEventListeners } from 'node:events';
import { jest } from '@jest/globals';
import { InvalidInputError, memoryAdapter, type TurnContext, TurnFailedError } from 'nestjs-agent-sessions';
import { createOpenAICompatible as createModels6 } from '@ai-sdk/openai-compatible';
import type * as ai6 from 'ai';
import type * as ai7 from '../ai-7/ai.js';
import { createOpenAICompatible as createModels7 } from '../ai-7/openai-compatible.js';
import { z } from 'zod';
import { durableModel } from '../../lib/ai-sdk/durable-model.js';
import { gate, rejection, SAMPLED_STORES } from '../support/running-application.js';
import { failUntil, startDesk, withStepsAfter } from './fixtures/desk.js';
import { type Answer, type Part, partsOf, readAll, type Script, SDKS, textParts } from './fixtures/models.js';

const PROMPT = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Where are my orders?' }] }];

/** Two calls in parallel, then one, then the answer. */
const LOOP: readonly Answer[] = [
  {
    text: 'One moment.',
    calls: [
      { id: 'call-7', name: 'find', input: { id: '7' } },
      { id: 'call-8', name: 'find', input: { id: '8' } },
    ],
  },
  { calls: [{ id: 'call-9', name: 'find', input: { id: '9' } }] },
  { text: 'All have shipped.' },
];

describe.each(SDKS)('durableModel with $name', ({ sdk, scripted }) => {
  const found: string[] = [];
  const find = sdk.tool({
    inputSchema: z.object({ id: z.string() }),
    execute: ({ id }, { toolCallId }) => (found.push(toolCallId), `order ${id} has shipped`),
  });
  const options = { prompt: 'Where are my orders?', tools: { find }, stopWhen: sdk.stepCountIs(5), maxRetries: 0 };

  beforeEach(() => found.splice(0));
  afterEach(() => jest.restoreAllMocks());

  /** The ways to run a loop with this version of the SDK. */
  const LOOPS: Record<string, (model: Parameters<typeof sdk.generateText>[0]['model']) => Promise<string>> = {
    streamText: async (model) => {
      const result = sdk.streamText({ ...options, model, onError: () => {} });
      for await (const part of result.fullStream) if (part.type === 'error') throw part.error;
      return result.text;
    },
    generateText: async (model) => (await sdk.generateText({ ...options, model })).text,
    'ToolLoopAgent.stream': async (model) => {
      const agent = new sdk.ToolLoopAgent({ ...options, model });
      const result = await agent.stream({ prompt: options.prompt });
      for await (const part of result.fullStream) if (part.type === 'error') throw part.error;
      return result.text;
    },
    'ToolLoopAgent.generate': async (model) =>
      (await new sdk.ToolLoopAgent({ ...options, model }).generate({ prompt: options.prompt })).text,
  };

  describe.each(SAMPLED_STORES)('over $name', ({ open }) => {
    it.each(Object.entries(LOOPS))('AIS-01 asks only for answers that are not stored: %s', async (_, loop) => {
      // Agents print errors of the provider.
      jest.spyOn(console, 'error').mockImplementation(() => undefined);
      for (const failing of [1, 2, 3]) {
        const { model, asked } = scripted((call) => {
          if (call === failing) throw new Error('The provider fails.');
          return LOOP[call > failing ? call - 2 : call - 1];
        });
        const { run } = await startDesk(open());
        found.splice(0);
        const result = await run(async (turn) => {
          const text = await loop(durableModel(turn, model));
          // The third attempt has all answers.
          failUntil(3, turn);
          return text;
        });
        expect(result.reply).toBe('All have shipped.');
        expect(asked).toHaveLength(4);
        expect(new Set(found)).toEqual(new Set(['call-7', 'call-8', 'call-9']));
      }
    });
  });

  it.each([
    ['generateObject', false],
    ['Output.object of generateText', false],
    ['Output.object of streamText', true],
  ])('AIS-01 stores the answers of %s', async (name, isStream) => {
    const { model, asked } = scripted(() => ({ text: '{"city": "Lyon"}' }));
    const schema = z.object({ city: z.string() });
    const { run } = await startDesk();
    const result = await run(async (turn) => {
      const call = { model: durableModel(turn, model), prompt: 'Where?' };
      const output = sdk.Output.object({ schema });
      const { city } =
        name === 'generateObject'
          ? (await sdk.generateObject({ ...call, schema })).object
          : await (isStream ? sdk.streamText({ ...call, output }) : await sdk.generateText({ ...call, output })).output;
      failUntil(2, turn);
      return city;
    });
    expect(result.reply).toBe('Lyon');
    expect(asked).toHaveLength(1);
    expect(asked[0].responseFormat).toMatchObject({ type: 'json' });
  });

  it('AIS-01 streams each part when the provider sends it, before anything is stored', async () => {
    const parts = partsOf({ text: 'One two three' });
    const isRead = parts.map(() => gate());
    let sent = 0;
    const answer = new ReadableStream<Part>(
      {
        pull: async (controller) => {
          if (sent > 0) await isRead[sent - 1].pass();
          controller.enqueue(parts[sent]);
          sent += 1;
          if (sent === parts.length) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const { model } = scripted(() => answer);
    const stored: string[] = [];
    const { run } = await startDesk(withStepsAfter(memoryAdapter(), (name) => void stored.push(name)));
    await run(async (turn) => {
      const { stream } = await durableModel(turn, model).doStream({ prompt: PROMPT });
      const reader = stream.getReader();
      for (const [index, part] of parts.entries()) {
        if (part.type === 'finish') isRead[index].open();
        expect(await reader.read()).toEqual({ done: false, value: part });
        expect(stored).toHaveLength(part.type === 'finish' ? 1 : 0);
        isRead[index].open();
      }
      expect(await reader.read()).toEqual({ done: true, value: undefined });
      return '';
    });
  });

  // Node keeps a signal of `AbortSignal.any` in memory while it has listeners, and these listeners hold the answer.
  it.each([
    ['is complete', { text: 'One two three' }],
    ['fails', [{ type: 'error', error: new Error('The provider fails.') }] as const],
  ])('AIS-34 does not listen to the abort signal of an answer that %s', async (_, answer) => {
    const { model, asked } = scripted(() => answer);
    const { run } = await startDesk();
    await run(async (turn) => {
      const { stream } = await durableModel(turn, model).doStream({ prompt: PROMPT });
      expect(getEventListeners(asked[0].abortSignal!, 'abort')).toHaveLength(1);
      await readAll(stream).catch(() => undefined);
      expect(getEventListeners(asked[0].abortSignal!, 'abort')).toEqual([]);
      return '';
    });
  });

  it('AIS-01 reads from the provider no faster than its reader', async () => {
    let sent = 0;
    const answer = new ReadableStream<Part>(
      {
        pull: (controller) => {
          sent += 1;
          controller.enqueue(
            sent === 1 ? { type: 'text-start', id: '1' } : { type: 'text-delta', id: '1', delta: 'a' },
          );
        },
      },
      { highWaterMark: 0 },
    );
    const { model } = scripted(() => answer);
    const { run } = await startDesk();
    await run(async (turn) => {
      const { stream } = await durableModel(turn, model).doStream({ prompt: PROMPT });
      const reader = stream.getReader();
      await reader.read();
      await reader.read();
      await new Promise((resolve) => setImmediate(resolve));
      expect(sent).toBe(2);
      await reader.cancel();
      return '';
    });
  });

  it('AIS-02 holds everything from the first call of a client tool on until the answer is stored', async () => {
    const live: Part[] = [
      { type: 'stream-start', warnings: [] },
      ...textParts('Let me look.'),
      { type: 'reasoning-start', id: 'r' },
      { type: 'reasoning-delta', id: 'r', delta: 'hm' },
      { type: 'reasoning-end', id: 'r' },
      { type: 'source', sourceType: 'url', id: 's', url: 'https://example.org' },
      { type: 'file', mediaType: 'text/plain', data: 'aGk=' },
      { type: 'tool-input-start', id: 'p', toolName: 'search', providerExecuted: true },
      { type: 'tool-input-delta', id: 'p', delta: '{}' },
      { type: 'tool-input-end', id: 'p' },
      { type: 'tool-call', toolCallId: 'p', toolName: 'search', input: '{}', providerExecuted: true },
      { type: 'tool-result', toolCallId: 'p', toolName: 'search', result: { hits: 1 } },
    ];
    const held: Part[] = [
      { type: 'tool-input-start', id: 'c', toolName: 'find' },
      { type: 'tool-input-delta', id: 'c', delta: '{"id":' },
      { type: 'tool-input-delta', id: 'c', delta: '"7"}' },
      { type: 'tool-input-end', id: 'c' },
      { type: 'tool-call', toolCallId: 'c', toolName: 'find', input: '{"id":"7"}' },
      ...textParts('And more.', 'text-2'),
      ...partsOf({}).slice(-1),
    ];
    const { model } = scripted(() => [...live, ...held]);
    const storing = gate();
    const released = gate();
    const { run } = await startDesk(withStepsAfter(memoryAdapter(), () => (storing.open(), released.pass())));
    await run(async (turn) => {
      const { stream } = await durableModel(turn, model).doStream({ prompt: PROMPT });
      const reader = stream.getReader();
      for (const part of live) expect((await reader.read()).value).toEqual(part);
      let isOut = false;
      const next = reader.read().finally(() => (isOut = true));
      await storing.pass();
      await new Promise((resolve) => setImmediate(resolve));
      expect(isOut).toBe(false);
      released.open();
      expect((await next).value).toEqual(held[0]);
      reader.releaseLock();
      expect(await readAll(stream)).toEqual(held.slice(1));
      return '';
    });
  });

  it.each(['tool-call', 'tool-approval-request', 'finish'])('AIS-02 holds a %s without earlier parts', async (type) => {
    const first = {
      'tool-call': { type: 'tool-call', toolCallId: 'c', toolName: 'find', input: '{}' },
      'tool-approval-request': { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'c' },
      finish: partsOf({}).at(-1),
    }[type] as Part;
    const { model } = scripted(() => [first, ...partsOf({}).slice(-1)]);
    let isStored = false;
    const { run } = await startDesk(withStepsAfter(memoryAdapter(), () => void (isStored = true)));
    await run(async (turn) => {
      const { stream } = await durableModel(turn, model).doStream({ prompt: PROMPT });
      const { value } = await stream.getReader().read();
      expect(value).toEqual(first);
      expect(isStored).toBe(true);
      return '';
    });
  });

  it('AIS-02 runs the code that reads an answer outside of its step', async () => {
    const { model } = scripted((call) => LOOP[call - 1]);
    const { run } = await startDesk();
    const result = await run(async (turn) => {
      const { text } = sdk.streamText({
        ...options,
        model: durableModel(turn, model),
        // It is rejected inside of a step.
        tools: {
          find: sdk.tool({ ...find, execute: (_, { toolCallId: id }) => turn.tools.use('find', id, () => id) }),
        },
      });
      return text;
    });
    expect(result.reply).toBe('All have shipped.');
  });

  it('AIS-02 keeps an answer whose tool has failed the attempt', async () => {
    // A model that is asked again answers differently.
    const { model, asked } = scripted((call, { prompt }) =>
      prompt.at(-1)?.role === 'tool'
        ? { text: 'Done.' }
        : { text: `Answer ${call}.`, calls: [{ id: `call-${call}`, name: 'find', input: { id: '7' } }] },
    );
    const ids: string[] = [];
    const { run } = await startDesk();
    const result = await run(async (turn) => {
      const crashing = sdk.tool({
        inputSchema: z.object({ id: z.string() }),
        execute: (_, { toolCallId }) => {
          ids.push(toolCallId);
          failUntil(3, turn);
          return 'shipped';
        },
      });
      const result = sdk.streamText({
        ...options,
        tools: { find: crashing },
        model: durableModel(turn, model),
      });
      for await (const part of result.fullStream) if (part.type === 'tool-error') throw part.error;
      return result.text;
    });
    expect(result.reply).toBe('Done.');
    expect(ids).toEqual(['call-1', 'call-1', 'call-1']);
    expect(asked).toHaveLength(2);
  });

  it('AIS-02 rejects a stored answer to another prompt', async () => {
    const { model, asked } = scripted(() => ({ text: 'Noon.' }));
    const { run, app } = await startDesk();
    let attempts = 0;
    const failure = await rejection(
      run(async (turn) => {
        attempts += 1;
        const prompt = `It is ${turn.attempt} o'clock.`;
        const { text } = await sdk.generateText({ model: durableModel(turn, model, { key: 'clock' }), prompt });
        failUntil(2, turn);
        return text;
      }),
      TurnFailedError,
    );
    expect(failure.failure).toMatchObject({ name: 'AnswerError', code: 'MODEL_PROMPT_MISMATCH' });
    expect(failure.failure?.message).toMatch(/^Call 1 of the durable model with key "clock" .* in: messages\. /);
    expect((await app.turns.get(failure.turnId))?.error?.details).toMatchObject({
      key: 'clock',
      call: 1,
      differences: ['messages'],
    });
    // Not permanent, see the next test.
    expect(attempts).toBe(10);
    expect(asked).toHaveLength(1);
  });

  it('AIS-02 continues when a later attempt sends the stored prompt again', async () => {
    const { model, asked } = scripted(() => ({ text: 'Hello.' }));
    const { run } = await startDesk();
    const result = await run(async (turn) => {
      const prompt = turn.attempt === 2 ? 'The prompt of a newer worker' : 'Hi';
      const { text } = await sdk.generateText({ model: durableModel(turn, model), prompt });
      failUntil(2, turn);
      return `${text} ${turn.attempt}`;
    });
    expect(result.reply).toBe('Hello. 3');
    expect(asked).toHaveLength(1);
  });

  const call = {
    prompt: PROMPT,
    tools: ['find', 'pay'].map((name) => ({ type: 'function' as const, name, inputSchema: {}, description: 'a' })),
  };

  it.each([
    ['a sampling setting', { ...call, temperature: 1 }, null],
    ['headers', { ...call, headers: { a: 'b' } }, null],
    ['provider options', { ...call, providerOptions: { scripted: { effort: 'low' } } }, null],
    ['the description of a tool', { ...call, tools: call.tools.map((tool) => ({ ...tool, description: 'b' })) }, null],
    ['the order of tools', { ...call, tools: call.tools.toReversed() }, null],
    ['the name of a tool', { ...call, tools: [call.tools[0], { ...call.tools[1], name: 'seek' }] }, 'tools'],
    ['another tool', { ...call, tools: [call.tools[0]] }, 'tools'],
    [
      'the input of a tool',
      { ...call, tools: [call.tools[0], { ...call.tools[1], inputSchema: { type: 'object' as const } }] },
      'tools',
    ],
    ['the choice of tools', { ...call, toolChoice: { type: 'none' as const } }, 'toolChoice'],
    ['the response format', { ...call, responseFormat: { type: 'json' as const } }, 'responseFormat'],
  ])('AIS-02 compares what decides an answer: %s', async (_, changed, difference) => {
    const { model } = scripted(() => ({ text: 'Hello.' }));
    const { run } = await startDesk();
    const errors: unknown[] = [];
    await run(async (turn) => {
      const answered = durableModel(turn, model).doGenerate(turn.attempt === 1 ? call : changed);
      errors.push(
        await Promise.resolve(answered).then(
          () => null,
          (error: unknown) => error,
        ),
      );
      failUntil(2, turn);
      return '';
    });
    expect(errors).toEqual([null, difference && expect.objectContaining({ differences: [difference] })]);
  });

  it('AIS-02 does not replay a streamed answer for a call that does not stream', async () => {
    const { model } = scripted(() => ({ text: 'Hello.' }));
    const { run } = await startDesk();
    await run(async (turn) => {
      const durable = durableModel(turn, model);
      if (turn.attempt === 1) await readAll((await durable.doStream(call)).stream);
      failUntil(2, turn);
      await expect(durable.doGenerate(call)).rejects.toMatchObject({ differences: ['method'] });
      return '';
    });
  });

  describe('a replayed answer', () => {
    /** Streams an answer in the first attempt, and again from the store in the second. */
    async function streamTwice(script: Script): Promise<readonly (readonly Part[])[]> {
      const { model } = scripted(script);
      const { run } = await startDesk();
      const streamed: Part[][] = [];
      await run(async (turn) => {
        streamed.push(await readAll((await durableModel(turn, model).doStream({ prompt: PROMPT })).stream));
        failUntil(2, turn);
        return '';
      });
      return streamed;
    }

    it('AIS-01 has the parts of the live one: dates, bytes, URLs and metadata', async () => {
      const parts = [
        { type: 'stream-start', warnings: [{ type: 'other', message: 'Careful.' }] },
        { type: 'response-metadata', id: 'r', modelId: 'm', timestamp: new Date('2026-11-25T08:00:00.123Z') },
        { type: 'text-start', id: '1', providerMetadata: { scripted: { itemId: 'msg-1', none: null } } },
        { type: 'text-delta', id: '1', delta: 'Hi', providerMetadata: { scripted: { signature: 'a' } } },
        { type: 'text-end', id: '1' },
        { type: 'file', mediaType: 'image/png', data: new Uint8Array([0, 127, 255]) },
        {
          type: 'reasoning-file',
          mediaType: 'image/png',
          data: { type: 'url', url: new URL('https://example.org/a?b') },
        },
        { type: 'custom', kind: 'scripted.thing', providerMetadata: { scripted: { $type: 'x', constructor: 'y' } } },
        {
          type: 'finish',
          finishReason: { unified: 'stop', raw: 'end' },
          usage: { inputTokens: { total: 1 }, outputTokens: { total: NaN }, raw: { cost: 0.1 } },
          providerMetadata: { scripted: { tier: 'default' } },
        },
      ] as Part[];
      const [live, replayed] = await streamTwice(() => parts);
      expect(live).toEqual(parts);
      expect(replayed).toEqual(parts);
    });

    it('AIS-01 has one delta for the consecutive deltas of a block, and no raw parts', async () => {
      const parts = (raw: Part[], a: Part[], b: Part[]): Part[] => [
        { type: 'text-start', id: 'a' },
        ...a,
        ...raw,
        { type: 'text-start', id: 'b' },
        ...b,
        ...textParts('One two').slice(0, 1),
        ...partsOf({}).slice(-1),
      ];
      const delta = (id: string, text: string): Part => ({ type: 'text-delta', id, delta: text });
      const raw: Part = { type: 'raw', rawValue: { a: 1 } };
      const sent = parts(
        [raw],
        [delta('a', '1'), raw, delta('a', '2')],
        [delta('b', '3'), delta('a', '4'), delta('a', '5')],
      );
      const [live, replayed] = await streamTwice(() => sent);
      expect(live).toEqual(sent);
      expect(replayed).toEqual(parts([], [delta('a', '12')], [delta('b', '3'), delta('a', '45')]));
    });

    it('AIS-01 keeps the metadata of a delta, and deltas that an event can contain', async () => {
      const signed = (delta: string): Part => ({
        type: 'reasoning-delta',
        id: 'r',
        delta,
        providerMetadata: { scripted: { signature: 's' } },
      });
      const long = (delta: string): Part => ({ type: 'reasoning-delta', id: 'r', delta: delta.repeat(5000) });
      const sent = [signed('a'), signed('b'), long('c'), long('d'), ...partsOf({}).slice(-1)];
      const [, replayed] = await streamTwice(() => sent);
      expect(replayed).toEqual([signed('ab'), long('c'), long('d'), ...partsOf({}).slice(-1)]);
    });

    it('AIS-01 has the result of doGenerate without headers and bodies', async () => {
      const { model } = scripted(() => LOOP[0]);
      const { run } = await startDesk();
      const results: object[] = [];
      await run(async (turn) => {
        results.push(await durableModel(turn, model).doGenerate({ prompt: PROMPT }));
        failUntil(2, turn);
        return '';
      });
      const bare = await model.doGenerate({ prompt: PROMPT });
      const { request: _, response: { headers: _h, body: _b, ...response } = {}, ...rest } = bare;
      expect(results).toEqual([bare, { ...rest, response }]);
    });
  });

  it('AIS-01 passes on what a model is', async () => {
    const { model } = scripted(() => ({}));
    const { run } = await startDesk();
    await run(async (turn) => {
      const durable = durableModel(turn, model);
      expect(durable.specificationVersion).toBe(model.specificationVersion);
      expect(durable).toMatchObject({ provider: 'mock-provider', modelId: 'mock-model-id' });
      expect(await durable.supportedUrls).toEqual({});
      return '';
    });
  });
});

describe('durableModel', () => {
  // Compiled only: all models are accepted, and the SDK accepts what is returned.
  void ((
    turn: TurnContext<{ count: number }>,
    model6: Exclude<ai6.LanguageModel, string>,
    model7: Exclude<ai7.LanguageModel, string>,
  ): [ai6.LanguageModel, ai7.LanguageModel][] => [
    [durableModel(turn, model6), durableModel(turn, model7)],
    [
      durableModel(turn, createModels6({ name: 'a', baseURL: 'b' })('c')),
      durableModel(turn, createModels7({ name: 'a', baseURL: 'b' })('c')),
    ],
  ]);

  const turn = { signal: new AbortController().signal } as TurnContext;

  it.each([
    [
      'openai/gpt-5',
      'Received: the string "openai/gpt-5". Pass a model instead of its id, for example gateway("openai/gpt-5").',
    ],
    [undefined, 'Received: undefined.'],
    [{ specificationVersion: 'v1' }, 'Received: an object with `specificationVersion` "v1".'],
    [{ specificationVersion: 'v3', doStream: () => {} }, 'Received: an object with `specificationVersion` "v3".'],
  ])('AIS-01 rejects %p, which is not a model', (model, message) => {
    expect(() => durableModel(turn, model as never)).toThrow(InvalidInputError);
    expect(() => durableModel(turn, model as never)).toThrow(message);
  });

  it.each([[{ key: '' }], [{ key: 7 }], [{ kex: 'a' }], ['a']])('AIS-01 rejects the options %p', (options) => {
    const { model } = SDKS[0].scripted(() => ({}));
    expect(() => durableModel(turn, model, options as never)).toThrow(InvalidInputError);
  });
});
