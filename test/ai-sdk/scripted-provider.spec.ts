import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createOpenAICompatible as createModels6 } from '@ai-sdk/openai-compatible';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import { createOpenAICompatible as createModels7 } from '../ai-7/openai-compatible.js';
import { z } from 'zod';
import { diverging } from '../../sample/06-ai-chat/provider/script.js';
import { type ScriptedProvider } from '../../sample/06-ai-chat/provider/scripted-provider.js';
import { shopAssistant } from '../../sample/06-ai-chat/provider/shop-assistant.js';
import { nodeProcess } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/running-application.js';
import { inOrder, startProvider } from '../support/scripted-provider.js';
import { freePort } from '../support/services/server-process.js';
import { temporaryFolder } from '../support/temporary-folder.js';

/** The functions of both versions that the tests use. */
type Sdk = Pick<typeof ai6, 'streamText' | 'generateText' | 'stepCountIs' | 'tool'>;
type Model = Parameters<typeof ai6.streamText>[0]['model'];

const SDKS: { name: string; sdk: Sdk; modelOf: (baseURL: string) => Model }[] = [
  {
    name: 'ai 6',
    sdk: ai6,
    modelOf: (baseURL) => createModels6({ name: 'scripted', baseURL, includeUsage: true })('model'),
  },
  {
    name: 'ai 7',
    sdk: ai7 as unknown as Sdk,
    modelOf: (baseURL) => createModels7({ name: 'scripted', baseURL, includeUsage: true })('model') as unknown as Model,
  },
];

const USAGE = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
const FULL = {
  reasoning: 'Two orders, two look-ups.',
  text: 'One moment, please.',
  calls: [
    { id: 'call-7', name: 'find', args: { id: '7' } },
    { id: 'call-8', name: 'find', args: { id: '8', note: '“quoted” and long' } },
  ],
  usage: USAGE,
};

describe.each(SDKS)('the scripted provider with $name', ({ sdk, modelOf }) => {
  const find = sdk.tool({ inputSchema: z.looseObject({ id: z.string() }) });
  const shown = sdk.tool({ inputSchema: find.inputSchema, execute: ({ id }) => ({ id, status: 'shipped' }) });

  function options(provider: ScriptedProvider) {
    return { model: modelOf(provider.baseURL), prompt: 'Where are my orders?', maxRetries: 0, onError: () => {} };
  }

  it.each([undefined, 1, 3])(
    'AIS-20 streams reasoning, text and parallel calls with their ids, in tokens of length %s',
    async (tokenLength) => {
      const provider = await startProvider(inOrder({ ...FULL, tokenLength }));
      const result = sdk.streamText({ ...options(provider), tools: { find } });
      const parts = await readAll(result.fullStream);

      const deltas = parts.filter(({ type }) => type === 'text-delta');
      expect(deltas).toHaveLength({ 0: 3, 1: 19, 3: 7 }[tokenLength ?? 0] ?? NaN);
      expect(await result.reasoningText).toBe(FULL.reasoning);
      expect(await result.text).toBe(FULL.text);
      expect(callsOf(await result.toolCalls)).toEqual(FULL.calls);
      expect(await result.finishReason).toBe('tool-calls');
      expect(await result.usage).toMatchObject({ inputTokens: 11, outputTokens: 7, totalTokens: 18 });
      expect(provider.asked).toMatchObject([{ outcome: 'answered', usage: USAGE }]);
    },
  );

  it('AIS-20 returns the same answer without streaming', async () => {
    const provider = await startProvider(inOrder(FULL));
    const result = await sdk.generateText({ ...options(provider), tools: { find } });

    expect(result.reasoningText).toBe(FULL.reasoning);
    expect(result.text).toBe(FULL.text);
    expect(callsOf(result.toolCalls)).toEqual(FULL.calls);
    expect(result.finishReason).toBe('tool-calls');
    expect(result.usage).toMatchObject({ inputTokens: 11, outputTokens: 7 });
    expect(provider.asked).toMatchObject([{ outcome: 'answered', tokens: 0, request: { tools: [{}] } }]);
  });

  it('AIS-20 records each request of a tool loop, with the results of tools', async () => {
    const provider = await startProvider(inOrder(FULL, { text: 'Both are shipped.', finish: 'length' }));
    const result = sdk.streamText({ ...options(provider), tools: { find: shown }, stopWhen: sdk.stepCountIs(5) });

    expect(await result.text).toBe('Both are shipped.');
    expect(await result.finishReason).toBe('length');
    expect(provider.asked.map(({ request }) => request.messages.map(({ role }) => role))).toEqual([
      ['user'],
      ['user', 'assistant', 'tool', 'tool'],
    ]);
    expect(provider.asked[1].request.messages).toMatchObject([
      {},
      { tool_calls: [{ id: 'call-7' }, { id: 'call-8' }], reasoning_content: FULL.reasoning },
      { tool_call_id: 'call-7', content: '{"id":"7","status":"shipped"}' },
      { tool_call_id: 'call-8' },
    ]);
  });

  it.each(['break', 'end', 'malformed'] as const)('AIS-20 streams three tokens, then an error: %s', async (kind) => {
    const allRead = gate();
    const before = (token: number) => (token === 3 ? allRead.pass() : undefined);
    const text = 'one two three four five';
    const provider = await startProvider(inOrder({ text, before, fault: { kind, after: 3 } }));
    const read: string[] = [];
    const errors: unknown[] = [];
    try {
      for await (const part of sdk.streamText(options(provider)).fullStream) {
        if (part.type === 'error') errors.push(part.error);
        if (part.type === 'text-delta' && read.push(part.text) === 3) allRead.open();
      }
    } catch (error) {
      errors.push(error);
    }

    expect(read).toEqual(['one ', 'two ', 'three ']);
    expect(errors).toEqual([expect.any(Error)]);
    expect(provider.asked).toMatchObject([{ outcome: 'faulty', tokens: 3 }]);
    expect(provider.asked[0].usage).toBeUndefined();
  });

  it.each(['break', 'end', 'malformed'] as const)('AIS-20 fails without streaming, too: %s', async (kind) => {
    const provider = await startProvider(inOrder({ text: 'one two', fault: { kind } }));

    await expect(sdk.generateText(options(provider))).rejects.toThrow();
    expect(provider.asked).toMatchObject([{ outcome: 'faulty', tokens: 0 }]);
  });

  it.each([
    { status: 429, retryAfterSeconds: 2, message: 'Slow down.' },
    { status: 500, message: 'Out of order.' },
  ])('AIS-20 refuses a request with status $status', async (failure) => {
    const provider = await startProvider(inOrder(failure));
    const error: unknown = await sdk.generateText(options(provider)).catch((thrown: unknown) => thrown);

    expect(error).toMatchObject({ message: failure.message, statusCode: failure.status, isRetryable: true });
    const { responseHeaders } = error as { responseHeaders: Record<string, string> };
    expect(responseHeaders['retry-after']).toBe(failure.retryAfterSeconds?.toString());
    expect(provider.asked).toMatchObject([{ outcome: 'refused' }]);
  });

  it('AIS-20 holds a token back until a gate opens', async () => {
    const third = gate();
    const before = (token: number) => (token === 2 ? third.pass() : undefined);
    const provider = await startProvider(inOrder({ text: 'one two three', before }));
    const { textStream } = sdk.streamText(options(provider));
    const reader = textStream.getReader();

    expect((await reader.read()).value).toBe('one ');
    expect((await reader.read()).value).toBe('two ');
    const next = reader.read();
    await eventually(() => provider.asked[0].tokens === 2);
    third.open();
    expect((await next).value).toBe('three');
  });

  it('AIS-20 reports a client that leaves', async () => {
    const provider = await startProvider(inOrder({ text: 'one two three', pauseMs: 60_000 }));
    const stop = new AbortController();
    const { textStream } = sdk.streamText({ ...options(provider), abortSignal: stop.signal });
    expect((await textStream.getReader().read()).value).toBe('one ');
    stop.abort();

    await eventually(() => provider.asked[0].outcome === 'left');
    expect(provider.asked[0].tokens).toBe(1);
  });

  it('AIS-20 answers a repeated request differently, and another request as written', async () => {
    const text = 'Your order is on its way.';
    const provider = await startProvider(diverging(() => ({ text, calls: [{ name: 'find', args: { id: '7' } }] })));
    const ask = (prompt: string) => sdk.generateText({ ...options(provider), prompt, tools: { find } });

    const [first, second, other] = [await ask('Where?'), await ask('Where?'), await ask('When?')];
    expect([first.text, second.text, other.text]).toEqual([text, 'Your order is (version 2) on its way.', text]);
    expect(new Set([first, second, other].map(({ toolCalls }) => toolCalls[0].toolCallId)).size).toBe(3);
  });

  it('AIS-20 plays the assistant of the sample: look-ups, an approved refund, and a denied one', async () => {
    const provider = await startProvider(shopAssistant);
    const orders = { '7': { id: '7', item: 'a lamp', euros: 40, status: 'shipped' } };
    const schema = z.object({ orderId: z.string() });
    const findOrder = sdk.tool({
      inputSchema: schema,
      execute: ({ orderId }) => orders[orderId as '7'] ?? `There is no order ${orderId}.`,
    });
    const ask = (prompt: string, refund: object | string) =>
      sdk.generateText({
        ...options(provider),
        prompt,
        tools: { findOrder, refundOrder: sdk.tool({ inputSchema: schema, execute: () => refund }) },
        stopWhen: sdk.stepCountIs(5),
      });

    expect((await ask('Where are orders 7 and 9?', {})).text).toBe(
      'Sure. Order 7, a lamp for 40 euros, is shipped. There is no order 9.',
    );
    const paid = await ask('Please refund order 7', { receipt: 'R-1', euros: 40 });
    expect(paid.steps.map(({ toolCalls }) => toolCalls.map(({ toolName }) => toolName))).toEqual([
      ['findOrder'],
      ['refundOrder'],
      [],
    ]);
    expect(paid.text).toBe('Sure. 40 euros are on their way. The receipt is R-1.');
    expect((await ask('Refund order 7!', 'Tool call execution denied.')).text).toBe('Sure. I have not refunded it.');
    expect((await ask('Hello!', {})).text).toMatch(/^Sure\. I can tell you/);
    expect((await ask('Hello!', {})).text).toMatch(/^Of course\. I can tell you/);
  });
});

describe('the scripted provider in its own process', () => {
  it('AIS-20 answers by the script of a module, and reports its requests', async () => {
    const port = await freePort();
    const SCRIPT = join(temporaryFolder(), 'script.mjs');
    writeFileSync(SCRIPT, "export const script = () => ({ text: 'From another process.' });\n");
    const program = join(process.cwd(), 'build/sample/06-ai-chat/provider/main.js');
    const child = nodeProcess(program, { PORT: String(port), PAUSE_MS: '0', SCRIPT });
    let printed = '';
    for (const output of [child.stdout, child.stderr]) {
      output.setEncoding('utf8').on('data', (text: string) => (printed += text));
    }
    await eventually(() => printed.includes(`http://127.0.0.1:${port}/v1`), {
      limitMs: 30_000,
      what: 'that it listens',
    });

    const model = createModels6({ name: 'scripted', baseURL: `http://127.0.0.1:${port}/v1` })('model');
    const { text } = await ai6.generateText({ model, prompt: 'Hello!' });
    expect(text).toBe('From another process.');
    const asked = await fetch(`http://127.0.0.1:${port}/asked`);
    expect(await asked.json()).toMatchObject([{ outcome: 'answered', request: { model: 'model' } }]);
    expect((await fetch(`http://127.0.0.1:${port}/v1/models`)).status).toBe(404);
  });
});

async function readAll<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const parts: T[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

function callsOf(calls: readonly { toolCallId: string; toolName: string; input: unknown }[]): object[] {
  return calls.map(({ toolCallId, toolName, input }) => ({ id: toolCallId, name: toolName, args: input }));
}
