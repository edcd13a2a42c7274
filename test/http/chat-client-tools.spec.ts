import 'reflect-metadata';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import { defineOrchestrator, memoryAdapter, reply, type TurnContext } from 'nestjs-agent-sessions';
import { type ChatMessages, type StoppedChat } from 'nestjs-agent-sessions/http';
import { scriptedModel } from 'nestjs-agent-sessions/testing';
import { z } from 'zod';
import { fromUIMessage } from '../../lib/ai-sdk/index.js';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { uiStream } from '../../lib/chat/ui-stream.js';
import { INTERRUPTED } from '../../lib/ledger/interrupted-result.js';
import { type FrontEnd, frontEnd, textOf, toolsOf, VERSIONS } from '../chat/front-ends.js';
import { eventually } from '../support/eventually.js';
import { type Gate, gate, startApplication } from '../support/running-application.js';
import { type ChatApp, chunksOf, said, startChatApp } from './chat-app.js';

const SDKS = { 6: ai6, 7: ai7 as unknown as typeof ai6 };
const ANN = { 'x-user-id': 'ann' };

describe.each(VERSIONS)('tools that a page runs, with ai %i', (version) => {
  const sdk = SDKS[version];

  it('AIS-39 continue the answer with their output after a restart of the server and the page', async () => {
    const { orchestrator } = guide();
    const adapter = memoryAdapter();
    const first = await startChatApp({ adapter, orchestrators: [orchestrator], chat: { protocol: version } });
    const before = open(first);
    await before.sendMessage({ text: 'Where am I?' });
    expect(toolsOf(before.lastMessage)).toEqual(['tool-locate: input-available']);
    await first.close();

    const app = await startChatApp({ adapter, orchestrators: [orchestrator], chat: { protocol: version } });
    const { messages } = await app.json<ChatMessages>('GET', `/${before.id}/messages`);
    const chat = open(app, { id: before.id, messages });
    await chat.resumeStream();
    expect(toolsOf(chat.lastMessage)).toEqual(['tool-locate: input-available']);
    await locate(chat, 'Paris');
    await eventually(() => chat.status === 'ready' && textOf(chat.lastMessage).includes('You are'));
    expect(chat.messages.map(({ id }) => id)).toEqual([messages[0].id, before.lastMessage!.id]);
    expect(textOf(chat.lastMessage)).toBe('One moment.You are in Paris.');
  });

  it('AIS-39 are shown with their output by a page that loads before the answer continues', async () => {
    const { app, chat, work } = await withoutWorker();
    const { messages } = await app.json<ChatMessages>('GET', `/${chat.id}/messages`);
    const tab = open(app, { id: chat.id, messages });
    const resumed = tab.resumeStream();
    await eventually(() => toolsOf(tab.lastMessage).includes('tool-locate: output-available'));
    expect(tab.status).toBe('streaming');
    await work();
    await resumed;
    await eventually(() => chat.status === 'ready');
    for (const page of [tab, chat]) {
      expect(toolsOf(page.lastMessage)).toEqual(['tool-locate: output-available']);
      expect(textOf(page.lastMessage)).toBe('One moment.You are in Paris.');
    }
  });

  it('AIS-39 keep their output if the answer is stopped before it continues', async () => {
    const { app, chat, model, work } = await withoutWorker();
    expect(await app.json<StoppedChat>('POST', `/${chat.id}/stop`)).toEqual({ stopped: true });
    await eventually(() => chat.status === 'ready');
    const { messages } = await app.json<ChatMessages>('GET', `/${chat.id}/messages`);
    expect(messages[1].parts.at(-1)).toMatchObject({ state: 'output-available', output: 'Paris' });
    await work();
    await chunksOf(await app.ask('POST', `/${chat.id}`, { body: { messages: [said('Never mind.')] } }));
    const results = JSON.stringify(model.calls.at(-1)!.prompt.filter(({ role }) => role === 'tool'));
    expect([results.includes('Paris'), results.includes(INTERRUPTED)]).toEqual([true, false]);
  });

  it('AIS-39 are interrupted by a message of another tab, and their output is refused then', async () => {
    const { orchestrator, model } = guide();
    const app = await startChatApp({ orchestrators: [orchestrator], chat: { protocol: version } });
    const chat = open(app);
    await chat.sendMessage({ text: 'Where am I?' });
    await chunksOf(await app.ask('POST', `/${chat.id}`, { body: { messages: [said('Never mind.')] } }));
    const results = model.calls.at(-1)!.prompt.filter(({ role }) => role === 'tool');
    expect(JSON.stringify(results).split(INTERRUPTED)).toHaveLength(2);
    await locate(chat, 'Paris');
    await eventually(() => chat.status === 'error');
    expect(JSON.parse(chat.error!.message)).toMatchObject({ statusCode: 409, code: 'TURN_SETTLED' });
    const { messages } = await app.json<ChatMessages>('GET', `/${chat.id}/messages`);
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(toolsOf(messages[1])).toEqual(['tool-locate: output-error']);
  });

  it('AIS-39 are refused once, and not sent again, if a handler has ended its turn with an open call', async () => {
    const ending = defineOrchestrator({
      name: 'ending',
      intents: {
        answer: async (turn: TurnContext) => {
          const ui = await uiStream(turn);
          for (const chunk of OPEN_CALL) await ui.write(chunk);
          return reply('See there.', { messages: [fromUIMessage(ui.message as never)] });
        },
      },
    });
    const app = await startChatApp({ orchestrators: [ending], chat: { protocol: version } });
    let requests = 0;
    const counting: typeof fetch = (input, init) => {
      requests += 1;
      return fetch(input, init);
    };
    const chat = open(app, { fetch: counting });
    await chat.sendMessage({ text: 'Where am I?' });
    expect(toolsOf(chat.lastMessage)).toEqual(['tool-locate: input-available']);
    await locate(chat, 'Paris');
    await eventually(() => chat.status === 'error');
    expect(JSON.parse(chat.error!.message)).toMatchObject({ code: 'TURN_SETTLED' });
    expect(requests).toBe(2);
  });

  /** Returns a page that has sent the output of its call, while no worker runs. */
  async function withoutWorker() {
    const { orchestrator, model } = guide();
    const options = { adapter: memoryAdapter(), orchestrators: [orchestrator] };
    const app = await startChatApp({ ...options, role: 'submit', chat: { protocol: version } });
    const work = () => startApplication({ ...options, role: 'work' });
    const worker = await work();
    const chat = open(app);
    await chat.sendMessage({ text: 'Where am I?' });
    await worker.close();
    await locate(chat, 'Paris');
    const [{ id }] = await app.turns.list({ sessionId: chat.id });
    await eventually(async () => (await app.turns.get(id))?.status === 'queued');
    return { app, chat, model, work };
  }

  /** Returns an assistant that asks the page where the user is. */
  function guide() {
    const model = scriptedModel(({ said: text, step, options }) => {
      if (text.startsWith('Never')) return 'All right.';
      if (step === 0) return { text: 'One moment.', calls: [{ name: 'locate' }] };
      const place = /Paris|Rome/.exec(JSON.stringify(options))?.[0];
      return `You are in ${place}.`;
    });
    const locateTool = sdk.tool({ description: 'Finds the user.', inputSchema: z.object({}) });
    const orchestrator = defineOrchestrator({
      name: 'guide',
      intents: { answer: (turn: TurnContext) => streamReplyWith(sdk, turn, { model, tools: { locate: locateTool } }) },
    });
    return { orchestrator, model };
  }

  function open(
    app: ChatApp,
    options: { id?: string; messages?: ChatMessages['messages']; fetch?: typeof fetch } = {},
  ): FrontEnd {
    return frontEnd({ version, api: app.url, headers: ANN, ...options });
  }
});

describe.each(VERSIONS)('results of tools that the server runs, with ai %i', (version) => {
  const sdk = SDKS[version];

  it.each([
    ['a call', sdk.hasToolCall('locate')],
    ['the limit of steps', sdk.stepCountIs(1)],
  ])('AIS-39 are not sent by the page if %s ends the answer', async (_, stopWhen) => {
    const { app, page, requests } = await start({ stopWhen });
    const chat = page();
    await chat.sendMessage({ text: 'Where am I?' });
    expect([chat.status, requests]).toEqual(['ready', ['POST']]);
    expect(toolsOf(chat.lastMessage)).toEqual(['tool-locate: output-available']);
    const { messages } = await app.json<ChatMessages>('GET', `/${chat.id}/messages`);
    expect(messages[1].parts.map(({ type }) => type)).toEqual(['step-start', 'text', 'tool-locate']);

    await chat.sendMessage({ text: 'Thanks.' });
    expect([chat.status, requests.length, chat.messages.length]).toEqual(['ready', 2, 4]);
  });

  it('AIS-39 are not sent by any page if the answer is stopped before its next step', async () => {
    const next = gate();
    const { app, page, requests } = await start({ next });
    const chat = page();
    const sent = chat.sendMessage({ text: 'Where am I?' });
    await eventually(() => toolsOf(chat.lastMessage).includes('tool-locate: output-available'));
    const tab = page(chat.id);
    const resumed = tab.resumeStream();
    await eventually(() => toolsOf(tab.lastMessage).includes('tool-locate: output-available'));
    expect(await app.json<StoppedChat>('POST', `/${chat.id}/stop`)).toEqual({ stopped: true });
    await Promise.all([sent, resumed]);
    next.open();
    expect([chat.status, tab.status, requests]).toEqual(['ready', 'ready', ['POST', 'GET']]);
  });

  /** Starts an assistant that finds the user itself. `next` delays its second call of the model. */
  async function start({ stopWhen, next }: { stopWhen?: ReturnType<typeof ai6.stepCountIs>; next?: Gate }) {
    const model = scriptedModel(async ({ said: text, step }) => {
      if (text.startsWith('Thanks')) return 'You are welcome.';
      if (step === 0) return { text: 'One moment.', calls: [{ name: 'locate' }] };
      await next?.pass();
      return 'You are in Paris.';
    });
    const locateTool = sdk.tool({ inputSchema: z.object({}), execute: () => 'Paris' });
    const orchestrator = defineOrchestrator({
      name: 'guide',
      intents: {
        answer: (turn: TurnContext) =>
          streamReplyWith(sdk, turn, { model, tools: { locate: locateTool }, ...(stopWhen && { stopWhen }) }),
      },
    });
    const app = await startChatApp({ orchestrators: [orchestrator], chat: { protocol: version } });
    const requests: string[] = [];
    const counting: typeof fetch = (input, init) => {
      requests.push(init?.method ?? 'GET');
      return fetch(input, init);
    };
    const page = (id?: string): FrontEnd =>
      frontEnd({ version, api: app.url, headers: ANN, fetch: counting, ...(id === undefined ? {} : { id }) });
    return { app, page, requests };
  }
});

/** An answer that ends with a call of the page's tool. */
const OPEN_CALL: readonly UIChunk[] = [
  { type: 'start' },
  { type: 'start-step' },
  { type: 'tool-input-available', toolCallId: 'call-1', toolName: 'locate', input: {} },
  { type: 'finish-step' },
  { type: 'finish' },
];

/** Gives the chat the output of its open call. */
async function locate(chat: FrontEnd, output: unknown): Promise<void> {
  const { toolCallId } = chat.lastMessage!.parts.find(({ state }) => state === 'input-available')!;
  await chat.addToolOutput({ tool: 'locate', toolCallId: toolCallId as string, output });
}
