import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import { Test } from '@nestjs/testing';
import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  SessionsModule,
  type TurnContext,
  type TurnOutcome,
} from 'nestjs-agent-sessions';
import { type EmittedEvent } from 'nestjs-agent-sessions/adapter';
import { z } from 'zod';
import { idempotencyKeyOf } from '../../lib/ai-sdk/index.js';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { toUIEvents } from '../../lib/chat/ui-events.js';
import { fromAnswer } from '../../lib/chat/stored-messages.js';
import { type UIChunk } from '../../lib/chat/ui-message.js';
import { type ChatTransportTest, chatTransportTests } from '../../lib/testing/chat/chat-transport-tests.js';
import {
  type ChatTransportTarget,
  describeChatTransport,
  scriptedModel,
  type ScriptedModel,
} from '../../lib/testing/index.js';
import { startApplication } from '../support/running-application.js';
import { AppModule } from '../../sample/06-ai-chat/app.module.js';
import { USER_COOKIE } from '../../sample/06-ai-chat/browser.guard.js';
import { CHAT_MODEL } from '../../sample/06-ai-chat/chat-model.js';
import { OrdersService } from '../../sample/06-ai-chat/orders.service.js';
import { fold } from '../chat/clients.js';
import { adapterOf, SHARED_STORES } from '../support/stores.js';
import { PLATFORMS } from './http-app.js';
import { headerPrincipal, OpenGuard } from './state-app.js';

const SDKS = { 6: ai6, 7: ai7 as unknown as typeof ai6 };
type Sdk = typeof ai6;
const RETRY = { attempts: 10, backoff: { type: 'fixed' as const, delayMs: 1 } };
/** No retry or batch delays a test. */
const TURNS = { retry: RETRY, events: { batchMs: 0 }, reconcileMs: 100, shutdownGraceMs: 50 };

interface Shop {
  readonly model: ScriptedModel;
  readonly keys: string[];
  readonly answer: (turn: TurnContext) => Promise<TurnOutcome>;
}

/** An assistant that looks up an order and refunds another. It answers a repeated prompt with different words. */
function shop(sdk: Sdk, keyOf: (options: object) => string): Shop {
  const keys: string[] = [];
  const model = scriptedModel(({ step, repeats }) => {
    const again = repeats === 0 ? '' : `(version ${repeats + 1}) `;
    return step === 0
      ? {
          reasoning: `I need ${again}two tools.`,
          text: `One ${again}moment, please.`,
          calls: [
            { name: 'findOrder', input: { orderId: '7' } },
            { name: 'refundOrder', input: { orderId: '9' } },
          ],
        }
      : { text: `Order 7 is ${again}shipped, and order 9 is refunded.` };
  });
  const tool = (result: string, needsApproval: boolean) =>
    sdk.tool({
      inputSchema: z.object({ orderId: z.string() }),
      needsApproval,
      execute: ({ orderId }, options) => {
        keys.push(keyOf(options));
        return { orderId, result };
      },
    });
  const tools = { findOrder: tool('shipped', false), refundOrder: tool('refunded', true) };
  return { model, keys, answer: (turn) => streamReplyWith(sdk, storingEach(turn), { model, tools }) };
}

/** Returns a turn that stores each chunk before the next one is created. */
function storingEach(turn: TurnContext): TurnContext {
  return { ...turn, emit: async (event: EmittedEvent) => (await turn.emit(event), turn.flush()) };
}

interface Options {
  /** The version of the clients. */
  readonly version: 6 | 7;
  readonly protocol?: 6 | 7;
  /** True if another application runs the turns. */
  readonly isApart?: boolean;
  /** Opens the store. Default: a memory store. */
  readonly store?: () => SessionsAdapter;
  /** Default: the shop. */
  readonly answer?: (turn: TurnContext) => Promise<TurnOutcome>;
  /** The key that a tool gives to another system. Default: its idempotency key. */
  readonly keyOf?: (options: object) => string;
}

function targetOf({
  version,
  protocol = version,
  isApart = false,
  store,
  keyOf = idempotencyKeyOf,
  ...given
}: Options): ChatTransportTarget {
  const sdk = SDKS[version];
  const { model, keys, answer } = { ...shop(sdk, keyOf), ...given };
  const orchestrators = [defineOrchestrator({ name: 'shop', intents: { answer } })];
  const startWeb = async (adapter: SessionsAdapter, role: 'both' | 'submit') => {
    const chat = { protocol, orchestrators, guards: [OpenGuard] };
    const app = await PLATFORMS[0].start({
      imports: [
        SessionsModule.forRoot({
          adapter,
          role,
          turns: TURNS,
          sweep: false,
          principal: headerPrincipal,
          controllers: { chat },
        }),
        SessionsModule.forFeature(orchestrators),
      ],
    });
    await app.listen(0, '127.0.0.1');
    return app;
  };
  const startWorker = async (adapter: SessionsAdapter) => {
    return (await startApplication({ adapter, role: 'work', turns: TURNS, orchestrators })).app;
  };
  return {
    messages: ['Where is order 7? And refund order 9.'],
    model,
    keys: () => keys,
    protocol,
    headers: { 'x-user-id': 'ann' },
    sdk: () => Promise.resolve(sdk),
    start: (adapter) => startWeb(adapter, isApart ? 'submit' : 'both'),
    ...(isApart ? { startWorker } : {}),
    ...(store ? { store } : {}),
  };
}

describe.each([6, 7] as const)('with ai %i', (version) => {
  describeChatTransport('AIS-14 AIS-23 a chat in one process', targetOf({ version }));

  // Two stores are enough: test/turn/events.spec.ts reads the events of another process on each. The end of a response is found by polling.
  describe.each(SHARED_STORES.slice(0, 2))('and another process that runs turns, over $name', ({ name, place }) => {
    const options = place();
    const target = targetOf({ version, isApart: true, store: () => adapterOf(options) });
    const [first, second] = version === 6 ? ['before', 'after'] : ['after', 'before'];
    const kills = [`the worker is killed ${first}`, `the worker and the connection are killed ${second}`];
    it.each(name === 'sqlite' ? kills.slice(0, 1) : kills)(
      'AIS-14 AIS-23 shows each answer once if %s a write',
      (kill) => testOf(target, kill).run(),
      120_000,
    );
  });
});

describe('the application of the sample', () => {
  const model = scriptedModel(({ said, step, repeats }) => {
    const again = repeats === 0 ? '' : ` (version ${repeats + 1})`;
    if (step === 1) return `It${again} is done.`;
    const call = said.startsWith('Where')
      ? { name: 'findOrder', input: { orderId: '7' } }
      : { name: 'refundOrder', input: { orderId: '7', euros: 40 } };
    return { text: `One moment${again}, please.`, calls: [call], delayMs: 1 };
  });
  const keys: string[] = [];
  class Orders extends OrdersService {
    override refund(id: string, euros: number, key: string) {
      keys.push(key);
      return super.refund(id, euros, key);
    }
  }
  describeChatTransport('AIS-14 AIS-23', {
    messages: ['Where is order 7?', 'Please refund it.'],
    model,
    keys: () => keys,
    path: '/api/chat',
    protocol: 6,
    headers: { cookie: `${USER_COOKIE}=ann` },
    start: async (store) => {
      const builder = Test.createTestingModule({ imports: [AppModule] })
        .overrideProvider(SESSIONS_ADAPTER)
        .useValue(store)
        .overrideProvider(CHAT_MODEL)
        .useValue(model)
        .overrideProvider(OrdersService)
        .useValue(new Orders());
      const app = (await builder.compile()).createNestApplication({ logger: false });
      await app.listen(0, '127.0.0.1');
      return app;
    },
  });
});

describe('describeChatTransport', () => {
  const killed = 'if the worker is killed after';

  it.each([6, 7] as const)('AIS-23 AIS-39 accepts answers that end with a result, with ai %i', async (version) => {
    const sdk = SDKS[version];
    const model = scriptedModel(() => ({ text: 'I look.', calls: [{ name: 'find' }] }));
    const find = sdk.tool({ inputSchema: z.object({}), execute: () => 'found' });
    const stopWhen = sdk.hasToolCall('find');
    const answer = (turn: TurnContext) => streamReplyWith(sdk, storingEach(turn), { model, tools: { find }, stopWhen });
    for (const title of ['shows the messages', killed])
      await testOf({ ...targetOf({ version, answer }), model }, title).run();
  });

  it('AIS-23 fails if an attempt writes again what an earlier one has written', async () => {
    const target = targetOf({
      version: 7,
      answer: async (turn) => {
        const text: UIChunk[] = [
          { type: 'start', messageId: turn.id },
          { type: 'start-step' },
          { type: 'text-start', id: '1' },
          { type: 'text-delta', id: '1', delta: 'Hello.' },
          { type: 'text-end', id: '1' },
          { type: 'finish-step' },
          { type: 'finish' },
        ];
        for (const event of text.flatMap(toUIEvents)) {
          await turn.emit(event);
          await turn.flush();
        }
        const message = fold(text);
        return reply('Hello.', { messages: [fromAnswer(message)] });
      },
    });
    await expect(testOf({ ...target, model: undefined }, killed).run()).rejects.toThrow(
      /^Killed after write \d+: The client shows /,
    );
  });

  it('AIS-23 fails if a client shows text that the model has not answered', async () => {
    const { model, ...target } = targetOf({ version: 7 });
    // The kit knows only the first words of the model.
    const calls = model!.calls.slice(0, 1);
    await expect(testOf({ ...target, model: { calls } }, 'shows the messages').run()).rejects.toThrow(
      'The client shows text that the model has not answered',
    );
  });

  it('AIS-23 fails if a client gets a chunk that its version does not know', async () => {
    const target = targetOf({ version: 6, protocol: 7 });
    await expect(testOf(target, killed).run()).rejects.toThrow(/^The client got an error: .*tool-approval-response/s);
  });

  it('AIS-23 fails if a connection breaks although the protocol needs no break', async () => {
    const target = { ...targetOf({ version: 6, protocol: 6 }), protocol: 7 as const };
    await expect(testOf(target, killed).run()).rejects.toThrow(/^Killed after write \d+: The connection broke/);
  });

  it('AIS-23 fails if a tool that runs again has another idempotency key', async () => {
    const target = targetOf({ version: 7, keyOf: () => randomUUID() });
    await expect(testOf(target, 'killed before').run()).rejects.toThrow(/^Tools have used \d+ idempotency keys/);
  });

  it('AIS-23 fails if the application does not use its store', async () => {
    const { start, ...target } = targetOf({ version: 7 });
    const test = testOf({ ...target, start: () => start(memoryAdapter()) }, killed);
    await expect(test.run()).rejects.toThrow('No worker was killed.');
  });
});

function testOf(target: ChatTransportTarget, title: string): ChatTransportTest {
  return chatTransportTests(target).find((test) => test.title.includes(title))!;
}
