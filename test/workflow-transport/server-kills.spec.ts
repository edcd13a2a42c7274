import { join } from 'node:path';
import { jest } from '@jest/globals';
import { type AnyUIMessage } from '../../lib/chat/ui-message.js';
import { assertShown, comparable, outlineOf } from '../../lib/testing/chat/shown-answer.js';
import { type ChatRequest, textOf } from '../../sample/06-ai-chat/provider/chat-completions.js';
import { type AskedBefore, diverging, type ScriptedAnswer } from '../../sample/06-ai-chat/provider/script.js';
import { ScriptedProvider } from '../../sample/06-ai-chat/provider/scripted-provider.js';
import { ServerProcess, type ServerSetup } from '../support/chat-server-process.js';
import { eventually } from '../support/eventually.js';
import { Network } from '../support/network.js';
import { gate, type Gate } from '../support/running-application.js';
import { freePort } from '../support/services/server-process.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { Page, PREPARED } from './page.js';

const LIMIT_MS = 60_000;
jest.setTimeout(2 * LIMIT_MS);

const FIRST: ScriptedAnswer = {
  reasoning: 'The customer asks for two orders.',
  text: 'One moment, please, I look.',
  calls: [
    { name: 'findOrder', args: { orderId: '7' } },
    { name: 'refundOrder', args: { orderId: '9' } },
  ],
};
const SECOND: ScriptedAnswer = { text: 'Order 7 is shipped, and order 9 is refunded.' };

describe('WorkflowChatTransport and a server that is killed', () => {
  const database = join(temporaryFolder(), 'chat.db');
  let provider: ScriptedProvider;
  let setup: ServerSetup;
  let server: ServerProcess;
  /** The texts that the model has answered. */
  const texts: string[] = [];
  /** The numbers of tokens of both answers of the model. */
  let tokens: number[] = [];
  /** Stops the answer of a chat before a token, counted over its requests to the model. */
  let holdAt = (_chat: number): number => Infinity;
  let held: Gate = gate();
  let waiting = 0;
  let undisturbed: Page;

  beforeAll(async () => {
    jest.spyOn(console, 'error').mockImplementation(() => undefined);
    provider = await ScriptedProvider.start(answerTo);
    setup = { port: await freePort(), database, provider: provider.baseURL };
    server = await ServerProcess.start(setup);
    undisturbed = pageOf();
    await undisturbed.converse(ask(0));
    expectAnswered(undisturbed);
    tokens = provider.asked.map((asked) => asked.tokens);
  });

  afterAll(async () => {
    await provider?.stop();
    jest.restoreAllMocks();
  });

  beforeEach(() => {
    held = gate();
    waiting = 0;
    provider.asked.splice(0);
  });

  afterEach(() => {
    held.open();
    holdAt = () => Infinity;
  });

  it('AIS-13 AIS-14 completes each answer once after SIGKILL at every token of the model', async () => {
    const all = tokens[0] + tokens[1];
    holdAt = (chat) => chat - 1;
    const pages = Array.from({ length: all }, () => pageOf());
    const conversations = pages.map((page, index) => page.converse(ask(index + 1)));
    await eventually(() => waiting === all, { limitMs: LIMIT_MS });
    await server.kill();
    held.open();
    server = await ServerProcess.start(setup);
    await Promise.all(conversations);
    for (const page of pages) {
      expectAnswered(page);
      await expectStored(page);
      expect(page.network.breaks).toBe(1);
    }
    // Only the incomplete answer is asked again.
    expect(provider.asked).toHaveLength(3 * all);
  });

  it('AIS-13 AIS-14 completes an answer once although the server is killed several times', async () => {
    let restarted = Promise.resolve();
    const restart = async (): Promise<void> => {
      await server.kill();
      server = await ServerProcess.start(setup);
    };
    // A turn fails after five lost attempts.
    const kills = [1, 7, 15, 21];
    const network = new Network({
      before: (chunk) => {
        if (chunk !== kills[0]) return;
        kills.shift();
        restarted = restarted.then(restart);
      },
    });
    const page = pageOf(network, { maxConsecutiveErrors: 10 });
    await page.converse(ask(1000));
    expect(kills).toEqual([]);
    await restarted;
    expectAnswered(page);
    await expectStored(page);
  });

  it('AIS-13 completes an answer once if the server stops and starts again', async () => {
    holdAt = () => tokens[0] + 4;
    const page = pageOf();
    const conversation = page.converse(ask(1500));
    await eventually(() => waiting === 1);
    await server.stop();
    server = await ServerProcess.start(setup);
    held.open();
    await conversation;
    expectAnswered(page);
    await expectStored(page);
  });

  it('AIS-13 AIS-11 answers a message once that a server receives while it is killed', async () => {
    for (const chat of [1601, 1602, 1603]) {
      const page = pageOf();
      const conversation = page.converse(ask(chat));
      await eventually(() => page.network.requests.length === 1, { everyMs: chat - 1600 });
      await server.kill();
      server = await ServerProcess.start(setup);
      await conversation;
      expectAnswered(page);
      await expectStored(page);
    }
  });

  it('AIS-13 AIS-16 delivers an approval that a dead server did not receive', async () => {
    const page = pageOf();
    await page.chat.sendMessage({ text: ask(2000) });
    await server.kill();
    const approved = page.approve();
    server = await ServerProcess.start(setup);
    await approved;
    expectAnswered(page);
    await expectStored(page);
    expect(provider.asked).toHaveLength(2);
  });

  it('AIS-13 completes an answer after SIGKILL and a reload of the page', async () => {
    holdAt = () => 4;
    const page = pageOf();
    const lost = page.chat.sendMessage({ text: ask(3000) });
    await eventually(() => waiting === 1);
    await server.kill();
    await page.chat.stop();
    await lost;
    server = await ServerProcess.start(setup);
    held.open();
    const reloaded = await page.reload({ onShown });
    await reloaded.chat.resumeStream();
    await reloaded.approve();
    expectAnswered(reloaded);
    await expectStored(reloaded);
  });

  function pageOf(network?: Network, transport = {}): Page {
    const url = `http://127.0.0.1:${setup.port}/chat`;
    return new Page({ url, onShown, transport: { ...PREPARED, ...transport }, ...(network ? { network } : {}) });
  }

  /** Answers a repeated request with other words. */
  function answerTo(request: ChatRequest, asked: AskedBefore): ScriptedAnswer {
    const isSecond = request.messages.some(({ role }) => role === 'tool');
    const answer = diverging(() => (isSecond ? SECOND : FIRST))(request, asked) as ScriptedAnswer;
    texts.push(answer.text ?? '', answer.reasoning ?? '');
    const chat = Number(/\d+/.exec(textOf(request.messages.find(({ role }) => role === 'user')!))![0]);
    const before = async (token: number): Promise<void> => {
      if ((isSecond ? tokens[0] : 0) + token !== holdAt(chat) || asked.repeats > 0) return;
      waiting += 1;
      await held.pass();
    };
    return { ...answer, before };
  }

  function onShown(answer: AnyUIMessage): void {
    assertShown(answer, texts, undisturbed === undefined ? undefined : undisturbed.messages[1]);
  }

  function expectAnswered(page: Page): void {
    page.check();
    expect(page.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(outlineOf(page.messages[1])).toEqual(outlineOf(undisturbed.messages[1]));
  }
});

function ask(chat: number): string {
  return `Chat ${chat}: where is order 7? And refund order 9.`;
}

async function expectStored(page: Page): Promise<void> {
  expect(page.chat.status).toBe('ready');
  expect((await page.stored()).map(comparable)).toEqual(page.messages.map(comparable));
}
