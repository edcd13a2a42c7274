import { createOpenAICompatible as createModels6 } from '@ai-sdk/openai-compatible';
import { type LanguageModelV2, type LanguageModelV3 } from '@ai-sdk/provider';
import { createOpenAICompatible as createModels7 } from '../ai-7/openai-compatible.js';
import { defineOrchestrator, memoryAdapter, TokenBudgetExceededError, TurnCancelledError } from 'nestjs-agent-sessions';
import { z } from 'zod';
import { durableModel } from '../../lib/ai-sdk/durable-model.js';
import { eventually } from '../support/eventually.js';
import { gate, rejection, startApplication } from '../support/running-application.js';
import { inOrder, startProvider } from '../support/scripted-provider.js';
import { failUntil, startDesk, withStepsAfter } from './fixtures/desk.js';
import { type ModelOptions, type Part, partsOf, readAll, SDKS } from './fixtures/models.js';

const PROMPT = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }];
const CALLS = [{ id: 'call-7', name: 'find', input: { id: '7' } }];

/** An answer that begins and never ends. It breaks when the request is aborted. */
function endless({ abortSignal }: ModelOptions): ReadableStream<Part> {
  return new ReadableStream<Part>({
    start: (controller) => {
      for (const part of partsOf({ text: 'One two' }).slice(0, 4)) controller.enqueue(part);
      abortSignal?.addEventListener('abort', () => controller.error(abortSignal.reason));
    },
  });
}

describe.each(SDKS)('durableModel and its provider with $name', ({ name: version, sdk, scripted }) => {
  const find = sdk.tool({ inputSchema: z.object({ id: z.string() }), execute: () => 'shipped' });
  const options = { prompt: 'Hi', tools: { find }, stopWhen: sdk.stepCountIs(5), maxRetries: 0, onError: () => {} };

  describe('tokens', () => {
    it.each([true, false])('AIS-05 counts the tokens of each call once, streamed: %s', async (isStream) => {
      const { model } = scripted((call) => (call === 1 ? { calls: CALLS } : { text: 'Done.' }));
      const { run } = await startDesk();
      const result = await run(async (turn) => {
        const call = { ...options, model: durableModel(turn, model) };
        await (isStream ? sdk.streamText(call).text : sdk.generateText(call));
        failUntil(4, turn);
        return '';
      });
      expect(result.usage).toMatchObject({ promptTokens: 20, completionTokens: 4, totalTokens: 24 });
    });

    it('AIS-05 counts the tokens of a loop inside a tool call', async () => {
      const { model } = scripted(() => ({ text: 'Done.' }));
      const { run } = await startDesk();
      const result = await run((turn) =>
        turn.tools.use('ask', '1', async () => {
          const { text } = await sdk.generateText({ ...options, model: durableModel(turn, model) });
          failUntil(3, turn);
          return text;
        }),
      );
      expect(result).toMatchObject({ reply: 'Done.', usage: { totalTokens: 12 } });
    });

    it('AIS-05 does not ask the provider when the budget is used up', async () => {
      const { model, asked } = scripted((call) => ({ calls: [{ ...CALLS[0], id: `call-${call}` }] }));
      const desk = defineOrchestrator({
        name: 'desk',
        tokenBudget: 20,
        intents: {
          answer: async (turn) => {
            await sdk.generateText({ ...options, model: durableModel(turn, model) });
          },
        },
      });
      const app = await startApplication({ orchestrators: [desk], turns: { retry: { attempts: 1 } } });
      await rejection(app.turns.execute('desk', 'hi', { sessionId: await app.session() }), TokenBudgetExceededError);
      expect(asked).toHaveLength(2);
    });
  });

  describe('a broken answer', () => {
    const parts = partsOf({ text: 'One two', calls: CALLS });
    const failure = new Error('The provider fails.');

    it.each([
      [
        'has an error part',
        () => [...parts.slice(0, 4), { type: 'error', error: failure }, ...parts.slice(4)],
        failure.message,
      ],
      [
        'has an error part after a call',
        () => [...parts.slice(0, -1), { type: 'error', error: failure }],
        failure.message,
      ],
      ['ends without a finish part', () => parts.slice(0, -1), 'The answer of the model was cut off'],
      [
        'was interrupted',
        () => [...parts.slice(0, -1), { ...parts.at(-1), finishReason: { unified: 'interrupted' } }],
        'The answer of the model was cut off',
      ],
      [
        'breaks',
        () => {
          const rest = parts.slice(0, 4);
          return new ReadableStream<Part>({
            pull: (controller) => {
              const part = rest.shift();
              if (part) controller.enqueue(part);
              else controller.error(failure);
            },
          });
        },
        failure.message,
      ],
    ] as [string, () => Part[], string][])(
      'AIS-05 fails the call and is not stored if it %s',
      async (_, broken, message) => {
        const { model, asked } = scripted((call) => {
          if (call <= 2) return broken();
          return call === 3 ? { calls: CALLS } : { text: 'Done.' };
        });
        const seen: string[] = [];
        const errors: string[] = [];
        const { run } = await startDesk();
        const result = await run(async (turn) => {
          const { text } = sdk.streamText({
            ...options,
            model: durableModel(turn, model),
            onChunk: ({ chunk }) => void (turn.attempt < 3 && seen.push(chunk.type)),
            onError: ({ error }) => void errors.push((error as Error).message),
          });
          return text;
        });
        expect(result.reply).toBe('Done.');
        expect(asked).toHaveLength(4);
        // No reader has seen a tool call of it.
        expect(seen.filter((type) => type.startsWith('tool'))).toEqual([]);
        expect(errors).toHaveLength(2);
        for (const error of errors) expect(error).toContain(message);
      },
    );

    it('AIS-05 ends with an error part, and then breaks', async () => {
      const { model } = scripted(() => [...parts.slice(0, 3), { type: 'error', error: failure }]);
      const { run } = await startDesk();
      await run(async (turn) => {
        const { stream } = await durableModel(turn, model).doStream({ prompt: PROMPT });
        const reader = stream.getReader();
        for (const part of parts.slice(0, 3)) expect((await reader.read()).value).toEqual(part);
        expect((await reader.read()).value).toEqual({ type: 'error', error: failure });
        await expect(reader.read()).rejects.toBe(failure);
        return '';
      });
    });
  });

  describe('an error of the provider', () => {
    it.each([true, false])('AIS-05 keeps its retry-after, streamed: %s', async (isStream) => {
      const { model } = scripted(() => {
        throw new sdk.APICallError({
          message: 'too many requests',
          url: 'https://example.org',
          requestBodyValues: {},
          statusCode: 429,
          responseHeaders: { 'retry-after': '7' },
        });
      });
      const { run } = await startDesk();
      await run(async (turn) => {
        const durable = durableModel(turn, model);
        const asking = isStream ? durable.doStream({ prompt: PROMPT }) : durable.doGenerate({ prompt: PROMPT });
        await expect(asking).rejects.toMatchObject({ name: 'AI_APICallError', retryAfterMs: 7000 });
        return '';
      });
    });
  });

  describe('an abort', () => {
    it.each([true, false])('AIS-05 of the turn aborts the request, streamed: %s', async (isStream) => {
      const requested = gate();
      const { model, asked } = scripted((_, request) => {
        requested.open();
        if (isStream) return endless(request);
        return new Promise((_, reject) => {
          request.abortSignal?.addEventListener('abort', () => reject(new Error('aborted')));
        });
      });
      const stored: string[] = [];
      const { app, run } = await startDesk(withStepsAfter(memoryAdapter(), (name) => void stored.push(name)));
      const turnId = gate();
      let id = '';
      const result = run(async (turn) => {
        id = turn.id;
        turnId.open();
        const durable = durableModel(turn, model);
        if (isStream) await readAll((await durable.doStream({ prompt: PROMPT })).stream);
        else await durable.doGenerate({ prompt: PROMPT });
        return '';
      });
      await Promise.all([turnId.pass(), requested.pass()]);
      const cancelled = rejection(result, TurnCancelledError);
      await app.turns.cancel(id);
      await cancelled;
      expect(asked[0].abortSignal?.aborted).toBe(true);
      expect(stored).toEqual([]);
    });

    it('AIS-05 of the call fails it, although the provider ignores it', async () => {
      const { model, asked } = scripted((call) => {
        if (call > 1) return { text: 'Done.' };
        return new ReadableStream<Part>({ start: (controller) => controller.enqueue(partsOf({})[0]) });
      });
      const { run } = await startDesk();
      const result = await run(async (turn) => {
        const durable = durableModel(turn, model);
        const abort = new AbortController();
        const { stream } = await durable.doStream({ prompt: PROMPT, abortSignal: abort.signal });
        const reader = stream.getReader();
        await reader.read();
        const next = reader.read();
        const reason = new Error('The user has left.');
        abort.abort(reason);
        await expect(next).rejects.toBe(reason);
        const { text } = await sdk.generateText({ ...options, model: durable });
        return text;
      });
      expect(result.reply).toBe('Done.');
      expect(asked).toHaveLength(2);
    });

    it('AIS-05 by the reader of the stream aborts the request', async () => {
      const { model, asked } = scripted((_, request) => endless(request));
      let isStored = false;
      const storeLate = async () => {
        await new Promise((resolve) => setImmediate(resolve));
        isStored = true;
      };
      const { run } = await startDesk(withStepsAfter(memoryAdapter(), storeLate));
      await run(async (turn) => {
        const { stream } = await durableModel(turn, model).doStream({ prompt: PROMPT });
        const reader = stream.getReader();
        await reader.read();
        const reason = new Error('The user has left.');
        await reader.cancel(reason);
        expect(asked[0].abortSignal?.reason).toBe(reason);
        // The step is over, so that another call does not run in parallel.
        expect(isStored).toBe(true);
        return '';
      });
    });

    it('AIS-05 of the turn ends the stream of the SDK', async () => {
      const { model } = scripted((_, request) => endless(request));
      const { app, run } = await startDesk();
      const ended = gate();
      const result = run(async (turn) => {
        const { fullStream } = sdk.streamText({
          ...options,
          model: durableModel(turn, model),
          abortSignal: turn.signal,
        });
        try {
          for await (const { type } of fullStream) if (type === 'text-delta') void app.turns.cancel(turn.id);
        } finally {
          ended.open();
        }
        return '';
      });
      await rejection(result, TurnCancelledError);
      await ended.pass();
    });
  });

  describe('@ai-sdk/openai-compatible over HTTP', () => {
    const modelAt = (baseURL: string): LanguageModelV3 =>
      version === 'ai 7'
        ? (createModels7({ name: 'scripted', baseURL, includeUsage: true })('model') as unknown as LanguageModelV3)
        : createModels6({ name: 'scripted', baseURL, includeUsage: true })('model');

    it('AIS-01 asks once for each answer, with the same ids in every attempt', async () => {
      const provider = await startProvider(
        inOrder(
          { reasoning: 'One order.', text: 'One moment.', calls: [{ name: 'find', args: { id: '7' } }] },
          { status: 500 },
          { text: 'It has shipped.' },
        ),
      );
      const ids: string[] = [];
      const { run } = await startDesk();
      const result = await run(async (turn) => {
        const { fullStream } = sdk.streamText({ ...options, model: durableModel(turn, modelAt(provider.baseURL)) });
        const texts: string[] = [];
        for await (const part of fullStream) {
          if (part.type === 'error') throw part.error;
          if (part.type === 'tool-call') ids.push(part.toolCallId);
          if (part.type === 'text-delta') texts.push(part.text);
        }
        failUntil(3, turn);
        return texts.join(' ');
      });
      expect(result.reply?.replaceAll(/ +/g, ' ')).toBe('One moment. It has shipped.');
      expect(provider.asked.map(({ outcome }) => outcome)).toEqual(['answered', 'refused', 'answered']);
      expect(ids).toEqual([ids[0], ids[0], ids[0]]);
      const tokens = provider.asked.map(({ usage }) => usage?.total_tokens ?? 0);
      expect(result.usage?.totalTokens).toBe(tokens[0] + tokens[2]);
    });

    it('AIS-05 closes the connection when the turn is cancelled', async () => {
      const provider = await startProvider(
        inOrder({ text: 'One two three', before: (token) => token > 0 && new Promise(() => {}) }),
      );
      const { app, run } = await startDesk();
      const result = run(async (turn) => {
        const { textStream } = sdk.streamText({ ...options, model: durableModel(turn, modelAt(provider.baseURL)) });
        for await (const _ of textStream) void app.turns.cancel(turn.id);
        return '';
      });
      await rejection(result, TurnCancelledError);
      await eventually(() => provider.asked[0].outcome === 'left');
    });

    it.each(['break', 'end', 'malformed'] as const)(
      'AIS-05 asks again after an answer with the fault "%s"',
      async (kind) => {
        const provider = await startProvider(
          inOrder({ text: 'One two three', fault: { kind, after: 2 } }, { text: 'Done.' }),
        );
        const { run } = await startDesk();
        const result = await run((turn) =>
          Promise.resolve(sdk.streamText({ ...options, model: durableModel(turn, modelAt(provider.baseURL)) }).text),
        );
        expect(result.reply).toBe('Done.');
      },
    );

    it('AIS-05 keeps the retry-after of a response', async () => {
      const provider = await startProvider(inOrder({ status: 429, retryAfterSeconds: 3 }));
      const { run } = await startDesk();
      await run(async (turn) => {
        const asking = sdk.generateText({ ...options, model: durableModel(turn, modelAt(provider.baseURL)) });
        await expect(asking).rejects.toMatchObject({ statusCode: 429, retryAfterMs: 3000 });
        return '';
      });
    });
  });
});

describe('durableModel with a model of version 2', () => {
  const [{ sdk }] = SDKS;

  it('AIS-01 AIS-05 replays its answers, and counts its tokens', async () => {
    let asked = 0;
    const usage = { inputTokens: 5, outputTokens: 3, totalTokens: 9 };
    const model: LanguageModelV2 = {
      specificationVersion: 'v2',
      provider: 'old',
      modelId: 'old',
      supportedUrls: {},
      doGenerate: () => {
        asked += 1;
        return Promise.resolve({
          content: [{ type: 'text', text: 'One.' }],
          finishReason: 'stop',
          usage,
          warnings: [],
        });
      },
      doStream: () => {
        asked += 1;
        const parts = [...partsOf({ text: 'Two.' }).slice(0, -1), { type: 'finish', finishReason: 'stop', usage }];
        return Promise.resolve({ stream: ReadableStream.from(parts) as never });
      },
    };
    const { run } = await startDesk();
    const result = await run(async (turn) => {
      const durable = durableModel(turn, model);
      const { text } = await sdk.generateText({ model: durable, prompt: 'a' });
      const rest = await sdk.streamText({ model: durable, prompt: 'b' }).text;
      failUntil(3, turn);
      return `${text} ${rest}`;
    });
    expect(result).toMatchObject({
      reply: 'One. Two.',
      usage: { promptTokens: 10, completionTokens: 6, totalTokens: 18 },
    });
    expect(asked).toBe(2);
  });
});
