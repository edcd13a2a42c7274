import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { jest } from '@jest/globals';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { type ChatMessages } from 'nestjs-agent-sessions/http';
import { type ChatRequest, textOf } from '../../sample/06-ai-chat/provider/chat-completions.js';
import { type ScriptedAnswer } from '../../sample/06-ai-chat/provider/script.js';
import { type Asked, ScriptedProvider } from '../../sample/06-ai-chat/provider/scripted-provider.js';
import { shopAssistant } from '../../sample/06-ai-chat/provider/shop-assistant.js';
import { AiChatPage, type ShownMessage } from '../support/ai-chat-page.js';
import { eventually } from '../support/eventually.js';
import { gate, type Gate } from '../support/running-application.js';
import { SampleProcess } from '../support/sample-process.js';
import { findChromium } from '../support/services/chromium.js';
import { freePort } from '../support/services/server-process.js';
import { temporaryFolder } from '../support/temporary-folder.js';

const POLICY = 'What is your return policy?';
/** The token at which an answer to `POLICY` is held, and a part of it that is then visible. */
const HELD_AT = 40;
const SHOWN_WHEN_HELD = 'Put it into a box';
const LOST = 'Connection lost. Reconnecting…';
const PHONE = { width: 360, height: 640 };
const LIMIT_MS = 20_000;
jest.setTimeout(3 * LIMIT_MS);

describe('the page of the AI chat', () => {
  const file = join(temporaryFolder(), 'ai-chat.db');
  // It belongs to this process, so that it survives the sample.
  let provider: ScriptedProvider;
  let sample: SampleProcess;
  let browser: Browser;
  let held: Gate | undefined;
  /** The token at which it is held. */
  let heldAt: number;

  beforeAll(async () => {
    provider = await ScriptedProvider.start(script, { pauseMs: 10 });
    sample = await start(await freePort());
    browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox'] });
  }, 120_000);

  beforeEach(() => {
    held = undefined;
    heldAt = HELD_AT;
    provider.asked.splice(0);
  });

  afterEach(async () => {
    held?.open();
    await Promise.all(browser.contexts().map((context) => context.close()));
  });

  afterAll(async () => {
    await browser?.close();
    await sample?.stop('SIGKILL');
    await provider?.stop();
  });

  it('AIS-20 AIS-13 AIS-14 reconnects after SIGKILL in mid-answer, and shows the answer once', async () => {
    const chat = await visit();
    await chat.send('Please refund order 7.');
    await chat.decide('Approve');
    await chat.sees('40 euros are on their way. The receipt is R-7-');
    await chat.answered();
    expect((await chat.messages())[1]).toMatchObject({
      texts: [
        'Sure. Order 7, a lamp for 40 euros, is shipped. The refund needs your approval.',
        expect.stringMatching(/^Sure. 40 euros/),
      ],
      tools: ['findOrder: done', 'refundOrder: done'],
    });
    expect(provider.asked).toHaveLength(3);

    await beginAnswer(chat);
    await restart(() => chat.problem.getByText(LOST).waitFor());
    await chat.answered();

    // The second request to the model got another beginning.
    expect(await lastText(chat)).toBe(policyOf(1));
    expect(count(await chat.messages())).toBe(4);
    expect((await chat.answersShown()).filter((text) => text.split('You can send back').length > 2)).toEqual([]);
    expect(provider.asked.map(({ outcome }) => outcome)).toEqual([
      ...['answered', 'answered', 'answered'],
      ...['left', 'answered'],
    ]);
    await expectStored(chat);
  });

  it('DAY-19 says on a phone, at the answer, that it continued after a crash, also after a reload', async () => {
    const chat = await visit({ viewport: PHONE });
    await beginAnswer(chat);
    expect(await chat.continued.count()).toBe(0);
    await restart(() => chat.problem.getByText(LOST).waitFor());
    await chat.continued.waitFor();
    await chat.answered();

    await chat.continued.scrollIntoViewIfNeeded();
    const { x, width } = (await chat.continued.boundingBox())!;
    expect(x >= 0 && x + width <= PHONE.width).toBe(true);
    expect(await chat.page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
    await expectStored(chat);
    expect(await chat.continued.count()).toBe(1);
    await chat.send('Where is order 7?');
    await chat.sees('is shipped');
    await chat.answered();
    expect(await chat.continued.count()).toBe(1);
  });

  it('DAY-19 keeps a message that was not sent, over a reload, and does not drop it for another one', async () => {
    const chat = await visit();
    await chat.send('Where is order 8?');
    await chat.answered();
    await refuseSending(chat);
    await chat.send('Where is order 7?');
    await chat.sees('Not sent yet.');
    await chat.input.fill('Where is order 9?');
    expect(await chat.button('Send').isDisabled()).toBe(true);

    // The page sends it again, and the server refuses it again.
    await chat.page.reload();
    await chat.sees('Not sent yet.');
    expect((await chat.messages()).map(({ texts }) => texts[0])).toEqual([
      'Where is order 8?',
      expect.stringContaining('a chair'),
      'Where is order 7?',
    ]);
    await chat.page.unroute('**/api/chat');
    await chat.button('Try again').click();
    await chat.sees('a lamp for 40 euros');
    await chat.answered();
    expect(await chat.button('Send').isDisabled()).toBe(false);
    expect(await chat.page.evaluate('sessionStorage.unsent')).toBe('[]');
    expect(count(await chat.messages())).toBe(4);
    await expectStored(chat);
  });

  it('DAY-19 keeps an edited message that was not sent', async () => {
    const chat = await visit();
    await chat.send('Where is order 8?');
    await chat.answered();
    await refuseSending(chat);
    await chat.edit('Where is order 9?');
    await chat.sees('Not sent yet.');
    await chat.page.reload();
    await chat.sees('Not sent yet.');
    await chat.page.unroute('**/api/chat');
    await chat.button('Try again').click();
    await chat.sees('is being packed');
    await chat.answered();
    expect((await chat.messages())[0].texts).toEqual(['Where is order 9?']);
    expect(count(await chat.messages())).toBe(2);
    await expectStored(chat);
  });

  it('DAY-19 sends a message once that the server accepted, if the page was loaded again before the response', async () => {
    const chat = await visit();
    await chat.page.route('**/api/chat', async (route) => {
      if (route.request().method() !== 'POST') return route.continue();
      await route.fetch();
      await route.abort();
    });
    await chat.send('Where is order 7?');
    await chat.sees('Not sent yet.');
    await chat.page.unrouteAll({ behavior: 'wait' });
    await chat.page.reload();
    await chat.sees('is shipped');
    await chat.answered();
    expect(count(await chat.messages())).toBe(2);
    expect(provider.asked).toHaveLength(2);
    await expectStored(chat);
  });

  it('DAY-19 lists a chat whose only message was not sent', async () => {
    const chat = await visit();
    await refuseSending(chat);
    await chat.send('Where is order 7?');
    await chat.sees('Not sent yet.');
    await chat.button('New chat').click();
    await chat.sees('Ask where order 7 is');
    await chat.page.unroute('**/api/chat');
    await chat.page.getByRole('link', { name: 'Where is order 7? (not sent)' }).click();
    await chat.sees('is shipped');
    await eventually(async () => isDeepStrictEqual(await chat.chats(), ['Where is order 7?']));
  });

  it('DAY-19 lists earlier chats on request', async () => {
    const chat = await visit();
    for (const text of ['Where is order 7?', 'Where is order 8?']) {
      await chat.button('New chat').click();
      await chat.send(text);
      await chat.answered();
    }
    await chat.page.route(/\/api\/chat(\?|$)/, (route) => {
      const url = new URL(route.request().url());
      url.searchParams.set('limit', '1');
      return route.continue({ url: url.href });
    });
    await chat.page.reload();
    await eventually(async () => isDeepStrictEqual(await chat.chats(), ['Where is order 8?']));
    await chat.button('Earlier chats').click();
    await eventually(async () => isDeepStrictEqual(await chat.chats(), ['Where is order 8?', 'Where is order 7?']));
    expect(await chat.button('Earlier chats').count()).toBe(0);
  });

  it('AIS-20 AIS-16 keeps an approval request over SIGKILL, and an approval that did not arrive', async () => {
    const chat = await visit();
    await chat.send('Please refund order 8.');
    await chat.button('Approve').waitFor();
    await restart(async () => {
      await chat.decide('Approve');
      await chat.problem.getByText(LOST).waitFor();
    });

    // The page asks again.
    await chat.decide('Approve');
    await chat.sees('90 euros are on their way.');
    await chat.answered();
    expect(provider.asked).toHaveLength(3);
    expect((await chat.messages())[1].tools).toEqual(['findOrder: done', 'refundOrder: done']);
    await expectStored(chat);
  });

  it('AIS-20 AIS-16 does not run a tool that the user denies', async () => {
    const chat = await visit();
    await chat.send('Please refund order 9.');
    await chat.button('Approve').waitFor();
    // The composer is disabled: a message would wait for the decision.
    expect(await chat.button('Send').isDisabled()).toBe(true);
    await chat.decide('Deny');
    await chat.sees('I have not refunded it.');
    await chat.answered();
    expect((await chat.messages())[1].tools).toEqual(['findOrder: done', 'refundOrder: denied']);
    await expectStored(chat);
  });

  it('AIS-13 sends a message again that a dead server did not receive', async () => {
    const chat = await visit();
    await chat.send('Where is order 7?');
    await chat.answered();
    await restart(async () => {
      await chat.send('Where is order 9?');
      await chat.problem.getByText(LOST).waitFor();
    });

    await chat.sees('Order 9, a table for 210 euros, is being packed.');
    await chat.answered();
    expect(count(await chat.messages())).toBe(4);
    expect(await chat.problem.count()).toBe(0);
    await expectStored(chat);
  });

  it('AIS-20 AIS-13 continues an answer after SIGKILL and a reload', async () => {
    const chat = await visit();
    await beginAnswer(chat);
    await restart(async () => {});
    await chat.page.reload();
    await chat.answered();

    expect(await lastText(chat)).toBe(policyOf(1));
    expect(count(await chat.messages())).toBe(2);
    expect(provider.asked).toHaveLength(2);
    await expectStored(chat);
  });

  it('AIS-13 continues an answer after a reload, without asking the model again', async () => {
    const chat = await visit();
    await beginAnswer(chat);
    await chat.page.reload();
    await chat.sees(SHOWN_WHEN_HELD);
    held?.open();
    await chat.answered();

    expect(await lastText(chat)).toBe(policyOf(0));
    expect(count(await chat.messages())).toBe(2);
    expect(provider.asked).toHaveLength(1);
    await expectStored(chat);
  });

  it('AIS-13 shows an answer that ends between the requests of a page that loads', async () => {
    const chat = await visit();
    await beginAnswer(chat);
    const resumed: number[] = [];
    await chat.page.route('**/stream', async (route) => {
      held?.open();
      await eventually(async () => (await storedMessages(chat)).length === 2, { limitMs: LIMIT_MS });
      const response = await route.fetch();
      resumed.push(response.status());
      await route.fulfill({ response });
    });
    await chat.page.reload();
    await chat.answered();

    expect(resumed).toEqual([204]);
    expect(await lastText(chat)).toBe(policyOf(0));
    expect(count(await chat.messages())).toBe(2);
    expect(provider.asked).toHaveLength(1);
    await chat.page.unroute('**/stream');
    await expectStored(chat);
  });

  it('AIS-17 shows the same in two tabs', async () => {
    const chat = await visit();
    await chat.send('Where is order 7?');
    await chat.answered();
    await beginAnswer(chat);
    const tab = await AiChatPage.open(chat.page.context(), sample.url, chat.chatId);
    await tab.sees(SHOWN_WHEN_HELD);
    held?.open();
    await Promise.all([chat.answered(), tab.answered()]);

    expect(await lastText(tab)).toBe(policyOf(0));
    expect(await tab.messages()).toEqual(await chat.messages());
    await eventually(async () => isDeepStrictEqual(await tab.chats(), ['Where is order 7?']));
    expect(provider.asked).toHaveLength(3);

    // A tab that becomes visible shows the messages of the other one.
    await tab.send('Where is order 9?');
    await tab.answered();
    await chat.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await chat.sees('is being packed');
    expect(await chat.messages()).toEqual(await tab.messages());
  });

  it('AIS-13 AIS-17 continues the answer of another tab when the page becomes visible again', async () => {
    const chat = await visit();
    await chat.send('Where is order 7?');
    await chat.answered();
    const tab = await AiChatPage.open(chat.page.context(), sample.url, chat.chatId);
    await tab.answered();
    await beginAnswer(tab);
    await chat.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await chat.sees(SHOWN_WHEN_HELD);
    await chat.stop.waitFor();
    held?.open();
    await Promise.all([chat.answered(), tab.answered()]);

    expect(await lastText(chat)).toBe(policyOf(0));
    expect(await chat.messages()).toEqual(await tab.messages());
    expect(count(await chat.messages())).toBe(4);
    expect(provider.asked).toHaveLength(3);
  });

  it('AIS-20 AIS-10 stops an answer and keeps its beginning, also after a reload', async () => {
    const chat = await visit();
    await beginAnswer(chat);
    await chat.stop.click();
    await chat.button('Send').waitFor();
    const text = await lastText(chat);
    expect(text).toContain(SHOWN_WHEN_HELD);
    expect(policyOf(0).startsWith(text)).toBe(true);
    await eventually(() => provider.asked[0].outcome === 'left');

    await expectStored(chat);
    expect(await lastText(chat)).toBe(text);
    await chat.send('Where is order 7?');
    await chat.sees('is shipped');
    expect(count(await chat.messages())).toBe(4);
  });

  it('AIS-20 AIS-12 replaces an answer, and the answers after an edited message', async () => {
    const chat = await visit();
    await chat.send(POLICY);
    await chat.answered();
    expect(await lastText(chat)).toBe(policyOf(0));
    await chat.button('Regenerate').click();
    await chat.sees(policyOf(1));
    await chat.answered();
    expect(count(await chat.messages())).toBe(2);
    await expectStored(chat);

    await chat.edit('Where is order 7?');
    await chat.sees('is shipped');
    await chat.answered();
    expect((await chat.messages()).map(({ texts }) => texts)).toEqual([
      ['Where is order 7?'],
      ['Sure. Order 7, a lamp for 40 euros, is shipped.'],
    ]);
    await expectStored(chat);
  });

  it('AIS-20 AIS-18 sends attachments to the model, and shows them after a reload', async () => {
    const chat = await visit();
    const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const buffer = Buffer.concat([Buffer.from(pixel, 'base64'), Buffer.alloc(3_000_000)]);
    await chat.attach({ name: 'lamp.png', mimeType: 'image/png', buffer });
    await chat.send('Is this right?');
    await chat.sees('I got what you attached.');
    await chat.answered();
    expect((await chat.messages())[0]).toMatchObject({ files: 1, texts: ['Is this right?'] });
    expect(JSON.stringify(provider.asked[0].request.messages)).toContain(buffer.toString('base64'));
    await expectStored(chat);
  });

  it('AIS-20 AIS-19 shows an error and tries again', async () => {
    const chat = await visit();
    await refuseSending(chat);
    await chat.send('Where is order 7?');
    await chat.problem.getByText('Too many turns.').waitFor();
    await chat.page.unroute('**/api/chat');
    await chat.button('Try again').click();
    await chat.sees('is shipped');
    expect(count(await chat.messages())).toBe(2);
    await expectStored(chat);
  });

  it('AIS-20 AIS-19 shows the error of a message that was sent before the page had resumed', async () => {
    const chat = await visit();
    await refuseSending(chat);
    const resuming = await reloadAndHold(chat);
    await chat.send('Where is order 7?');
    const resumed = chat.page.waitForResponse('**/stream');
    resuming.open();
    expect((await resumed).status()).toBe(204);

    await chat.problem.getByText('Too many turns.').waitFor();
    expect(count(await chat.messages())).toBe(1);
    await chat.page.unroute('**/api/chat');
    await chat.button('Try again').click();
    await chat.sees('is shipped');
    await expectStored(chat);
  });

  it('AIS-20 AIS-13 shows an answer once if the request to resume is slower than the message', async () => {
    const chat = await visit();
    held = gate();
    const resuming = await reloadAndHold(chat);
    const ended = chat.page.waitForEvent('requestfailed', (request) => request.url().endsWith('/stream'));
    await chat.send(POLICY);
    await chat.sees(SHOWN_WHEN_HELD);
    await ended;
    resuming.open();
    held.open();
    await chat.answered();

    expect(await lastText(chat)).toBe(policyOf(0));
    const shown = await chat.answersShown();
    expect(shown.filter((text, at) => !text.startsWith(shown[at - 1] ?? ''))).toEqual([]);
    await expectStored(chat);
  });

  it('AIS-20 AIS-13 shows an answer as incomplete if the page finds nothing to resume after a message was sent', async () => {
    const chat = await visit();
    held = gate();
    heldAt = 0;
    const resuming = await reloadAndHold(chat);
    await chat.send('Where is order 7?');
    resuming.open();
    await chat.page.locator('.message[data-role=assistant]').waitFor({ state: 'attached' });
    expect(await chat.button('Regenerate').count()).toBe(0);
    await chat.stop.waitFor();
    held.open();
    await chat.answered();
    expect(await lastText(chat)).toContain('is shipped');
  });

  it('AIS-20 AIS-10 loads earlier messages on request', async () => {
    const chat = await visit();
    for (const text of ['Where is order 7?', 'Where is order 8?']) {
      await chat.send(text);
      await chat.answered();
    }
    const shown = await chat.messages();
    await chat.page.route('**/messages*', (route) => {
      const url = new URL(route.request().url());
      url.searchParams.set('limit', '1');
      return route.continue({ url: url.href });
    });
    await chat.page.reload();
    await chat.sees('a chair');
    expect(await chat.messages()).toEqual(shown.slice(2));
    await chat.button('Earlier messages').click();
    await chat.sees('a lamp');
    expect(await chat.messages()).toEqual(shown);
    expect(await chat.button('Earlier messages').count()).toBe(0);
  });

  it('AIS-20 shows a new chat at once, so that the next message cannot go to the chat before it', async () => {
    const chat = await visit();
    await chat.input.fill('Where is order 7?');
    const [before, after] = await chat.page.evaluate<(string | undefined)[]>(`(async () => {
      const draft = () => document.querySelector('main textarea')?.value;
      const shown = draft();
      [...document.querySelectorAll('button')].find((button) => button.textContent === 'New chat').click();
      // React renders before the next task, and the browser reports the new address in a task.
      await null;
      return [shown, draft()];
    })()`);
    expect(before).toBe('Where is order 7?');
    expect(after).not.toBe(before);
  });

  it('AIS-20 lists the chats of its browser only, and deletes them', async () => {
    const [chat, other] = [await visit(), await visit()];
    for (const text of ['Where is order 7?', 'Where is order 8?']) {
      await chat.button('New chat').click();
      await chat.send(text);
      await chat.answered();
    }
    await eventually(async () => (await chat.chats()).length === 2);
    expect(await chat.chats()).toEqual(['Where is order 8?', 'Where is order 7?']);
    const list = await other.page.request.get(`${sample.url}/api/chat`);
    expect(await list.json()).toEqual({ chats: [] });

    await chat.button('Delete: Where is order 8?').click();
    await eventually(async () => (await chat.chats()).length === 1);
    await chat.page.getByRole('link', { name: 'Where is order 7?' }).click();
    await chat.sees('a lamp');
    // The address of a chat of another user shows an empty chat.
    const stranger = await AiChatPage.open(other.page.context(), sample.url, chat.chatId);
    await stranger.sees('Ask where order 7 is');
  });

  it('AIS-20 has no violations that axe finds, in light and dark', async () => {
    const chat = await visit();
    await chat.send('Please refund order 7.');
    await chat.button('Approve').waitFor();
    expect(await violations(chat.page)).toEqual([]);
    await chat.page.setViewportSize({ width: 360, height: 640 });
    expect(await violations(chat.page)).toEqual([]);
  });

  it('DAY-13 prints one address, and three lines of what to try', () => {
    // The command to start it again contains the address of the tests' provider.
    const output = sample.output.replace(sample.restartLine, '');
    expect(output.match(/http:\/\/\S+/g)).toEqual([`${sample.url}.`]);
    expect(output.match(/^\d\. .+$/gm)).toEqual([
      expect.stringContaining('Send'),
      expect.stringMatching(/kill -9 \d+/),
      expect.stringContaining('approve'),
    ]);
  });

  /** Answers like the model of the sample, counts repeated requests per test, and waits at `HELD_AT` for the gate. */
  function script(request: ChatRequest): ScriptedAnswer {
    const opening = held;
    const isSame = (asked: Asked): boolean => isDeepStrictEqual(textsOf(asked.request), textsOf(request));
    const repeats = provider.asked.filter(isSame).length;
    return {
      ...shopAssistant(request, { requests: 0, repeats }),
      before: (token) => (token === heldAt ? opening?.pass() : undefined),
    };
  }

  /** Opens the page as a new user. */
  async function visit(options: BrowserContextOptions = {}): Promise<AiChatPage> {
    const context = await browser.newContext(options);
    context.setDefaultTimeout(LIMIT_MS);
    return AiChatPage.open(context, sample.url);
  }

  /** Reloads the page. Its request to resume an answer is held until the gate opens. */
  async function reloadAndHold(chat: AiChatPage): Promise<Gate> {
    const resuming = gate();
    await chat.page.route('**/stream', async (route) => {
      await resuming.pass();
      await route.continue();
    });
    await chat.page.reload();
    return resuming;
  }

  /** Lets the server refuse messages, until the route is removed. */
  async function refuseSending(chat: AiChatPage): Promise<void> {
    await chat.page.route('**/api/chat', (route) =>
      route.request().method() === 'POST'
        ? route.fulfill({ status: 429, json: { code: 'TOO_MANY', message: 'Too many turns.' } })
        : route.continue(),
    );
  }

  /** Sends `POLICY`, and waits until its answer is held. */
  async function beginAnswer(chat: AiChatPage): Promise<void> {
    held = gate();
    await chat.send(POLICY);
    await chat.sees(SHOWN_WHEN_HELD);
  }

  /** Kills the sample, and starts it again after something has happened. */
  async function restart(meanwhile: () => Promise<void>): Promise<void> {
    await sample.stop('SIGKILL');
    held?.open();
    await meanwhile();
    sample = await start(Number(new URL(sample.url).port));
  }

  function start(port: number): Promise<SampleProcess> {
    return SampleProcess.start(file, port, { sample: '06-ai-chat', env: { PROVIDER_URL: provider.baseURL } });
  }

  /** Returns the answer to `POLICY`, as the model gives it after a number of equal requests. */
  function policyOf(repeats: number): string {
    const { request } = provider.asked.at(-1)!;
    const answer = shopAssistant(
      { ...request, messages: [{ role: 'user', content: POLICY }] },
      { requests: 0, repeats },
    );
    return answer.text!;
  }

  /** Expects that the store, and the page after a reload, have what the page shows. */
  async function expectStored(chat: AiChatPage): Promise<void> {
    const shown = await chat.messages();
    const messages = await storedMessages(chat);
    expect(messages.map(({ parts }) => parts.flatMap(({ text, type }) => (type === 'text' ? [text] : [])))).toEqual(
      shown.map(({ texts }) => texts),
    );
    await chat.page.reload();
    await eventually(async () => count(await chat.messages()) === messages.length, { limitMs: LIMIT_MS });
    expect(await chat.messages()).toEqual(shown);
  }

  /** Returns the messages of the chat that the server has. */
  async function storedMessages(chat: AiChatPage): Promise<ChatMessages['messages']> {
    const url = `${sample.url}/api/chat/${chat.chatId}/messages`;
    return ((await (await chat.page.request.get(url)).json()) as ChatMessages).messages;
  }
});

function textsOf({ messages }: ChatRequest): string[] {
  return messages.map(textOf);
}

function count(messages: readonly ShownMessage[]): number {
  return messages.length;
}

function lastText(chat: AiChatPage): Promise<string> {
  return chat.lastText.innerText();
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const light = await page.evaluate<axe.AxeResults>('axe.run()');
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await page.evaluate<axe.AxeResults>("axe.run({ runOnly: 'color-contrast' })");
  await page.emulateMedia({ colorScheme: 'light' });
  return [...light.violations, ...dark.violations].map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`,
  );
}
