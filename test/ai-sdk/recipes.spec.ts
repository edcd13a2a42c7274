import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { type LanguageModelV3 } from '@ai-sdk/provider';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Chat } from '@ai-sdk/react';
import { DefaultChatTransport, tool, type ToolSet } from 'ai';
import { defineOrchestrator, memoryAdapter, reply, type TurnContext, type TurnOutcome } from 'nestjs-agent-sessions';
import { idempotencyKeyOf, streamReply, type UIChunk } from 'nestjs-agent-sessions/ai-sdk';
import { type ChatMessages } from 'nestjs-agent-sessions/http';
import { z } from 'zod';
import { textOf } from '../../sample/06-ai-chat/provider/chat-completions.js';
import { type Script } from '../../sample/06-ai-chat/provider/script.js';
import { type ScriptedProvider } from '../../sample/06-ai-chat/provider/scripted-provider.js';
import { type Kill, KillableStores } from '../../lib/testing/chat/killable-stores.js';
import { comparable } from '../chat/clients.js';
import { startChatApp } from '../http/chat-app.js';
import { headersOf } from '../http/state-app.js';
import { eventually } from '../support/eventually.js';
import { startApplication } from '../support/running-application.js';
import { inOrder, startProvider } from '../support/scripted-provider.js';
import { startChat } from './fixtures/chat.js';
import { failUntil } from './fixtures/desk.js';
import * as recipes from './recipes.js';

const page = readFileSync('docs/ai-sdk.md', 'utf8');
const source = readFileSync('test/ai-sdk/recipes.ts', 'utf8');
const regions = [...source.matchAll(/\/\/ #region (.+)\n([\s\S]*?)\/\/ #endregion/g)];

/** An answer with a sub-agent that searches once. */
const RESEARCH = [
  { calls: [{ name: 'research', args: { question: 'How many?' } }] },
  { calls: [{ name: 'search', args: {} }] },
  { text: 'I have found 42.' },
  { text: 'It is 42.' },
];

describe('the recipes of docs/ai-sdk.md', () => {
  it.each(regions.map(([, name, code]) => ({ name, code })))('AIS-22 shows $name as it is tested', ({ code }) => {
    expect(page).toContain(`\`\`\`ts\n${code}\`\`\``);
  });

  it('AIS-22 generates structured output once', async () => {
    const { provider, model } = await models(() => ({ text: '{"topic":"lamps","isUrgent":true}' }));
    expect(await answer(async (turn) => recipes.classify(turn, model))).toMatchObject({
      reply: 'This is about lamps.',
      data: { topic: 'lamps', isUrgent: true },
    });
    expect(provider.asked).toHaveLength(1);
  });

  it('AIS-22 keeps the answers of parallel calls apart', async () => {
    const { provider, model } = await models(({ messages }) => ({ text: `About ${textOf(messages[0])}` }));
    const { reply } = await answer((turn) => recipes.compare(turn, model, ['lamps', 'chairs', 'desks']));
    expect(reply).toBe('About lamps\nAbout chairs\nAbout desks');
    expect(provider.asked).toHaveLength(3);
  });

  it('AIS-22 AIS-37 stores what the middlewares of the SDK return', async () => {
    const { provider, model } = await models(() => ({ text: '<think>Six by seven.</think>It is 42.' }));
    expect(await answer((turn) => recipes.answerWithoutThoughts(turn, model))).toMatchObject({ reply: 'It is 42.' });
    expect(provider.asked).toHaveLength(1);
  });

  it('AIS-22 runs a sub-agent as a tool, and repeats nothing of it', async () => {
    const { provider, model } = await models(inOrder(...RESEARCH));
    const { tools, keys } = searching();
    expect(await answer((turn) => recipes.answerWithResearch(turn, model, tools))).toMatchObject({
      reply: 'It is 42.',
    });
    expect([provider.asked.length, keys.length]).toEqual([4, 1]);
  });

  it('AIS-22 repeats of a sub-agent only what a crash interrupts', async () => {
    const store = new KillableStores();
    const { writes } = await research(store);
    expect(writes).toBeGreaterThan(4);
    for (const kill of Array.from({ length: 2 * writes }, (_, at) => ({ at: 1 + (at >> 1), isStored: at % 2 === 0 }))) {
      const { asked, keys } = await research(store, kill);
      expect(new Set(keys).size).toBe(1);
      expect([0, 1]).toContain(asked - 4 + keys.length - 1);
    }
  });

  it('AIS-22 asks another orchestrator once', async () => {
    const { provider, model } = await models(
      inOrder({ calls: [{ name: 'researcher', args: { input: 'How many?' } }] }, { text: 'It is 42.' }),
    );
    let turns = 0;
    const researcher = defineOrchestrator({
      name: 'researcher',
      intents: { find: ({ input }: TurnContext) => reply(`${input.text} Search ${(turns += 1)}.`) },
    });
    const chat = defineOrchestrator({
      name: 'chat',
      intents: {
        answer: async (turn: TurnContext) => {
          const outcome = await recipes.answerWithColleague(turn, model, app.handle(researcher));
          failUntil(2, turn);
          return outcome;
        },
      },
    });
    const app = await startApplication({ orchestrators: [chat, researcher] });
    const result = await app.turns.execute('chat', 'Hello.', { sessionId: await app.session() });
    expect(result).toMatchObject({ reply: 'It is 42.' });
    expect(turns).toBe(1);
    expect(provider.asked).toHaveLength(2);
    expect(textOf(provider.asked[1].request.messages.at(-1)!)).toContain('How many? Search 1.');
  });

  it('AIS-22 shows progress that the reply follows', async () => {
    const { model } = await models(() => ({ text: 'It is 42.' }));
    const chat = await startChat(async (turn) => {
      const outcome = await recipes.answerWithProgress(turn, model);
      failUntil(2, turn);
      return outcome;
    });
    const { id } = await chat.send('How many?');
    const chunks = await chat.chunks(id);
    expect(chunks.filter(({ type }) => type === 'data-progress').map(({ data }) => data)).toEqual([
      { done: 0 },
      { done: 1 },
    ]);
    expect(textIn(chunks)).toBe('It is 42.');
  });

  it('AIS-22 stores progress as the page shows it, under the id of the turn', async () => {
    const { model } = await models(() => ({ text: 'It is 42.' }));
    const answer = (turn: TurnContext) => recipes.answerWithProgress(turn, model);
    const { url, turns, json } = await startChatApp({
      orchestrators: [defineOrchestrator({ name: 'chat', intents: { answer } })],
    });
    const transport = new DefaultChatTransport({ api: url, headers: headersOf({ userId: 'ann' }) });
    const page = new Chat({ id: 'chat-1', transport });
    await page.sendMessage({ text: 'How many?' });
    const [{ id }] = await turns.list({ sessionId: 'chat-1' });
    expect(page.lastMessage).toMatchObject({ id, parts: [{ data: { done: 1 } }, {}, { text: 'It is 42.' }] });
    const { messages } = await json<ChatMessages>('GET', '/chat-1/messages');
    expect(messages.map(comparable)).toEqual(page.messages.map(comparable));
  });

  it('AIS-22 shows an answer without streamReply once', async () => {
    const chat = await startChat((turn) => recipes.answerWithText(turn, words(turn.attempt)));
    const { id, reply: text } = await chat.send('How many?');
    expect(text).toBe('It is 42.');
    expect(textIn(await chat.chunks(id))).toBe('It is 42.');

    async function* words(attempt: number): AsyncGenerator<string> {
      yield* ['It', ' is'];
      if (attempt === 1) throw new Error('Attempt 1 fails.');
      yield ' 42.';
    }
  });

  it('AIS-22 continues with the output of a tool of the page', async () => {
    const { provider, model } = await models(
      inOrder({ calls: [{ name: 'locate', args: {} }] }, { text: 'You are in Paris.' }),
    );
    const tools = { locate: recipes.locate };
    const { url } = await startChatApp({
      orchestrators: [
        defineOrchestrator({ name: 'chat', intents: { answer: (turn) => streamReply(turn, { model, tools }) } }),
      ],
    });
    const transport = new DefaultChatTransport({ api: url, headers: headersOf({ userId: 'ann' }) });
    const page = recipes.openChat('chat-1', transport, () => Promise.resolve('Paris'));
    await page.sendMessage({ text: 'Where am I?' });
    await eventually(() => Promise.resolve(page.lastMessage?.parts.at(-1)?.type === 'text' && page.status === 'ready'));
    expect(page.lastMessage?.parts.at(-1)).toMatchObject({ text: 'You are in Paris.' });
    expect(provider.asked).toHaveLength(2);
  });

  it('AIS-22 sends a message that no server accepts again, and shows one answer', async () => {
    const { model } = await models(() => ({ text: 'Hello.' }));
    let refused = 0;
    const refusing = createServer((socket) => {
      refused += 1;
      socket.destroy();
    });
    await once(refusing.listen(0, '127.0.0.1'), 'listening');
    const { port } = refusing.address() as AddressInfo;
    const page = new Chat({
      id: 'chat-1',
      transport: new DefaultChatTransport({
        api: `http://127.0.0.1:${port}/chat`,
        headers: headersOf({ userId: 'ann' }),
        fetch: recipes.patientFetch,
      }),
    });
    const sent = page.sendMessage({ text: 'Hi.' });
    await eventually(() => Promise.resolve(refused > 0));
    await once(refusing.close(), 'close');
    const { turns } = await startChatApp({
      port,
      orchestrators: [
        defineOrchestrator({ name: 'chat', intents: { answer: (turn) => streamReply(turn, { model }) } }),
      ],
    });
    await sent;
    expect(page.messages.map(({ parts }) => parts.at(-1))).toMatchObject([{ text: 'Hi.' }, { text: 'Hello.' }]);
    expect(await turns.list({ sessionId: 'chat-1' })).toHaveLength(1);
  });

  it('AIS-22 uses models that another module registers by name', async () => {
    const { model } = await models(() => ({ text: 'Hello.' }));
    const { turns, session } = await startApplication({
      orchestrators: [recipes.Writer],
      providers: [recipes.Writer, recipes.Models, { provide: recipes.MODELS, useValue: { fast: model } }],
    });
    const result = await turns.execute('writer', 'Hello.', { sessionId: await session() });
    expect(result).toMatchObject({ reply: 'Hello.' });
  });
});

async function models(script: Script): Promise<{ provider: ScriptedProvider; model: LanguageModelV3 }> {
  const provider = await startProvider(script);
  const create = createOpenAICompatible({
    name: 'scripted',
    baseURL: provider.baseURL,
    supportsStructuredOutputs: true,
  });
  return { provider, model: create('model') };
}

/** A tool for a sub-agent, and the keys of its executions. */
function searching(): { tools: ToolSet; keys: string[] } {
  const keys: string[] = [];
  const search = tool({ inputSchema: z.object({}), execute: (_, options) => keys.push(idempotencyKeyOf(options)) });
  return { tools: { search }, keys };
}

/** Runs {@link RESEARCH}, and kills the worker once. */
async function research(
  store: KillableStores,
  kill?: Kill,
): Promise<{ writes: number; asked: number; keys: readonly string[] }> {
  const { provider, model } = await models(({ messages }) => {
    const isInner = textOf(messages[0]) === 'How many?';
    const results = messages.filter(({ role }) => role === 'tool').length;
    return RESEARCH[isInner ? 1 + results : 3 * results];
  });
  const { tools, keys } = searching();
  const chat = await startChat((turn) => recipes.answerWithResearch(turn, model, tools), {
    adapter: store.wrap(memoryAdapter()),
  });
  if (kill) store.kill(chat.sessionId, kill);
  expect(await chat.send('Hello.')).toMatchObject({ reply: 'It is 42.' });
  return { writes: store.writes(chat.sessionId), asked: provider.asked.length, keys };
}

function textIn(chunks: readonly UIChunk[]): string {
  return chunks.map(({ type, delta }) => (type === 'text-delta' ? String(delta) : '')).join('');
}

/** Answers in a second attempt, after a first one that fails at its end. */
async function answer(
  work: (turn: TurnContext) => Promise<TurnOutcome>,
): ReturnType<Awaited<ReturnType<typeof startChat>>['send']> {
  const chat = await startChat(async (turn) => {
    const outcome = await work(turn);
    failUntil(2, turn);
    return outcome;
  });
  return chat.send('Hello.');
}
