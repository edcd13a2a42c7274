import 'reflect-metadata';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { jest } from '@jest/globals';
import { type NestExpressApplication } from '@nestjs/platform-express';
import * as ai6 from 'ai';
import { type Browser, chromium, type Page } from 'playwright-core';
import { defineOrchestrator, type TurnContext } from 'nestjs-agent-sessions';
import { type ChatMessages } from 'nestjs-agent-sessions/http';
import { scriptedModel } from 'nestjs-agent-sessions/testing';
import { z } from 'zod';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import * as ai7 from '../ai-7/ai.js';
import { VERSIONS } from '../chat/front-ends.js';
import { startChatApp } from '../http/chat-app.js';
import { eventually } from '../support/eventually.js';
import { type Gate, gate } from '../support/running-application.js';
import { findChromium } from '../support/services/chromium.js';

const SDKS = { 6: ai6, 7: ai7 as unknown as typeof ai6 };
/** `npm run build:test-page` writes the page here, in a folder for each version. */
const PAGES = join(import.meta.dirname, '../../build/test/e2e/plain-chat-page');
/** The part of an answer before it is held. */
const BEGINNING = 'The answer to ';
const LIMIT_MS = 20_000;
jest.setTimeout(3 * LIMIT_MS);

describe.each(VERSIONS)('a page with an unmodified useChat, with ai %i', (version) => {
  let browser: Browser;
  let held: Gate | undefined;

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox'] });
  }, 120_000);

  beforeEach(() => {
    held = undefined;
  });

  afterEach(async () => {
    held?.open();
    await Promise.all(browser.contexts().map((context) => context.close()));
  });

  afterAll(() => browser?.close());

  it('AIS-13 sends a message, and shows the answer while it streams', async () => {
    const { page } = await start();
    const answer = await beginAnswer(page);
    answer.open();
    await expectShown(page, 'ready', ['One.'], ['The answer to One.']);
    await send(page, 'Two.');
    await expectShown(page, 'ready', ['One.'], ['The answer to One.'], ['Two.'], ['The answer to Two.']);
  });

  it('AIS-13 AIS-10 stops an answer and keeps its beginning, also after a reload', async () => {
    const { page, server } = await start();
    const answer = await beginAnswer(page);
    // The page does not read this body, and Chromium keeps only those that were read.
    const bodies: unknown[] = [];
    await page.route('**/stop', async (route) => {
      const response = await route.fetch();
      bodies.push(await response.json());
      await route.fulfill({ response });
    });
    await click(page, 'Stop');
    await eventually(() => bodies.length > 0);
    expect(bodies).toEqual([{ stopped: true }]);
    await expectShown(page, 'ready', ['One.'], [BEGINNING]);
    await eventually(async () => (await server.json<ChatMessages>('GET', '/one/messages')).messages.length === 2);
    await page.reload();
    await expectShown(page, 'ready', ['One.'], [BEGINNING]);
    answer.open();
    await send(page, 'Two.');
    await expectShown(page, 'ready', ['One.'], [BEGINNING], ['Two.'], ['The answer to Two.']);
  });

  it('AIS-13 AIS-12 replaces an answer, also after a reload', async () => {
    const { page } = await start();
    await send(page, 'One.');
    await expectShown(page, 'ready', ['One.'], ['The answer to One.']);
    await click(page, 'Regenerate');
    await expectShown(page, 'ready', ['One.'], ['The answer to One. (version 2)']);
    await page.reload();
    await expectShown(page, 'ready', ['One.'], ['The answer to One. (version 2)']);
  });

  it('AIS-13 AIS-12 replaces an edited message and its answer, also after a reload', async () => {
    const { page } = await start();
    await send(page, 'One.');
    await expectShown(page, 'ready', ['One.'], ['The answer to One.']);
    await page.getByRole('textbox').fill('Two.');
    await click(page, 'Edit');
    await expectShown(page, 'ready', ['Two.'], ['The answer to Two.']);
    await page.reload();
    await expectShown(page, 'ready', ['Two.'], ['The answer to Two.']);
  });

  it.each([
    { decision: 'Approve', state: 'output-available', orders: ['7'] },
    { decision: 'Deny', state: 'output-denied', orders: [] },
  ])('AIS-13 AIS-16 continues the answer after $decision', async ({ decision, state, orders }) => {
    const { page, refunded } = await start();
    await send(page, 'Refund 7.');
    await expectShown(page, 'ready', ['Refund 7.'], ['tool-refund: approval-requested']);
    expect(refunded).toEqual([]);
    await click(page, decision);
    await expectShown(page, 'ready', ['Refund 7.'], [`tool-refund: ${state}`, 'Done.']);
    await page.reload();
    await expectShown(page, 'ready', ['Refund 7.'], [`tool-refund: ${state}`, 'Done.']);
    expect(refunded).toEqual(orders);
  });

  it('AIS-13 continues an answer after a reload, and shows it once', async () => {
    const { page, model } = await start();
    const answer = await beginAnswer(page);
    await page.reload();
    await expectShown(page, 'streaming', ['One.'], [BEGINNING]);
    answer.open();
    await expectShown(page, 'ready', ['One.'], ['The answer to One.']);
    expect(model.calls).toHaveLength(1);
  });

  it('AIS-13 continues a broken answer when the page becomes visible again, and shows it once', async () => {
    const { page, server, model } = await start();
    const answer = await beginAnswer(page);
    server.app.getHttpServer().closeAllConnections();
    await expectShown(page, 'error', ['One.'], [BEGINNING]);
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await expectShown(page, 'streaming', ['One.'], [BEGINNING]);
    answer.open();
    await expectShown(page, 'ready', ['One.'], ['The answer to One.']);
    expect(model.calls).toHaveLength(1);
  });

  it('AIS-13 AIS-17 shows an answer in a tab that opens while it streams', async () => {
    const { page, open, model } = await start();
    const answer = await beginAnswer(page);
    const tab = await open();
    await expectShown(tab, 'streaming', ['One.'], [BEGINNING]);
    answer.open();
    for (const each of [page, tab]) await expectShown(each, 'ready', ['One.'], ['The answer to One.']);
    expect(model.calls).toHaveLength(1);
  });

  /** Starts a server, and opens its page. The assistant answers X with `The answer to X`. Refunds need an approval. */
  async function start() {
    const sdk = SDKS[version];
    const refunded: string[] = [];
    const model = scriptedModel(({ said, step, repeats }) => {
      if (!said.startsWith('Refund')) return { text: answerTo(said, repeats) };
      return step === 0 ? { calls: [{ name: 'refund', input: { order: '7' } }] } : 'Done.';
    });
    const refund = sdk.tool({
      inputSchema: z.object({ order: z.string() }),
      needsApproval: true,
      execute: ({ order }) => {
        refunded.push(order);
        return 'refunded';
      },
    });
    const orchestrator = defineOrchestrator({
      name: 'assistant',
      intents: { answer: (turn: TurnContext) => streamReplyWith(sdk, turn, { model, tools: { refund } }) },
    });
    const server = await startChatApp({
      orchestrators: [orchestrator],
      principal: () => ({ userId: 'ann' }),
      turns: { events: { batchMs: 0 } },
      chat: { protocol: version },
      configure: (app) => (app as NestExpressApplication).useStaticAssets(join(PAGES, `ai-${version}`)),
    });
    const context = await browser.newContext();
    context.setDefaultTimeout(LIMIT_MS);
    const open = async (): Promise<Page> => {
      const page = await context.newPage();
      // A message that is sent before would be answered in two responses.
      const resumed = page.waitForResponse('**/stream');
      await page.goto(new URL('/#one', server.url).href);
      await resumed;
      return page;
    };
    return { page: await open(), open, server, model, refunded };
  }

  async function* answerTo(message: string, repeats: number): AsyncGenerator<string, void> {
    yield BEGINNING;
    await held?.pass();
    yield repeats === 0 ? message : `${message} (version ${repeats + 1})`;
  }

  /** Sends a message, and waits until its answer is held. */
  async function beginAnswer(page: Page): Promise<Gate> {
    const answer = gate();
    held = answer;
    await send(page, 'One.');
    await expectShown(page, 'streaming', ['One.'], [BEGINNING]);
    return answer;
  }
});

async function send(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox').fill(text);
  await click(page, 'Send');
}

function click(page: Page, button: string): Promise<void> {
  return page.getByRole('button', { name: button, exact: true }).click();
}

/** Waits until the page has this status and shows these messages, each with its texts and tool calls. */
async function expectShown(page: Page, status: string, ...messages: string[][]): Promise<void> {
  const expected = { status, messages };
  const isShown = async (): Promise<boolean> => isDeepStrictEqual(await page.evaluate(READ), expected);
  // If it is not shown in time, the comparison reports the difference.
  await eventually(isShown, { limitMs: LIMIT_MS }).catch(() => undefined);
  expect(await page.evaluate(READ)).toEqual(expected);
}

const READ = `({
  status: document.querySelector('output')?.textContent,
  messages: [...document.querySelectorAll('article')].map((message) =>
    [...message.querySelectorAll('p')].map((part) => part.textContent)),
})`;
