import { DefaultChatTransport, readUIMessageStream, type UIMessage } from 'ai';
import { chromium } from 'playwright-core';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/running-application.js';
import { findChromium } from '../support/services/chromium.js';
import { PageApplication } from './page-application.js';
import { readPage } from './pages.js';

const LIMIT_MS = 120_000;
const { blocks, prose } = readPage('README.md');
const program = blocks.find(({ file }) => file === 'main.ts')?.text ?? '';
const html = blocks.find(({ language }) => language === 'html')?.text ?? '';
const [, script = ''] = /^const text = '(.*)';$/m.exec(program) ?? [];

describe('the first example of README.md', () => {
  let application: PageApplication;

  beforeAll(async () => {
    application = await PageApplication.start(
      new Map([
        ['main.ts', program],
        ['public/index.html', html],
      ]),
    );
  }, LIMIT_MS);

  it('DAY-01 has at most 30 lines', () => {
    expect(script).not.toBe('');
    expect(program.split('\n').length).toBeLessThanOrEqual(30);
  });

  it('DAY-14 is followed by the eight topics that it gives, in a line with a link each', () => {
    const [, list = ''] = /^This example gives you:\n\n((?:- .*\n)+)\n/m.exec(prose) ?? [];
    const lines = list.trimEnd().split('\n');

    expect(lines.map((line) => /^- \*\*(.+)\.\*\*/.exec(line)?.[1])).toEqual([
      'Stored conversations',
      'One turn at a time',
      'Answers that survive a killed server',
      'Several tabs',
      'Approvals',
      'Owners',
      'Several processes',
      'Retention',
    ]);
    for (const line of lines) expect(line).toMatch(/^- \*\*.+\*\* .*\]\(docs\/[\w-]+\.md/);
  });

  it(
    'DAY-01 streams an answer to the transport of useChat, without a key of a provider',
    async () => {
      const transport = new DefaultChatTransport<UIMessage>({ api: `${application.url}/chat` });
      const stream = await transport.sendMessages({
        trigger: 'submit-message',
        chatId: 'chat-of-use-chat',
        messageId: undefined,
        messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'hello' }] }],
        abortSignal: undefined,
      });
      const shown: string[] = [];
      for await (const { parts } of readUIMessageStream({ stream })) {
        shown.push(parts.map((part) => (part.type === 'text' ? part.text : '')).join(''));
      }

      expect(shown.at(-1)).toBe(script);
      // It arrives in parts.
      expect(new Set(shown).size).toBeGreaterThan(5);
    },
    LIMIT_MS,
  );

  it(
    'DAY-01 shows an answer on the page, though the server is killed during it',
    async () => {
      const browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox'] });
      try {
        const page = await browser.newPage();
        const texts = async (): Promise<string[]> =>
          (await page.locator('p').allTextContents()).filter((text) => text !== '');
        await page.goto(application.url);
        await page.getByRole('textbox', { name: 'Message' }).fill('hello');
        await page.keyboard.press('Enter');
        await page.getByText('Kill the server').waitFor();
        await application.restart(async () => expect((await texts())[1]).not.toBe(script));
        await page.getByText(script, { exact: true }).waitFor();

        expect(await texts()).toEqual(['hello', script]);
        await page.reload();
        await page.getByText(script, { exact: true }).waitFor();
        expect(await texts()).toEqual(['hello', script]);
      } finally {
        await browser.close();
      }
    },
    LIMIT_MS,
  );

  it(
    'DAY-01 says on the page that the server refuses the chat, and that it does not answer',
    async () => {
      const browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox'] });
      try {
        const page = await browser.newPage();
        const refused = {
          status: 403,
          contentType: 'application/json',
          body: '{ "message": "This chat is not yours." }',
        };
        await page.route(/\/(messages|stream)$/, (route) => route.fulfill(refused));
        await page.goto(application.url);
        await page.getByText('This chat is not yours.', { exact: true }).waitFor();

        await page.unroute(/\/(messages|stream)$/);
        // The server has sent the page, and cannot read the chat from its database.
        await page.route(/\/messages$/, (route) => route.fulfill({ ...refused, status: 503 }));
        await page.reload();
        await page.getByPlaceholder('The server does not answer.').waitFor();
        await page.unroute(/\/messages$/);
        await page.getByPlaceholder('Message', { exact: true }).waitFor();

        await page.route(/\/chat$/, (route) => route.abort());
        await page.getByPlaceholder('Message', { exact: true }).fill('hello');
        await page.keyboard.press('Enter');
        await page.getByPlaceholder('The server does not answer.').waitFor();
        await page.unroute(/\/chat$/);
        await page.getByText(script, { exact: true }).waitFor();
        await page.getByPlaceholder('Message', { exact: true }).waitFor();
      } finally {
        await browser.close();
      }
    },
    LIMIT_MS,
  );

  it(
    'DAY-01 accepts a message only once the page has loaded the chat',
    async () => {
      const browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox'] });
      try {
        const page = await browser.newPage();
        const loading = gate();
        const requests: string[] = [];
        await page.route(/\/(messages|stream)$/, async (route) => {
          requests.push(route.request().url());
          await loading.pass();
          await route.continue();
        });
        await page.goto(application.url);
        await eventually(() => requests.length === 1);
        const input = page.getByRole('textbox', { name: 'Message' });
        expect(await input.isDisabled()).toBe(true);
        loading.open();
        await input.fill('hello');
        await page.keyboard.press('Enter');
        await page.getByText(script, { exact: true }).waitFor();

        expect(await page.locator('p').allTextContents()).toEqual(['hello', script]);
      } finally {
        await browser.close();
      }
    },
    LIMIT_MS,
  );

  it(
    'DAY-01 shows an answer that ends between the requests of a page that loads',
    async () => {
      const browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox'] });
      try {
        const page = await browser.newPage();
        await page.goto(application.url);
        await page.getByRole('textbox', { name: 'Message' }).fill('hello');
        await page.keyboard.press('Enter');
        await page.getByText('I am').waitFor();
        const chatId = await page.evaluate('localStorage.chat');
        await page.route('**/stream', async (route) => {
          await eventually(async () => {
            const response = await fetch(`${application.url}/chat/${String(chatId)}/messages`);
            return ((await response.json()) as { messages: object[] }).messages.length === 2;
          });
          await route.continue();
        });
        await page.reload();
        await page.getByText(script, { exact: true }).waitFor();

        expect(await page.locator('p').allTextContents()).toEqual(['hello', script]);
      } finally {
        await browser.close();
      }
    },
    LIMIT_MS,
  );
});
