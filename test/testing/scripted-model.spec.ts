import { type LanguageModelV3 } from '@ai-sdk/provider';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import { HandlerError, InvalidInputError } from 'nestjs-agent-sessions';
import { scriptedModel } from 'nestjs-agent-sessions/testing';
import { z } from 'zod';
import { rejection } from '../support/running-application.js';

const SDKS = [
  ['ai 6', ai6],
  ['ai 7', ai7 as unknown as typeof ai6],
] as const;

describe.each(SDKS)('a scripted model with %s', (_, sdk) => {
  const findOrder = sdk.tool({
    inputSchema: z.object({ orderId: z.string() }),
    execute: ({ orderId }) => ({ orderId, status: 'shipped' }),
  });
  /** Errors are what the tests provoke. */
  const onError = () => {};

  it('AIS-23 answers by a function of the prompt, with reasoning and tool calls', async () => {
    const model = scriptedModel(({ said, step }) =>
      step === 0
        ? {
            reasoning: 'I look it up.',
            text: `You said: ${said}`,
            calls: [{ name: 'findOrder', input: { orderId: '7' } }],
          }
        : { text: 'Order 7 is shipped.', usage: { inputTokens: 30, outputTokens: 5 } },
    );
    const result = sdk.streamText({
      model,
      tools: { findOrder },
      prompt: 'Where is order 7?',
      stopWhen: sdk.stepCountIs(5),
    });
    const [first, second] = await result.steps;
    expect(first).toMatchObject({
      reasoningText: 'I look it up.',
      text: 'You said: Where is order 7?',
      finishReason: 'tool-calls',
      toolResults: [{ input: { orderId: '7' }, output: { orderId: '7', status: 'shipped' } }],
    });
    expect(second).toMatchObject({ text: 'Order 7 is shipped.', finishReason: 'stop' });
    expect(await result.totalUsage).toMatchObject({ inputTokens: 40, outputTokens: 7 });
    expect(model.calls).toMatchObject([
      { said: 'Where is order 7?', step: 0, calls: 0, reasoning: 'I look it up.', text: 'You said: Where is order 7?' },
      { said: 'Where is order 7?', step: 1, calls: 1, reasoning: '', text: 'Order 7 is shipped.' },
    ]);
    expect(model.calls[0].options).toMatchObject({ tools: [{ name: 'findOrder' }] });
    expect(model.calls[1].prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  });

  it('AIS-23 streams words, and gives the same answer without streaming', async () => {
    const model = scriptedModel(() => ({ text: 'one two  three', calls: [{ name: 'stop', id: 'c1' }], delayMs: 1 }));
    const deltas: string[] = [];
    for await (const delta of sdk.streamText({ model, prompt: 'Count.' }).textStream) deltas.push(delta);
    expect(deltas).toEqual(['one ', 'two  ', 'three']);
    const stop = sdk.tool({ inputSchema: z.object({}) });
    const { text, toolCalls } = await sdk.generateText({ model, prompt: 'Count.', tools: { stop } });
    expect(text).toBe('one two  three');
    expect(toolCalls).toMatchObject([{ toolCallId: 'c1', toolName: 'stop', input: {} }]);
    expect(model.calls.map(({ repeats }) => repeats)).toEqual([0, 1]);
  });

  it('AIS-23 answers from a list, and fails when it ends', async () => {
    const model = scriptedModel(['One.', new Error('The model is down.'), { text: 'Two.' }]);
    const ask = () => sdk.generateText({ model, prompt: 'Hello.', maxRetries: 0 });
    expect((await ask()).text).toBe('One.');
    await expect(ask()).rejects.toThrow('The model is down.');
    expect((await ask()).text).toBe('Two.');
    const over = await rejection(ask(), HandlerError);
    expect(over).toMatchObject({ code: 'MODEL_SCRIPT_OVER', permanent: true });
    expect(over.message).toContain('has 3 answers, and the model was called again after "Hello."');
  });

  it.each<[string, object | null, string]>([
    ['an unknown key', { content: 'Hello.' }, ' is not a known key. Allowed: reasoning, text, calls,'],
    ['a misspelt key', { texts: 'Hello.' }, 'Did you mean text?'],
    ['a number as text', { text: 7 }, '.text must be a string or an iterable of strings.'],
    ['calls that are no list', { calls: { name: 'stop' } }, '.calls must be an array of calls'],
    ['a call with an unknown key', { calls: [{ name: 'stop', args: {} }] }, '.calls[0].args is not a known key.'],
    ['a call without a name', { calls: [{ input: {} }] }, '.calls[0].name must be a string.'],
    ['null', null, ' must be an object.'],
  ])('AIS-23 refuses an answer with %s', async (__, answer, problem) => {
    expect(() => scriptedModel(['One.', answer as never])).toThrow(InvalidInputError);
    expect(() => scriptedModel(['One.', answer as never])).toThrow(`script[1]`);
    const model = scriptedModel(() => answer as never);
    const refused = await rejection(sdk.generateText({ model, prompt: 'Hello.', maxRetries: 0 }), InvalidInputError);
    expect(refused.message).toContain(problem);
    expect(refused.permanent).toBe(true);
  });

  it('AIS-23 breaks an answer off with an error', async () => {
    const model = scriptedModel(() => ({ text: 'One two', error: new Error('The connection broke.') }));
    const deltas: string[] = [];
    const read = async () => {
      const { fullStream } = sdk.streamText({ model, prompt: 'Count.', onError });
      for await (const part of fullStream) if (part.type === 'text-delta') deltas.push(part.text);
    };
    await expect(read()).rejects.toThrow('The connection broke.');
    expect(deltas).toEqual(['One ', 'two']);
  });

  it('AIS-23 streams the strings of an iterable until the call is aborted', async () => {
    const abort = new AbortController();
    const model = scriptedModel(() => ({
      text: (async function* () {
        yield 'One';
        await new Promise<void>((resolve) => setImmediate(resolve));
        abort.abort();
        yield ' two';
      })(),
    }));
    const result = sdk.streamText({ model, prompt: 'Count.', abortSignal: abort.signal, onError });
    await Promise.resolve(result.consumeStream());
    expect(model.calls).toMatchObject([{ text: 'One' }]);
  });
});

describe('scriptedModel', () => {
  it('AIS-23 returns a model of specification version 3', () => {
    const model: LanguageModelV3 = scriptedModel(() => 'Hello.');
    expect(model).toMatchObject({ specificationVersion: 'v3', provider: 'scripted', modelId: 'scripted' });
  });

  it('AIS-23 counts calls with the same prompt, except for the ids of tool calls', async () => {
    const model = scriptedModel(() => 'Hello.');
    const prompt = (toolCallId: string, text: string) => [
      { role: 'user' as const, content: [{ type: 'text' as const, text }] },
      {
        role: 'assistant' as const,
        content: [{ type: 'tool-call' as const, toolCallId, toolName: 'find', input: {} }],
      },
    ];
    for (const [id, text] of [
      ['a', 'Hi'],
      ['b', 'Hi'],
      ['b', 'Ho'],
    ]) {
      await model.doGenerate({ prompt: prompt(id, text) });
    }
    expect(model.calls.map(({ repeats, step }) => [repeats, step])).toEqual([
      [0, 1],
      [1, 1],
      [0, 1],
    ]);
  });

  it('AIS-23 rejects a script that is neither a function nor a list, and a function without an answer', async () => {
    expect(() => scriptedModel('Hello.' as never)).toThrow(InvalidInputError);
    const model = scriptedModel(() => undefined as never);
    await expect(model.doGenerate({ prompt: [] })).rejects.toThrow('The script of the model has returned no answer');
  });
});
