import { InvalidInputError, memoryAdapter, type TurnContext, TurnCancelledError } from 'nestjs-agent-sessions';
import { z } from 'zod';
import { durableCalls } from '../../lib/ai-sdk/durable-calls.js';
import { durableModel } from '../../lib/ai-sdk/durable-model.js';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { gate, rejection, SAMPLED_STORES } from '../support/running-application.js';
import { CHAT_SDKS, startChat } from './fixtures/chat.js';
import { failUntil, startDesk, withStepsAfter } from './fixtures/desk.js';
import { type Answer, type ModelOptions, type Part, partsOf, readAll, type Sdk } from './fixtures/models.js';

const LOOP: readonly Answer[] = [
  { text: 'One moment.', calls: [{ id: 'call-7', name: 'find', input: {} }] },
  { text: 'It has shipped.' },
];
const PROMPT = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }];

type Middleware = NonNullable<Parameters<Sdk['wrapLanguageModel']>[0]['middleware']>;

/** A middleware that counts the calls which reach it. */
function counting(calls: string[], name: string): Exclude<Middleware, readonly unknown[]> {
  return {
    specificationVersion: 'v3',
    wrapGenerate: async ({ doGenerate }) => (calls.push(name), doGenerate()),
    wrapStream: async ({ doStream }) => (calls.push(name), doStream()),
  };
}

describe.each(CHAT_SDKS)('durableCalls with $name', ({ sdk, scripted }) => {
  const find = sdk.tool({ inputSchema: z.object({}), execute: () => 'shipped' });
  const options = { prompt: 'Where is it?', tools: { find }, stopWhen: sdk.stepCountIs(5), maxRetries: 0 };
  const loops: Record<string, (model: Parameters<typeof sdk.generateText>[0]['model']) => PromiseLike<string>> = {
    streamText: (model) => sdk.streamText({ ...options, model, onError: () => {} }).text,
    generateText: async (model) => (await sdk.generateText({ ...options, model })).text,
    ToolLoopAgent: async (model) =>
      (await new sdk.ToolLoopAgent({ ...options, model }).generate({ prompt: options.prompt })).text,
  };

  describe.each(SAMPLED_STORES)('over $name', ({ open }) => {
    it.each(Object.entries(loops))('AIS-37 makes a wrapped model durable in %s', async (_, loop) => {
      const { model, asked } = scripted((call) => LOOP[call - 1]);
      const { run } = await startDesk(open());
      const result = await run(async (turn) => {
        const text = await loop(sdk.wrapLanguageModel({ model, middleware: durableCalls(turn) }));
        failUntil(3, turn);
        return text;
      });
      expect(result).toMatchObject({ reply: 'It has shipped.', usage: { totalTokens: 24 } });
      expect(asked).toHaveLength(2);
    });
  });

  it('AIS-37 shares stored answers with durableModel, which is short for it', async () => {
    const { model, asked } = scripted((call) => LOOP[call - 1]);
    const { run } = await startDesk();
    const result = await run(async (turn) => {
      const wrapped = sdk.wrapLanguageModel({ model, middleware: durableCalls(turn, { key: 'a' }) });
      const text = await loops.generateText(turn.attempt % 2 ? wrapped : durableModel(turn, model, { key: 'a' }));
      failUntil(3, turn);
      return text;
    });
    expect(result.reply).toBe('It has shipped.');
    expect(asked).toHaveLength(2);
  });

  it.each(['streamText', 'generateText'])(
    'AIS-37 runs middlewares before it in every attempt, and those after it only when %s asks the provider',
    async (name) => {
      const calls: string[] = [];
      const { model } = scripted((call) => LOOP[call - 1]);
      const { run } = await startDesk();
      await run(async (turn) => {
        const middleware = [counting(calls, 'before'), durableCalls(turn), counting(calls, 'after')];
        await loops[name](sdk.wrapLanguageModel({ model, middleware }));
        failUntil(3, turn);
        return '';
      });
      expect(calls.filter((each) => each === 'before')).toHaveLength(6);
      expect(calls.filter((each) => each === 'after')).toHaveLength(2);
    },
  );

  it('AIS-37 streams each part before the answer is stored', async () => {
    const rest = gate();
    const parts = partsOf({ text: 'One two' });
    const { model } = scripted(
      () =>
        new ReadableStream<Part>(
          {
            async start(controller) {
              for (const part of parts.slice(0, 4)) controller.enqueue(part);
              await rest.pass();
              for (const part of parts.slice(4)) controller.enqueue(part);
              controller.close();
            },
          },
          { highWaterMark: 0 },
        ),
    );
    const stored: string[] = [];
    const { run } = await startDesk(withStepsAfter(memoryAdapter(), (name) => void stored.push(name)));
    await run(async (turn) => {
      const wrapped = sdk.wrapLanguageModel({ model, middleware: durableCalls(turn) });
      const reader = (await wrapped.doStream({ prompt: PROMPT })).stream.getReader();
      for (const { type } of parts.slice(0, 4)) expect((await reader.read()).value).toMatchObject({ type });
      expect(stored).toEqual([]);
      rest.open();
      for (;;) if ((await reader.read()).done) break;
      expect(stored).toEqual(['model call']);
      return '';
    });
  });

  it('AIS-37 keeps the answers of parallel loops with keys apart', async () => {
    const { model, asked } = scripted((_, { prompt }) => ({ text: JSON.stringify(prompt.at(-1)?.content) }));
    const replies: string[] = [];
    const { run } = await startDesk();
    await run(async (turn) => {
      const keys = turn.attempt % 2 ? ['a', 'b'] : ['b', 'a'];
      const texts = await Promise.all(
        keys.map(async (key) => {
          const wrapped = sdk.wrapLanguageModel({ model, middleware: durableCalls(turn, { key }) });
          return (await sdk.generateText({ model: wrapped, prompt: key, maxRetries: 0 })).text;
        }),
      );
      replies.push(texts.sort().join());
      failUntil(3, turn);
      return '';
    });
    expect(new Set(replies).size).toBe(1);
    expect(asked).toHaveLength(2);
  });

  it('AIS-37 stores and counts the answers of a durable model that a middleware after it asks', async () => {
    const { model, asked } = scripted((call) => ({ text: `Answer ${call}.` }));
    const { run } = await startDesk();
    const result = await run(async (turn) => {
      const inner = sdk.wrapLanguageModel({ model, middleware: durableCalls(turn, { key: 'inner' }) });
      const translating: Exclude<Middleware, readonly unknown[]> = {
        specificationVersion: 'v3',
        wrapGenerate: async ({ doGenerate }) => {
          await sdk.generateText({ model: inner, prompt: 'Translate.', maxRetries: 0 });
          return doGenerate();
        },
      };
      const wrapped = sdk.wrapLanguageModel({ model, middleware: [durableCalls(turn), translating] });
      const { text } = await sdk.generateText({ model: wrapped, prompt: 'Hi', maxRetries: 0 });
      failUntil(3, turn);
      return text;
    });
    expect(result).toMatchObject({ reply: 'Answer 2.', usage: { totalTokens: 24 } });
    expect(asked).toHaveLength(2);
  });

  it('AIS-37 aborts the request with the turn', async () => {
    const { model, asked } = scripted((_, { abortSignal }: ModelOptions) => {
      return new ReadableStream<Part>({
        start: (controller) => {
          controller.enqueue(partsOf({})[0]);
          abortSignal?.addEventListener('abort', () => controller.error(abortSignal.reason));
        },
      });
    });
    const { app, run } = await startDesk();
    const result = run(async (turn) => {
      const wrapped = sdk.wrapLanguageModel({ model, middleware: durableCalls(turn) });
      const { stream } = await wrapped.doStream({ prompt: PROMPT });
      void app.turns.cancel(turn.id);
      await readAll(stream);
      return '';
    });
    await rejection(result, TurnCancelledError);
    expect(asked[0].abortSignal?.aborted).toBe(true);
  });

  it.each([
    ['wrapped', (turn: TurnContext, model: never) => sdk.wrapLanguageModel({ model, middleware: durableCalls(turn) })],
    [
      'wrapped with a middleware between',
      (turn: TurnContext, model: never) => {
        const settings = sdk.defaultSettingsMiddleware({ settings: { temperature: 0 } });
        return sdk.wrapLanguageModel({ model, middleware: [settings, durableCalls(turn)] });
      },
    ],
    ['durable', (turn: TurnContext, model: never) => durableModel(turn, model)],
  ])('AIS-37 stores and counts the answers of streamReply once if its model is %s already', async (_, durable) => {
    const { model, asked } = scripted((call) => LOOP[call - 1]);
    const chat = await startChat(async (turn) => {
      const outcome = await streamReplyWith(sdk, turn, { model: durable(turn, model as never), tools: { find } });
      failUntil(3, turn);
      return outcome;
    });
    expect(await chat.send('Where is it?')).toMatchObject({
      reply: 'It has shipped.',
      usage: { promptTokens: 20, completionTokens: 4 },
    });
    expect(asked).toHaveLength(2);
  });

  it.each([
    ['an unknown option', { name: 'a' }],
    ['an empty key', { key: '' }],
  ])('AIS-37 rejects %s', async (_, wrong) => {
    const { run } = await startDesk();
    await run(async (turn) => {
      expect(() => durableCalls(turn, wrong as object)).toThrow(InvalidInputError);
      return '';
    });
  });

  it('AIS-37 rejects the id of a model with a hint', async () => {
    const { run } = await startDesk();
    await run(async (turn) => {
      const { wrapGenerate } = durableCalls(turn);
      const calling = wrapGenerate!({ model: 'gpt-5', params: { prompt: PROMPT } } as never);
      await expect(calling).rejects.toThrow('Pass a model instead of its id');
      return '';
    });
  });
});
