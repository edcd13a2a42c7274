import { randomUUID } from 'node:crypto';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import {
  defineOrchestrator,
  memoryAdapter,
  type OrchestratorRef,
  type SessionsAdapter,
  StoreUnavailableError,
  type TurnContext,
} from 'nestjs-agent-sessions';
import { scriptedModel, type ScriptedModel } from 'nestjs-agent-sessions/testing';
import { z } from 'zod';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { ChatResponses } from '../../lib/http/chat/chat-responses.js';
import { ChatClient, toChatSdk } from '../../lib/testing/chat/chat-client.js';
import { assertShown, comparable, textsOf } from '../../lib/testing/chat/shown-answer.js';
import { VERSIONS } from '../chat/front-ends.js';
import { eventually } from '../support/eventually.js';
import { type Gate, gate, startApplication } from '../support/running-application.js';
import { describeServers } from '../support/servers.js';
import { adapterOf, optionsOn } from '../support/stores.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { type ChatApp, said, startChatApp } from './chat-app.js';

const SDKS = { 6: ai6, 7: ai7 as unknown as typeof ai6 };
/** Outages end attempts. A worker that could not release its turn holds it until its lease ends. */
const TURNS = {
  retry: { attempts: 20, backoff: { type: 'fixed' as const, delayMs: 20 } },
  events: { batchMs: 0 },
  leaseMs: 1000,
};
const PORTS = ['sessions', 'turns', 'events', 'checkpoints', 'conversations', 'state', 'leases'] as const;

/** A store that can be unavailable. */
class Outage {
  isDown = false;
  /** The number of calls that failed. */
  failures = 0;
  /** The name of a method whose next call succeeds, although its caller gets an error. */
  loses: string | undefined;

  wrap(adapter: SessionsAdapter): SessionsAdapter {
    const ports = PORTS.map((port) => [port, { value: this.failing(adapter[port]) }]);
    return Object.create(adapter, Object.fromEntries(ports) as PropertyDescriptorMap) as SessionsAdapter;
  }

  private failing<T extends object>(port: T): T {
    return new Proxy(port, {
      get: (_, name) => {
        const method: unknown = Reflect.get(port, name);
        if (typeof method !== 'function' || name === 'subscribe') return method;
        return async (...args: unknown[]): Promise<unknown> => {
          const isLost = this.loses === name;
          if (isLost) {
            this.loses = undefined;
            this.isDown = true;
            await Reflect.apply(method, port, args);
          }
          if (!this.isDown) return Reflect.apply(method, port, args);
          this.failures += 1;
          throw new StoreUnavailableError('The store is down.', { maybeApplied: isLost });
        };
      },
    });
  }
}

interface Counter {
  readonly orchestrator: OrchestratorRef;
  readonly model: ScriptedModel;
  /** Stops the answers after the third word until it is opened. */
  readonly more: Gate;
}

/** An orchestrator that counts. Its model repeats an answer with different words. `Ask` needs an approval. */
function counter(sdk: typeof ai6): Counter {
  const more = gate();
  const model = scriptedModel(({ said: text, step, repeats }) => {
    if (text.startsWith('Ask') && step === 0) return { calls: [{ name: 'confirm' }] };
    const words = ['one ', 'two ', repeats === 0 ? 'three ' : `three (${repeats + 1}) `, 'four ', 'five'];
    return {
      text: (async function* () {
        yield* words.slice(0, 3);
        await more.pass();
        yield* words.slice(3);
      })(),
    };
  });
  const confirm = sdk.tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'confirmed' });
  const orchestrator = defineOrchestrator({
    name: 'counter',
    intents: { answer: (turn: TurnContext) => streamReplyWith(sdk, turn, { model, tools: { confirm } }) },
  });
  return { orchestrator, model, more };
}

/** A client that checks each version of the answer. */
function clientOf(app: ChatApp, sdk: typeof ai6, model: ScriptedModel): ChatClient {
  return new ChatClient({
    sdk: toChatSdk(sdk),
    api: app.url,
    headers: { 'x-user-id': 'ann' },
    approve: () => true,
    onShown: (answer) =>
      assertShown(
        answer,
        model.calls.map(({ text }) => text),
        undefined,
      ),
  });
}

/** Expects that the client shows one complete answer, which is stored. */
async function expectAnswered(app: ChatApp, client: ChatClient): Promise<void> {
  expect(client.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  const texts = textsOf(client.messages[1]);
  expect(texts).toEqual([expect.stringMatching(/^one two three (\(\d+\) )?four five$/)]);
  expect((await client.stored()).map(comparable)).toEqual(client.messages.map(comparable));
  expect(await app.turns.list({ sessionId: client.id })).toHaveLength(1);
}

function shownBy(client: ChatClient): string {
  return client.messages.flatMap((message) => (message.role === 'assistant' ? textsOf(message) : [])).join('');
}

async function read(response: Response, until: (text: string) => boolean): Promise<string> {
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (until(text)) break;
  }
  return text;
}

describe.each(VERSIONS)('chats during an outage, with ai %i', (version) => {
  const sdk = SDKS[version];
  const chat = { protocol: version };

  it('AIS-15 holds a message with comments while no worker runs', async () => {
    const { orchestrator, model, more } = counter(sdk);
    more.open();
    const adapter = memoryAdapter();
    const app = await startChatApp({ adapter, role: 'submit', orchestrators: [orchestrator], chat, turns: TURNS });
    app.app.get(ChatResponses).heartbeatMs = 20;
    const held = await app.ask('POST', '/held', { body: { messages: [said('Count.')] } });
    expect([held.status, held.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    const comments = await read(held, (text) => text.split('\n\n').length > 4);
    expect(comments.replaceAll(/^:.*$/gm, '').trim()).toBe('');

    const client = clientOf(app, sdk, model);
    const sent = client.send('Count.');
    await eventually(async () => (await app.turns.list({ sessionId: client.id })).length === 1);
    await startApplication({ adapter, role: 'work', orchestrators: [orchestrator], turns: TURNS });
    await sent;
    expect(client.breaks).toBe(0);
    await expectAnswered(app, client);
  });

  it('AIS-15 accepts a message after an outage', async () => {
    const { app, outage, client, more } = await start();
    more.open();
    outage.isDown = true;
    const sent = client.send('Count.');
    await eventually(() => outage.failures > 3);
    outage.isDown = false;
    await sent;
    expect(client.breaks).toBe(0);
    await expectAnswered(app, client);
  });

  it('AIS-15 accepts a message once if the response of the store is lost', async () => {
    const { app, outage, client, more } = await start();
    more.open();
    outage.loses = 'accept';
    const sent = client.send('Count.');
    await eventually(() => outage.failures > 1);
    outage.isDown = false;
    await sent;
    expect(client.breaks).toBe(0);
    await expectAnswered(app, client);
  });

  it('AIS-15 sends comments during a long outage, and then the answer', async () => {
    const { app, outage, client, more } = await start();
    Object.assign(app.app.get(ChatResponses), { heartbeatMs: 20, patienceMs: 50 });
    more.open();
    outage.isDown = true;
    const sent = client.send('Count.');
    const held = await app.ask('POST', '/held', { body: { messages: [said('Count.')] } });
    expect([held.status, held.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    const comments = await read(held, (text) => text.split('\n\n').length > 4);
    expect(comments.replaceAll(/^:.*$/gm, '').trim()).toBe('');
    outage.isDown = false;
    await sent;
    expect(client.breaks).toBe(0);
    await expectAnswered(app, client);
  });

  it.each([
    ['a short', 10_000],
    ['a long', 20],
  ])('AIS-15 resumes an answer after %s outage', async (_, patienceMs) => {
    const { app, outage, client, more } = await start();
    app.app.get(ChatResponses).patienceMs = patienceMs;
    const sent = client.send('Count.');
    await eventually(() => shownBy(client).includes('three'));
    outage.isDown = true;
    client.cut();
    const { failures } = outage;
    await eventually(() => client.breaks === 1 && outage.failures > failures + 3);
    more.open();
    outage.isDown = false;
    await sent;
    expect(client.breaks).toBeGreaterThanOrEqual(1);
    await expectAnswered(app, client);
  });

  it('AIS-15 continues an answer after an outage', async () => {
    const { app, outage, client, more } = await start();
    const sent = client.send('Count.');
    await eventually(() => shownBy(client).includes('three'));
    outage.isDown = true;
    more.open();
    const { failures } = outage;
    await eventually(() => outage.failures > failures + 3);
    outage.isDown = false;
    await sent;
    if (version === 7) expect(client.breaks).toBe(0);
    await expectAnswered(app, client);
  });

  it('AIS-15 accepts an approval after an outage', async () => {
    const { app, outage, client, more } = await start();
    more.open();
    outage.loses = 'signal';
    const sent = client.send('Ask, then count.');
    await eventually(() => outage.failures > 1);
    outage.isDown = false;
    await sent;
    expect(client.breaks).toBe(0);
    await expectAnswered(app, client);
  });

  async function start() {
    const outage = new Outage();
    const { orchestrator, model, more } = counter(sdk);
    const app = await startChatApp({
      adapter: outage.wrap(memoryAdapter()),
      orchestrators: [orchestrator],
      chat,
      turns: TURNS,
    });
    return { app, outage, client: clientOf(app, sdk, model), more };
  }
});

describeServers('chats while the server of the store is unreachable', (server) => {
  let proxy: TcpProxy;
  let store: SessionsAdapter;

  beforeEach(async () => {
    proxy = await TcpProxy.start(server.url);
    const options = optionsOn({ ...server, url: proxy.url }, `t${randomUUID().slice(0, 8)}_`);
    store = adapterOf({ ...options, operationTimeoutMs: 1000 });
  });

  afterEach(async () => {
    proxy.restore();
    await proxy.stop();
  });

  it.each(VERSIONS)('AIS-15 answers once, with ai %i', async (version) => {
    const sdk = SDKS[version];
    const { orchestrator, model, more } = counter(sdk);
    const app = await startChatApp({
      adapter: store,
      orchestrators: [orchestrator],
      chat: { protocol: version },
      turns: { ...TURNS, leaseMs: 5000 },
    });
    app.app.get(ChatResponses).patienceMs = 500;
    const client = clientOf(app, sdk, model);
    proxy.cut();
    const sent = client.send('Count.');
    const held = await app.ask('POST', '/held', { body: { messages: [said('Count.')] } });
    expect(held.status).toBe(200);
    proxy.restore();
    await eventually(() => shownBy(client).includes('three'), { limitMs: 30_000 });
    proxy.cut();
    more.open();
    client.cut();
    await eventually(() => client.breaks === 1);
    proxy.restore();
    await sent;
    await expectAnswered(app, client);
    await held.text();
    proxy.restore();
    await app.close();
  });
});
