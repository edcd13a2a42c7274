import 'reflect-metadata';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import {
  defineOrchestrator,
  memoryAdapter,
  type OrchestratorRef,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  type TurnContext,
  type TurnEvent,
  type TurnOutcome,
  TurnSettledError,
} from 'nestjs-agent-sessions';
import { type ChatMessages, type StoppedChat } from 'nestjs-agent-sessions/http';
import { scriptedModel, type ScriptedModel } from 'nestjs-agent-sessions/testing';
import { z } from 'zod';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { NOT_APPROVED } from '../../lib/chat/stopped-message.js';
import { chunksOf as chunksIn } from '../../lib/chat/ui-events.js';
import { type UIPart } from '../../lib/chat/ui-message.js';
import { uiStream } from '../../lib/chat/ui-stream.js';
import { approvalSignal } from '../../lib/chat/user-signals.js';
import { comparable } from '../chat/clients.js';
import { type FrontEnd, frontEnd, textOf, toolsOf, VERSIONS } from '../chat/front-ends.js';
import { eventually } from '../support/eventually.js';
import { type Gate, gate, rejection, startApplication } from '../support/running-application.js';
import { type ChatApp, startChatApp } from './chat-app.js';

const SDKS = { 6: ai6, 7: ai7 as unknown as typeof ai6 };
const ANN = { 'x-user-id': 'ann' };
const TURNS = {
  retry: { attempts: 3, backoff: { type: 'fixed' as const, delayMs: 1 } },
  events: { batchMs: 0 },
};

interface Shop {
  readonly orchestrator: OrchestratorRef;
  readonly answer: (turn: TurnContext) => Promise<TurnOutcome>;
  readonly model: ScriptedModel;
  /** The orders that were refunded. */
  readonly refunded: string[];
  /** Ends the tool `count`. */
  readonly counted: Gate;
  /** The number of answers after a refund that fail. */
  failures: number;
}

/** An assistant that refunds orders with approvals: `Refund 7 9.` needs two. It counts before, if it is told to. */
function shop(sdk: typeof ai6): Shop {
  const refunded: string[] = [];
  const counted = gate();
  const model = scriptedModel(({ said, step }) => {
    if (!said.startsWith('Refund')) return `You said: ${said}`;
    if (step > 0) {
      own.failures -= 1;
      return own.failures >= 0 ? new Error('The provider is overloaded.') : 'It is done.';
    }
    const refunds = (said.match(/\d+/g) ?? []).map((order) => ({ name: 'refund', input: { order } }));
    return { text: 'One moment.', calls: [...(said.includes('count') ? [{ name: 'count' }] : []), ...refunds] };
  });
  const refund = sdk.tool({
    inputSchema: z.object({ order: z.string() }),
    needsApproval: true,
    execute: ({ order }) => {
      refunded.push(order);
      return 'refunded';
    },
  });
  const count = sdk.tool({
    inputSchema: z.object({}),
    execute: async (_, { abortSignal }) => {
      await counted.pass(abortSignal);
      return 2;
    },
  });
  const answer = (turn: TurnContext) => streamReplyWith(sdk, turn, { model, tools: { count, refund } });
  const orchestrator = defineOrchestrator({ name: 'shop', intents: { answer } });
  const own: Shop = { orchestrator, answer, model, refunded, counted, failures: 0 };
  return own;
}

describe.each(VERSIONS)('approvals of chats, with ai %i', (version) => {
  const sdk = SDKS[version];

  it('AIS-32 denies a pending approval when the answer is stopped, and refuses a later one', async () => {
    const { app, open, orders, model } = await start();
    const chat = open();
    await chat.sendMessage({ text: 'Refund 7.' });
    expect(toolsOf(chat.lastMessage)).toEqual(['tool-refund: approval-requested']);
    expect(await app.json<StoppedChat>('POST', `/${chat.id}/stop`)).toEqual({ stopped: true });

    const stored = await storedIn(app, chat);
    expect(callsOf(stored.at(-1)?.parts)).toMatchObject([
      { state: 'output-denied', approval: { approved: false, reason: NOT_APPROVED } },
    ]);
    await sdk.validateUIMessages({ messages: stored });

    await decide(chat);
    expect(await refusalOf(chat)).toMatchObject({ statusCode: 409, code: 'TURN_SETTLED' });
    expect(orders.refunded).toEqual([]);

    const reloaded = open(chat.id, stored);
    await reloaded.sendMessage({ text: 'Thanks.' });
    expect(textOf(reloaded.lastMessage)).toBe('You said: Thanks.');
    expect(resultsIn(model)).toEqual([NOT_APPROVED]);
  });

  it('AIS-32 denies a pending approval when the user sends another message', async () => {
    const { app, open, orders, model } = await start();
    const chat = open();
    await chat.sendMessage({ text: 'Refund 7.' });
    const other = open(chat.id, chat.messages);
    await chat.sendMessage({ text: 'Wait.' });
    const stored = await storedIn(app, chat);
    expect(toolsOf(stored[1])).toEqual(['tool-refund: output-denied']);
    expect(resultsIn(model)).toEqual([NOT_APPROVED]);
    await decide(other);
    expect(await refusalOf(other)).toMatchObject({ code: 'TURN_SETTLED' });
    expect(orders.refunded).toEqual([]);
  });

  it.each(['revoke', 'expire'] as const)('AIS-32 refuses an approval after %s', async (how) => {
    const { app, open, orders } = await start();
    const chat = open();
    await chat.sendMessage({ text: 'Refund 7.' });
    const [{ toolCallId }] = callsOf(chat.lastMessage?.parts);
    await app.sessions[how](chat.id);
    const [turn] = await app.turns.list({ sessionId: chat.id });
    expect(turn.status).toBe('cancelled');
    await decide(chat);
    expect(await refusalOf(chat)).toMatchObject({ statusCode: 410, code: 'SESSION_STATE' });
    const signal = approvalSignal(toolCallId as string);
    await rejection(app.turns.signal(turn.id, signal, { approved: true }), TurnSettledError);
    expect(orders.refunded).toEqual([]);
  });

  it('AIS-16 continues after an approval if the handler has written data before the answer', async () => {
    const orders = shop(sdk);
    const orchestrator = defineOrchestrator({
      name: 'shop',
      intents: {
        answer: async (turn: TurnContext) => {
          const ui = await uiStream(turn);
          await ui.write({ type: 'data-progress', id: 'p', data: 1 });
          return orders.answer(turn);
        },
      },
    });
    const app = await startChatApp({ orchestrators: [orchestrator], chat: { protocol: version }, turns: TURNS });
    const chat = opened(app);
    await chat.sendMessage({ text: 'Refund 7.' });
    const [{ id }] = await app.turns.list({ sessionId: chat.id });
    expect(chat.lastMessage?.id).toBe(id);
    await decide(chat);
    await eventually(() => chat.status === 'ready' && textOf(chat.lastMessage).includes('It is done.'));
    expect(orders.refunded).toEqual(['7']);
    const stored = await storedIn(app, chat);
    expect(stored.map(comparable)).toEqual(chat.messages.map(comparable));
    expect(stored[1].parts[0]).toEqual({ type: 'data-progress', id: 'p', data: 1 });
    await chat.regenerate({ messageId: id });
    expect(chat.status).toBe('ready');
  });

  it('AIS-32 denies an approval in the stream of an answer that is stopped while another tool runs', async () => {
    const { app, open, orders } = await start();
    const chat = open();
    const sent = chat.sendMessage({ text: 'Refund 7, but count first.' });
    await eventually(() => toolsOf(chat.lastMessage).includes('tool-refund: approval-requested'));
    expect(await app.json<StoppedChat>('POST', `/${chat.id}/stop`)).toEqual({ stopped: true });
    await sent;
    expect(chat.status).toBe('ready');
    expect(toolsOf(chat.lastMessage).at(-1)).toBe('tool-refund: output-denied');
    expect(toolsOf((await storedIn(app, chat))[1])).toEqual(['tool-count: output-error', 'tool-refund: output-denied']);
    orders.counted.open();
  });

  it('AIS-32 does not ask again for an approval that the turn has received, after a reload and a restart', async () => {
    const orders = shop(sdk);
    const adapter = memoryAdapter();
    const orchestrators = [orders.orchestrator];
    const work = () => startApplication({ adapter, role: 'work', orchestrators, turns: TURNS });
    const web = () =>
      startChatApp({ adapter, role: 'submit', orchestrators, turns: TURNS, chat: { protocol: version } });
    const first = await web();
    const worker = await work();
    const chat = opened(first);
    await chat.sendMessage({ text: 'Refund 7.' });
    await worker.close();
    await decide(chat);
    const [{ id: turnId }] = await first.turns.list({ sessionId: chat.id });
    await eventually(async () => (await first.turns.get(turnId))?.status === 'queued');

    const second = await web();
    const tab = opened(second, chat.id, await storedIn(second, chat));
    const resumed = tab.resumeStream();
    // Version 6 has no chunk for the answer of the user, so that the call is shown as running.
    const state = version === 6 ? 'input-available' : 'approval-responded';
    await eventually(() => toolsOf(tab.lastMessage).includes(`tool-refund: ${state}`));
    expect(tab.status).toBe('streaming');
    await work();
    await resumed;
    await eventually(() => chat.status === 'ready');
    for (const each of [tab, chat]) {
      expect(toolsOf(each.lastMessage)).toEqual(['tool-refund: output-available']);
      expect(textOf(each.lastMessage)).toBe('One moment.It is done.');
    }
    expect(orders.refunded).toEqual(['7']);
  });

  it('AIS-16 sends an approval once while another reader of the answer does not read', async () => {
    const orders = shop(sdk);
    const adapter = memoryAdapter();
    const orchestrators = [orders.orchestrator];
    const app = await startChatApp({ adapter, role: 'submit', orchestrators, chat: { protocol: version } });
    const worker = await startApplication({ adapter, role: 'work', orchestrators });
    const sent: string[] = [];
    const counting: typeof fetch = (input, init) => {
      sent.push(init?.method ?? 'GET');
      return fetch(input, init);
    };
    const chat = frontEnd({ version, api: app.url, headers: ANN, fetch: counting });
    await chat.sendMessage({ text: 'Refund 7.' });
    await worker.close();
    const [{ id: turnId }] = await app.turns.list({ sessionId: chat.id });
    const stalled = app.turns.readEvents(turnId)[Symbol.asyncIterator]();
    while (((await stalled.next()).value as TurnEvent).type !== 'waiting');

    await decide(chat);
    await eventually(() => sent.length >= 2);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(sent).toEqual(['POST', 'POST']);
    await startApplication({ adapter, role: 'work', orchestrators });
    await eventually(() => chat.status === 'ready');
    expect(textOf(chat.lastMessage)).toBe('One moment.It is done.');
    expect(sent).toEqual(['POST', 'POST']);
    await stalled.return?.();
  });

  it('AIS-32 keeps a received approval as interrupted if the answer is stopped before it continues', async () => {
    const orders = shop(sdk);
    const adapter = memoryAdapter();
    const orchestrators = [orders.orchestrator];
    const app = await startChatApp({ adapter, role: 'submit', orchestrators, chat: { protocol: version } });
    const worker = await startApplication({ adapter, role: 'work', orchestrators });
    const chat = opened(app);
    await chat.sendMessage({ text: 'Refund 7.' });
    await worker.close();
    await decide(chat);
    const [{ id: turnId }] = await app.turns.list({ sessionId: chat.id });
    await eventually(async () => (await app.turns.get(turnId))?.status === 'queued');
    expect(await app.json<StoppedChat>('POST', `/${chat.id}/stop`)).toEqual({ stopped: true });
    await eventually(() => chat.status === 'ready');
    expect(toolsOf((await storedIn(app, chat))[1])).toEqual(['tool-refund: output-error']);
  });

  it('AIS-32 keeps an approval as interrupted if the answer is stopped while its worker runs another tool', async () => {
    const { app, open, orders } = await start();
    const chat = open();
    const sent = chat.sendMessage({ text: 'Refund 7, but count first.' });
    await eventually(() => toolsOf(chat.lastMessage).includes('tool-refund: approval-requested'));
    const [{ id: turnId }] = await app.turns.list({ sessionId: chat.id });
    const { toolCallId } = callsOf(chat.lastMessage?.parts).at(-1)!;
    await app.turns.signal(turnId, approvalSignal(toolCallId as string), { approved: true });
    expect(await app.json<StoppedChat>('POST', `/${chat.id}/stop`)).toEqual({ stopped: true });
    await sent;
    expect(toolsOf((await storedIn(app, chat))[1])).toEqual(['tool-count: output-error', 'tool-refund: output-error']);
    orders.counted.open();
  });

  it('AIS-32 asks only for the missing one of two approvals', async () => {
    const { app, open, orders } = await start();
    const chat = open();
    await chat.sendMessage({ text: 'Refund 7 9.' });
    const [{ toolCallId }] = callsOf(chat.lastMessage?.parts);
    const [{ id: turnId }] = await app.turns.list({ sessionId: chat.id });
    await app.turns.signal(turnId, approvalSignal(toolCallId as string), { approved: true });
    await eventually(async () => {
      const turn = await app.turns.get(turnId);
      return turn?.status === 'waiting' && turn.waitingFor?.signal !== approvalSignal(toolCallId as string);
    });
    const tab = open(chat.id, await storedIn(app, chat));
    await tab.resumeStream();
    expect(tab.status).toBe('ready');
    // Clients of version 6 send their answers when they have all of them. The first one counts.
    const first = version === 6 ? 'approval-requested' : 'approval-responded';
    expect(toolsOf(tab.lastMessage)).toEqual([`tool-refund: ${first}`, 'tool-refund: approval-requested']);
    await decide(tab);
    await eventually(() => textOf(tab.lastMessage).includes('It is done.'));
    expect(orders.refunded.toSorted()).toEqual(['7', '9']);
  });

  it('AIS-38 AIS-32 continues an answer with an approval that is sent after a later message', async () => {
    const { app, open, orders } = await start();
    const chat = open();
    const first = chat.sendMessage({ text: 'Refund 7, but count first.' });
    await eventually(() => toolsOf(chat.lastMessage).includes('tool-refund: approval-requested'));
    const second = chat.sendMessage({ text: 'Thanks.' });
    await eventually(async () => (await app.turns.list({ sessionId: chat.id })).length === 2);
    orders.counted.open();
    await first;
    const [, answer, message] = chat.messages;
    expect(textOf(message)).toBe('Thanks.');
    const { approval } = callsOf(answer.parts).at(-1)!;
    await chat.addToolApprovalResponse({ id: (approval as { id: string }).id, approved: true });
    // The last message is of the user, so the page does not send the approval automatically.
    await chat.sendMessage();
    await second;
    expect([chat.status, chat.error, orders.refunded]).toEqual(['ready', undefined, ['7']]);
    expect(chat.messages.map(textOf)).toEqual([
      ...['Refund 7, but count first.', 'One moment.It is done.'],
      ...['Thanks.', 'You said: Thanks.'],
    ]);
    const turns = await app.turns.list({ sessionId: chat.id });
    expect(turns.map(({ status, request }) => [status, request.replaces])).toEqual([
      ['awaiting-input', undefined],
      ['awaiting-input', undefined],
    ]);
    expect((await storedIn(app, chat)).map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
  });

  it('AIS-32 does not ask again in a retry', async () => {
    const { app, open, orders } = await start();
    orders.failures = 1;
    const chat = open();
    await chat.sendMessage({ text: 'Refund 7.' });
    await decide(chat);
    await eventually(() => textOf(chat.lastMessage).includes('It is done.'));
    const [turn] = await app.turns.list({ sessionId: chat.id });
    expect(turn).toMatchObject({ status: 'awaiting-input', failures: 1 });
    const { events } = app.app.get<SessionsAdapter>(SESSIONS_ADAPTER);
    const chunks = chunksIn(await events.read(turn.id, 0, 500));
    expect(chunks.filter(({ type }) => type === 'tool-approval-request')).toHaveLength(1);
    expect(orders.refunded).toEqual(['7']);
  });

  async function start() {
    const orders = shop(sdk);
    const app = await startChatApp({
      orchestrators: [orders.orchestrator],
      chat: { protocol: version },
      turns: TURNS,
    });
    const open = (id?: string, messages?: FrontEnd['messages']) => opened(app, id, messages);
    return { app, open, orders, model: orders.model };
  }

  /** Opens a page. */
  function opened(app: ChatApp, id?: string, messages: FrontEnd['messages'] = []): FrontEnd {
    return frontEnd({ version, api: app.url, headers: ANN, messages, ...(id === undefined ? {} : { id }) });
  }
});

/** Approves all requests that a page shows. */
async function decide(chat: FrontEnd): Promise<void> {
  for (const { state, approval } of callsOf(chat.lastMessage?.parts)) {
    if (state !== 'approval-requested') continue;
    const { id } = approval as { id: string };
    await chat.addToolApprovalResponse({ id, approved: true });
  }
}

/** Returns the body of the response that a page shows as an error. */
async function refusalOf(chat: FrontEnd): Promise<unknown> {
  const error = await eventually(() => chat.error);
  expect(chat.status).toBe('error');
  return JSON.parse(error.message) as unknown;
}

async function storedIn(app: ChatApp, { id }: FrontEnd): Promise<FrontEnd['messages']> {
  const { messages } = await app.json<ChatMessages>('GET', `/${id}/messages`);
  return [...messages];
}

function callsOf(parts: readonly UIPart[] = []): UIPart[] {
  return parts.filter(({ toolCallId }) => toolCallId !== undefined);
}

/** Returns the results of tools in the last prompt of a model. */
function resultsIn(model: ScriptedModel): unknown[] {
  const { prompt } = model.calls.at(-1)!;
  const parts = prompt.flatMap(({ role, content }) => (role === 'tool' ? (content as unknown as UIPart[]) : []));
  return parts.map(({ output }) => (output as { value: unknown }).value);
}
