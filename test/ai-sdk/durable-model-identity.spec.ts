import { defineOrchestrator, type TurnContext, TurnFailedError } from 'nestjs-agent-sessions';
import { z } from 'zod';
import { durableModel } from '../../lib/ai-sdk/durable-model.js';
import { gate, rejection, startApplication } from '../support/running-application.js';
import { failUntil, startDesk } from './fixtures/desk.js';
import { type Answer, type ModelOptions, type Part, partsOf, SDKS } from './fixtures/models.js';

/** Answers with the user's message and a number that increases with each call, after a call of the tool `next`. */
function numbered(call: number, { prompt }: ModelOptions): Answer {
  const about = prompt.flatMap((message) => (message.role === 'user' ? message.content : []));
  const [name] = about.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  const isOver = prompt.filter(({ role }) => role === 'tool').length === 2;
  return { text: `${name}${call} `, ...(isOver ? {} : { calls: [{ id: `call-${call}`, name: 'next', input: {} }] }) };
}

describe.each(SDKS)('the identity of model calls with $name', ({ sdk, scripted }) => {
  const next = sdk.tool({ inputSchema: z.object({}), execute: () => 'next' });
  type Model = Parameters<typeof sdk.streamText>[0]['model'];

  /** Runs a loop of three calls. @returns the texts of its answers */
  async function loop(model: Model, prompt: string, before?: () => Promise<unknown>): Promise<string> {
    const result = sdk.streamText({
      model,
      prompt,
      tools: { next },
      stopWhen: sdk.stepCountIs(5),
      maxRetries: 0,
      onError: () => {},
      prepareStep: async () => (await before?.(), {}),
    });
    const texts: string[] = [];
    for await (const part of result.fullStream) {
      if (part.type === 'error') throw part.error;
      if (part.type === 'text-delta') texts.push(part.text);
    }
    return texts.join('').trim();
  }

  it('AIS-04 gives parallel loops with keys their own answers, whichever is faster', async () => {
    const { model, asked } = scripted(numbered);
    const replies: string[] = [];
    const { run } = await startDesk();
    await run(async (turn) => {
      // The first attempt ends one loop before the other begins its second call; the next attempt the other way round.
      const slow = turn.attempt % 2 === 0 ? 'a' : 'b';
      const isFastOver = gate();
      const texts = ['a', 'b'].map(async (name) => {
        const text = await loop(durableModel(turn, model, { key: name }), name, () =>
          name === slow ? isFastOver.pass() : Promise.resolve(),
        );
        if (name !== slow) isFastOver.open();
        return text;
      });
      replies.push((await Promise.all(texts)).join(' / '));
      failUntil(3, turn);
      return '';
    });
    expect(replies).toEqual([replies[0], replies[0], replies[0]]);
    expect(replies[0]).toBe('a1 a2 a3 / b4 b5 b6');
    expect(asked).toHaveLength(6);
  });

  describe.each([
    [
      'one model',
      (turn: TurnContext, models: Map<TurnContext, Model>, create: () => Model) =>
        models.get(turn) ?? models.set(turn, create()).get(turn),
    ],
    ['a model for each loop', (_: TurnContext, __: Map<TurnContext, Model>, create: () => Model) => create()],
  ] as const)('with %s', (_, modelFor) => {
    it.each([undefined, 'same'])('AIS-04 rejects parallel loops with the key %s', async (key) => {
      const { model } = scripted(numbered);
      const { run } = await startDesk();
      let attempts = 0;
      const { failure } = await rejection(
        run(async (turn) => {
          attempts += 1;
          const models = new Map<TurnContext, Model>();
          const create = () => durableModel(turn, model, key === undefined ? {} : { key });
          const loops = ['a', 'b'].map((name) => loop(modelFor(turn, models, create) as Model, name));
          return (await Promise.all(loops)).join();
        }),
        TurnFailedError,
      );
      expect(failure).toMatchObject({ name: 'HandlerError', code: 'MODEL_KEY_REQUIRED' });
      expect(failure?.message).toContain('durableModel(turn, model, { key: topic.id })');
      // Permanent: the code is wrong.
      expect(attempts).toBe(1);
    });
  });

  it('AIS-04 needs no key for loops that run one after the other', async () => {
    const { model, asked } = scripted(numbered);
    const replies: string[] = [];
    const { run } = await startDesk();
    await run(async (turn) => {
      const texts: string[] = [];
      for (const name of ['a', 'b', 'a']) texts.push(await loop(durableModel(turn, model), name));
      replies.push(texts.join(' / '));
      failUntil(3, turn);
      return '';
    });
    expect(new Set(replies)).toEqual(new Set(['a1 a2 a3 / b4 b5 b6 / a7 a8 a9']));
    expect(asked).toHaveLength(9);
  });

  it('AIS-04 needs no key for loops inside parallel tool calls', async () => {
    const { model, asked } = scripted(numbered);
    const replies: string[] = [];
    const { run } = await startDesk();
    await run(async (turn) => {
      const names = turn.attempt === 1 ? ['a', 'b'] : ['b', 'a'];
      const texts = names.map((name) =>
        turn.tools.use('ask', name, async () => {
          const text = await loop(durableModel(turn, model), name);
          failUntil(2, turn);
          return text;
        }),
      );
      await Promise.allSettled(texts);
      replies.push((await Promise.all(texts)).sort().join(' / '));
      return '';
    });
    expect(replies).toHaveLength(1);
    expect(asked).toHaveLength(6);
  });

  it('AIS-04 needs no key for loops in parallel intents', async () => {
    const { model, asked } = scripted(numbered);
    const replies: Record<string, string>[] = [];
    const ends = [1, 2, 3].map(() => gate());
    const desk = defineOrchestrator({
      name: 'desk',
      route: () => ['a', 'b'],
      intents: {
        a: async (turn) => {
          replies[turn.attempt - 1] = { a: await loop(durableModel(turn, model), 'a') };
          ends[turn.attempt - 1].open();
        },
        b: async (turn) => {
          const b = await loop(durableModel(turn, model), 'b');
          await ends[turn.attempt - 1].pass();
          replies[turn.attempt - 1].b = b;
          failUntil(3, turn);
        },
      },
    });
    const retry = { attempts: 10, backoff: { type: 'fixed' as const, delayMs: 1 } };
    const app = await startApplication({ orchestrators: [desk], turns: { retry } });
    await app.turns.execute('desk', 'hi', { sessionId: await app.session() });
    expect(replies).toEqual([replies[0], replies[0], replies[0]]);
    expect(asked).toHaveLength(6);
  });

  describe('after a call that failed', () => {
    it('AIS-04 the retry of the SDK is the same call', async () => {
      const { model, asked } = scripted((call, options) => {
        if (call % 2 === 1) throw unavailable();
        return numbered(call, options);
      });
      const texts: string[] = [];
      const { run } = await startDesk();
      await run(async (turn) => {
        const { steps } = await sdk.generateText({
          model: durableModel(turn, model),
          prompt: 'a',
          tools: { next },
          stopWhen: sdk.stepCountIs(5),
        });
        texts.push(steps.map(({ text }) => text).join(''));
        failUntil(3, turn);
        return '';
      });
      expect(texts).toEqual(['a2 a4 a6 ', 'a2 a4 a6 ', 'a2 a4 a6 ']);
      expect(asked).toHaveLength(6);
    });

    it.each([
      ['the same model', true],
      ['another model', false],
    ])('AIS-04 a handler that tolerates it keeps the answers that follow, of %s', async (_, isSame) => {
      const asked: string[] = [];
      const { model } = scripted((call, options) => {
        const { text } = numbered(call, options);
        asked.push(String(text));
        if (call < 4 && text?.startsWith('title')) throw new Error('The provider fails.');
        return { text };
      });
      const replies: string[] = [];
      const { run } = await startDesk();
      await run(async (turn) => {
        const durable = durableModel(turn, model);
        const ask = async (prompt: string) =>
          (await sdk.generateText({ model: isSame ? durable : durableModel(turn, model), prompt })).text;
        replies.push(`${await ask('title').catch(() => 'none ')}${await ask('answer')}${await ask('end')}`);
        failUntil(3, turn);
        return '';
      });
      // It is asked again in each attempt until it succeeds.
      expect(replies).toEqual(['none answer2 end3 ', 'title4 answer2 end3 ', 'title4 answer2 end3 ']);
      expect(asked).toEqual(['title1 ', 'answer2 ', 'end3 ', 'title4 ']);
    });

    it('AIS-04 a fallback with its own key leaves the other calls their numbers', async () => {
      const { model } = scripted((call, options) => {
        if (call === 1) throw new Error('The provider fails.');
        return { text: numbered(call, options).text };
      });
      const replies: string[] = [];
      const { run } = await startDesk();
      await run(async (turn) => {
        const durable = durableModel(turn, model);
        const fallback = durableModel(turn, model, { key: 'fallback' });
        const ask = async (prompt: string, from = durable) => (await sdk.generateText({ model: from, prompt })).text;
        replies.push(`${await ask('title').catch(() => ask('title', fallback))}${await ask('end')}`);
        failUntil(3, turn);
        return '';
      });
      expect(replies).toEqual(['title2 end3 ', 'title4 end3 ', 'title4 end3 ']);
    });

    it('AIS-04 another attempt asks again, however often the SDK has asked before', async () => {
      const { model, asked } = scripted((call, options) => {
        if (call <= 3) throw unavailable();
        return { text: numbered(call, options).text };
      });
      const { run } = await startDesk();
      const result = await run(async (turn) => {
        const { text } = await sdk.generateText({ model: durableModel(turn, model), prompt: 'a', maxRetries: 1 });
        failUntil(3, turn);
        return text;
      });
      expect(result.reply).toBe('a4 ');
      expect(asked).toHaveLength(4);
    });

    it('AIS-04 the calls after a stream that its reader has left are the same in another attempt', async () => {
      const { model, asked } = scripted((call, options): Answer | ReadableStream<Part> =>
        call === 1 || call === 3
          ? new ReadableStream<Part>({ start: (controller) => controller.enqueue(partsOf({ text: 'never ends' })[0]) })
          : { text: numbered(call, options).text },
      );
      const { run } = await startDesk();
      const result = await run(async (turn) => {
        const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'left' }] }];
        const { stream } = await durableModel(turn, model).doStream({ prompt });
        const reader = stream.getReader();
        await reader.read();
        await reader.cancel();
        const { text } = await sdk.generateText({ model: durableModel(turn, model), prompt: 'a' });
        failUntil(2, turn);
        return text;
      });
      expect(result.reply).toBe('a2 ');
      expect(asked).toHaveLength(3);
    });
  });

  function unavailable(): Error {
    return new sdk.APICallError({
      message: 'unavailable',
      url: 'https://example.org',
      requestBodyValues: {},
      statusCode: 503,
      // The SDK waits this long before it retries.
      responseHeaders: { 'retry-after-ms': '1' },
    });
  }
});
