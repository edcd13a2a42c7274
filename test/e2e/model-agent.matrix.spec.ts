import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventSource } from 'eventsource';
import {
  getOrchestratorToken,
  type ConversationMessage,
  OrchestrationStateManager,
  type OrchestratorHandle,
  type Session,
  type TokenCounts,
  type TurnReport,
  type TurnResult,
} from 'nestjs-agent-sessions';
import { type TurnEnd } from 'nestjs-agent-sessions/client';
import { AppModule } from '../../sample/04-model-agent/app.module.js';
import { toMessages, toModelMessages } from '../../sample/04-model-agent/messages.js';
import { openModels } from '../../sample/04-model-agent/models.js';
import { OrdersService } from '../../sample/04-model-agent/orders.service.js';
import { type ChatMessage, type ChatUsage } from '../../sample/04-model-agent/scripted-answers.js';
import { type Asked, ScriptedProvider } from '../../sample/04-model-agent/scripted-provider.js';
import { SupportAgent } from '../../sample/04-model-agent/support.agent.js';
import { eventually } from '../support/eventually.js';

describe('an agent on a model', () => {
  let provider: ScriptedProvider;
  let app: INestApplication;
  let url: string;
  let headers: Record<string, string>;
  let sessionId: string;
  let source: EventSource | undefined;

  beforeEach(async () => {
    provider = await ScriptedProvider.start();
    const models = openModels({ baseURL: provider.baseURL, chat: 'large', cheap: 'small' });
    app = await NestFactory.create(AppModule.with(models), { logger: false });
    await app.listen(0, '127.0.0.1');
    url = await app.getUrl();
    headers = { 'x-user-id': 'ann', 'content-type': 'application/json' };
    sessionId = (await ask<Session>('/sessions', {})).id;
    headers['x-session-id'] = sessionId;
  });

  afterEach(async () => {
    source?.close();
    await app.close();
    await provider.stop();
  });

  it('BOT-03 asks a cheap model for the intent, by structured output, and the other one for the answer', async () => {
    expect((await say('Hello!')).reply).toMatch(/^Hello!/);
    expect((await say('Where is order 7?')).reply).toBe('Order 7, a lamp for 40 euros, is shipped.');

    expect(provider.asked.map(({ request }) => [request.model, kindOf(request)])).toEqual([
      ['small', 'route'],
      ['small', 'answer'],
      ['small', 'route'],
      ['large', 'answer with tools'],
      ['large', 'answer with tools'],
    ]);
    expect(provider.asked[0].request.response_format).toMatchObject({
      type: 'json_schema',
      json_schema: { schema: { properties: { intent: { enum: ['small-talk', 'orders'] } } } },
    });
  });

  it('TRN-30 TRN-32 streams what tools did and the answer word by word, in order', async () => {
    const { id } = await ask<{ id: string }>('/turns/submit', { input: 'Where are orders 7 and 8?' });
    const shown = open(id);
    const { reply } = (await eventually(() => shown.find(({ type }) => type === 'settled'))).data as TurnEnd;

    expect(shown.map(({ offset }) => offset)).toEqual(shown.map((_, at) => at + 1));
    const types = shown.map(({ type }) => type);
    expect(types.slice(0, 2)).toEqual(['tool', 'tool']);
    expect(new Set(types.slice(2, -1))).toEqual(new Set(['delta']));
    expect(types.length).toBeGreaterThan(10);
    expect(textOf(shown)).toBe(reply);
    expect(reply).toBe('Order 7, a lamp for 40 euros, is shipped. Order 8, a chair for 90 euros, is delivered.');
  });

  it('ORC-28 does not run a tool that the plan rejects, and reports this to the model', async () => {
    expect((await say('Refund order 7 at once!')).reply).toMatch(/Shall I refund it/);

    expect(app.get(OrdersService).payments).toEqual([]);
    const told = provider.asked[2].request.messages.at(-1);
    expect(told?.role).toBe('tool');
    expect(told?.content).toMatch(/^The tool refund_order is not allowed in step ask\./);
    expect((await say('Yes, please.')).reply).toBe('Done: 40 euros are on their way, receipt R-1.');
    expect(app.get(OrdersService).payments).toHaveLength(1);
  });

  it('BOT-30 continues in the next attempt after a provider disconnects in mid-answer, and pays nothing twice', async () => {
    await say('Refund order 7 at once!');
    provider.asked.length = 0;
    provider.cutNext();
    const { id } = await ask<{ id: string }>('/turns/submit', { input: 'Yes, please.' });
    const shown = open(id);
    const { reply } = (await eventually(() => shown.find(({ type }) => type === 'settled'))).data as TurnEnd;

    expect(reply).toBe('Done: 40 euros are on their way, receipt R-1.');
    expect(app.get(OrdersService).payments).toHaveLength(1);
    // The model is not called again for the route and the tool.
    expect(provider.asked.map(({ request, outcome }) => `${kindOf(request)} ${outcome}`)).toEqual([
      'route answered',
      'answer with tools answered',
      'answer with tools cut',
      'answer with tools answered',
    ]);
    expect(provider.asked[3].request.messages).toEqual(provider.asked[2].request.messages);
    const again = shown.findIndex(({ type }) => type === 'attempt');
    expect(textOf(shown.slice(0, again))).toBe('One moment, please. Done: 40 euros are on ');
    // Clients have dropped the shown part, so they get it again.
    expect(textOf(shown.slice(again))).toBe(`One moment, please. ${reply}`);
  });

  it('BOT-30 a tool that fails by itself fails the attempt, and runs again in the next one', async () => {
    const orders = app.get(OrdersService);
    const find = jest.spyOn(orders, 'find').mockImplementationOnce(() => {
      throw new Error('The shop is away.');
    });

    expect((await say('Where is order 7?')).reply).toBe('Order 7, a lamp for 40 euros, is shipped.');

    expect(find).toHaveBeenCalledTimes(2);
    expect(provider.asked).toHaveLength(3);
  });

  it('ORC-28 the model reads why a call failed: an unknown order, an invented tool', async () => {
    expect((await say('Where is order 9?')).reply).toBe('Done: There is no order 9.');
    expect((await say('How is the weather where order 7 is?')).reply).toBe('That I cannot tell.');
  });

  it('ORC-28 requires an answer in the eighth round from a model that keeps calling tools', async () => {
    const { reply } = await say('Look again and again where order 8 is.');

    expect(reply).toMatch(/^Order 8, a chair for 90 euros, is delivered\./);
    expect(provider.asked).toHaveLength(9);
    expect(provider.asked.slice(-2).map(({ request }) => request.tool_choice)).toEqual(['auto', 'none']);
  });

  it('BOT-40 stores the exchange in the conversation, and sends it to the model unchanged and complete', async () => {
    await say('Where are orders 7 and 8?');
    await say('Refund order 8 at once!');
    await say('Yes, please.');

    const log = await ask<ConversationMessage[]>('/messages?limit=500');
    expect(
      log.slice(0, 5).map(({ role, toolCalls, name }) => [role, toolCalls?.map((call) => call.name) ?? name]),
    ).toEqual([
      ['user', undefined],
      ['assistant', ['find_order', 'find_order']],
      ['tool', 'find_order'],
      ['tool', 'find_order'],
      ['assistant', undefined],
    ]);
    // The second request of a turn gets the exchange from the SDK, the requests of the next turn from the log.
    const inTurn = provider.asked[2].request.messages.slice(1);
    const [, later] = provider.asked.filter(({ request }) => kindOf(request) === 'route').slice(1);
    const next = provider.asked[provider.asked.indexOf(later) + 1].request.messages.slice(1, inTurn.length + 1);
    expect(inTurn.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool']);
    expect(next).toEqual(inTurn);
    for (const { request } of provider.asked) expectWholeExchanges(request.messages);
  });

  it('BOT-09 ORC-11 counts the tokens of the router and of every round, once, over a failure, and says why it went where', async () => {
    await say('Refund order 7 at once!');
    const before = provider.asked.length;
    provider.cutNext();
    const { id } = await say('Yes, please.');

    const { report } = await ask<{ report: TurnReport }>(`/turns/${id}`);
    const asked = provider.asked.slice(before);
    expect(asked.filter(({ usage }) => usage)).toHaveLength(asked.length - 1);
    expect(report).toMatchObject({
      status: 'awaiting-input',
      attempt: 2,
      endedBy: 'dispatch',
      iterations: [
        { decision: { source: 'router', intents: ['orders'], reasoning: 'The message is about an order.' } },
      ],
      usage: { ...usageOf(asked), router: usageOf(asked.slice(0, 1)), intents: usageOf(asked.slice(1)) },
    });
    const state = await app.get(OrchestrationStateManager, { strict: false }).getState(sessionId);
    expect(state?.cumulativeTokenUsage).toEqual(usageOf(provider.asked));
  });

  it('BOT-41 BOT-45 the cheap model summarizes old messages, and the agent continues with the summary', async () => {
    await say('Where are orders 7 and 8?');
    await say('Refund order 7 at once!');
    const agent = app.get<OrchestratorHandle>(getOrchestratorToken(SupportAgent), { strict: false });
    await agent.command('compact', { sessionId });
    const summed = provider.asked.at(-1);
    const { id, reply } = await say('Yes, please.');

    expect(summed?.request.model).toBe('small');
    expect(summed?.request.messages.at(-1)?.content).toMatch(
      /^user: Where are orders 7 and 8\?\nassistant: find_order\(\{"orderId":"7"\}\) find_order/,
    );
    const { messages } = provider.asked.at(-1)?.request ?? { messages: [] };
    expect(messages.slice(0, 3).map(({ role }) => role)).toEqual(['system', 'system', 'user']);
    expect(messages[1].content).toBe('The user has said: Where are orders 7 and 8?');
    for (const { request } of provider.asked) expectWholeExchanges(request.messages);
    expect(reply).toBe('Done: 40 euros are on their way, receipt R-1.');
    const { report } = await ask<{ report: TurnReport }>(`/turns/${id}`);
    expect(report.compaction).toMatchObject({ status: 'applied', usage: usageOf(provider.asked.slice(-4, -3)) });
  });

  it('BOT-06 TRN-09 a turn that is cancelled stops the model in mid-answer', async () => {
    provider.pauseMs = 1000;
    const { id } = await ask<{ id: string }>('/turns/submit', { input: 'Hello!' });
    const shown = open(id);
    await eventually(() => shown.some(({ type }) => type === 'delta'));
    await ask(`/turns/${id}/cancel`, {});
    const end = (await eventually(() => shown.find(({ type }) => type === 'settled'))).data;

    expect(end).toMatchObject({ status: 'cancelled', code: 'TURN_CANCELLED' });
    await eventually(() => provider.asked.at(-1)?.outcome === 'left');
    expect(provider.asked).toHaveLength(2);
  });

  it('NST-11 does not show turns of other users', async () => {
    const { id } = await say('Hello!');
    headers['x-session-id'] = (await ask<Session>('/sessions', {})).id;

    expect(await ask(`/turns/${id}`)).toMatchObject({ statusCode: 404, code: 'TURN_NOT_FOUND' });
    expect(await ask(`/turns/${id}/cancel`, {})).toMatchObject({ statusCode: 404, code: 'TURN_NOT_FOUND' });
  });

  it('BOT-30 the sample runs with its start command', () => {
    const main = join(process.cwd(), 'build/sample/04-model-agent/main.js');
    const env = { PATH: process.env.PATH, PORT: '0' };

    const printed = execFileSync(process.execPath, [main, '--exit'], { encoding: 'utf8', timeout: 60_000, env });

    expect(printed).toContain('user    Where are orders 7 and 8?\ntool    find_order: {"id":"7"');
    expect(printed).toContain('tool    refund_order: The tool refund_order is not allowed in step ask.');
    expect(printed).toContain('(the provider hung up; attempt 2)');
    expect(printed).toContain('agent   Done: 40 euros are on their way, receipt R-1.\n');
    expect(printed).toMatch(/report {2}orders: The message is about an order\. \d+ tokens, attempt 2\n/);
    expect(printed).toMatch(/The bank was asked for 1 payment\.\n$/);
  });

  function say(input: string): Promise<TurnResult> {
    return ask('/turns', { input });
  }

  /** @param body makes it a POST */
  async function ask<T>(path: string, body?: object): Promise<T> {
    const post = body ? { method: 'POST', body: JSON.stringify(body) } : {};
    return (await (await fetch(`${url}${path}`, { headers, ...post })).json()) as T;
  }

  function open(turnId: string): Shown[] {
    const shown: Shown[] = [];
    source = new EventSource(`${url}/turns/${turnId}/events`, {
      fetch: (asked, init) => fetch(asked, { ...(init as RequestInit), headers: { ...init.headers, ...headers } }),
    });
    for (const type of ['delta', 'tool', 'attempt', 'settled']) {
      source.addEventListener(type, ({ lastEventId, data }) =>
        shown.push({ offset: Number(lastEventId), type, data: JSON.parse(data as string) as unknown }),
      );
    }
    return shown;
  }
});

describe("the sample's messages", () => {
  it('STA-03 become messages of the SDK and are restored', () => {
    const said = toMessages([
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hm.' },
          { type: 'text', text: 'Let me see.' },
          { type: 'tool-call', toolCallId: '1', toolName: 'find', input: { id: '7' } },
          { type: 'tool-call', toolCallId: '2', toolName: 'find', input: {} },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: '1', toolName: 'find', output: { type: 'json', value: { found: true } } },
          { type: 'tool-result', toolCallId: '2', toolName: 'find', output: { type: 'error-text', value: 'No id.' } },
        ],
      },
      { role: 'assistant', content: 'Here it is.' },
    ]);

    expect(said).toEqual([
      {
        role: 'assistant',
        content: 'Let me see.',
        toolCalls: [
          { id: '1', name: 'find', arguments: { id: '7' } },
          { id: '2', name: 'find', arguments: {} },
        ],
      },
      { role: 'tool', name: 'find', toolCallId: '1', content: '{"found":true}' },
      { role: 'tool', name: 'find', toolCallId: '2', content: 'No id.' },
      { role: 'assistant', content: 'Here it is.' },
    ]);
    const told = toModelMessages([
      { role: 'system', content: 'A summary.' },
      { role: 'user', content: 'Hm?' },
      ...said,
    ]);
    expect(told.slice(0, 2)).toEqual([
      { role: 'system', content: 'A summary.' },
      { role: 'user', content: 'Hm?' },
    ]);
    expect(toMessages(told.slice(2) as Parameters<typeof toMessages>[0])).toEqual(said);
  });
});

interface Shown {
  readonly offset: number;
  readonly type: string;
  readonly data: unknown;
}

function textOf(shown: readonly Shown[]): string {
  return shown.map(({ type, data }) => (type === 'delta' ? (data as { text: string }).text : '')).join('');
}

function kindOf({ response_format: format, tools }: Asked['request']): string {
  return format ? 'route' : tools ? 'answer with tools' : 'answer';
}

/** No result without its call before it, no call without its result after it. */
function expectWholeExchanges(messages: readonly ChatMessage[]): void {
  const open = new Set<string>();
  for (const { role, tool_calls: calls = [], tool_call_id: id = '' } of messages) {
    if (role === 'tool') expect(open.delete(id)).toBe(true);
    else expect(open).toEqual(new Set());
    calls.forEach((call) => open.add(call.id));
  }
  expect(open).toEqual(new Set());
}

function usageOf(asked: readonly Asked[]): TokenCounts {
  const sum = (count: (usage: ChatUsage) => number): number =>
    asked.reduce((total, { usage }) => total + (usage ? count(usage) : 0), 0);
  return {
    promptTokens: sum((usage) => usage.prompt_tokens),
    completionTokens: sum((usage) => usage.completion_tokens),
    totalTokens: sum((usage) => usage.total_tokens),
  };
}
