import { join } from 'node:path';
import { jest } from '@jest/globals';
import axe from 'axe-core';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core';
import { eventually } from '../support/eventually.js';
import { SampleProcess } from '../support/sample-process.js';
import { findChromium } from '../support/services/chromium.js';
import { freePort } from '../support/services/server-process.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { ChatPage, type Overview } from './chat-page.js';

const POLICY = 'What is your policy?';
const PHONE = { width: 360, height: 640 };
const CONTINUED = 'Continued after an interruption.';
const SUBMITS = '**/turns/submit';
const LIMIT_MS = 20_000;
// Longer than one wait, so that the message names the condition.
jest.setTimeout(3 * LIMIT_MS);

describe('the chat page of the support desk', () => {
  const file = join(temporaryFolder(), 'support-desk.db');
  let sample: SampleProcess;
  let browser: Browser;
  let context: BrowserContext;

  beforeAll(async () => {
    // It is started again on the same one.
    sample = await SampleProcess.start(file, await freePort());
    browser = await chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox'] });
  }, 120_000);

  afterEach(() => Promise.all(browser.contexts().map((opened) => opened.close())));

  // If a start has failed, that error is reported.
  afterAll(async () => {
    await browser?.close();
    await sample?.stop('SIGKILL');
  });

  /** A separate reader with separate cookies. */
  async function visit(options: BrowserContextOptions = {}): Promise<ChatPage> {
    context = await browser.newContext(options);
    context.setDefaultTimeout(LIMIT_MS);
    return ChatPage.open(context, sample.url);
  }

  it('NST-17 NST-11 answers; who asks and in which session is in cookies that no script reads, and in no address', async () => {
    context = await browser.newContext();
    const addresses: string[] = [];
    context.on('request', (request) => addresses.push(request.url()));
    const chat = await ChatPage.open(context, sample.url);

    await chat.choose('Where is order 7?');
    await chat.sees('Order 7 is shipped.');

    const cookies = await context.cookies();
    expect(cookies.map(({ name, httpOnly, sameSite }) => ({ name, httpOnly, sameSite }))).toEqual([
      { name: 'support_desk_user', httpOnly: true, sameSite: 'Strict' },
      { name: 'support_desk_session', httpOnly: true, sameSite: 'Strict' },
    ]);
    expect(addresses.filter((address) => !address.startsWith(`${sample.url}/`))).toEqual([]);
    expect(addresses.filter((address) => cookies.some(({ value }) => address.includes(value)))).toEqual([]);
    expect(await chat.page.evaluate('document.cookie')).toBe('');
    const headers = (await chat.page.request.get(sample.url)).headers();
    expect(headers['content-security-policy']).toContain("default-src 'self'");
  });

  it('TRN-30 shows an answer word by word, reads it aloud once it is whole, and stops it where it is', async () => {
    const chat = await visit();
    await chat.listen();
    await chat.choose(POLICY);
    await eventually(async () => (await chat.answersShown()).length > 4);
    const shown = await chat.answersShown();
    expect(shown.every((text, i) => i === 0 || text.startsWith(shown[i - 1]))).toBe(true);
    expect(await chat.readAloud()).toEqual([]);

    const cancels = chat.requestsFor('/cancel');
    const refresh = await chat.hold('**/overview?*');
    await chat.stop.click();
    await chat.sees('Stopped.');

    expect(await chat.readAloud()).toHaveLength(1);
    expect((await chat.overview()).turns).toMatchObject([{ status: 'cancelled', input: POLICY }]);
    const text = await chat.answer.innerText();
    expect(text).toContain('You can send back');
    // The button disappears with the answer, and the focus returns to the input.
    await chat.stop.waitFor({ state: 'hidden' });
    await eventually(() => isFocused(chat));
    await chat.input.press('Escape');
    await refresh.goesOn();
    await chat.say('Where is order 9?');
    await chat.sees('Order 9 is being packed.');
    expect(cancels).toHaveLength(1);

    await chat.page.reload();
    await chat.sees('Order 9 is being packed.');
    expect(await chat.page.locator('.answer span:last-child').first().innerText()).toBe(text);
  });

  it('TRN-15 TRN-32 TRN-05 SIGKILL in mid-answer: the page continues, keeps the typed text, and shows nothing twice', async () => {
    const chat = await visit();
    await chat.listen();
    await chat.choose(POLICY);
    await chat.sees('Put it into a box');
    await sample.stop('SIGKILL');
    await eventually(async () => (await chat.status.innerText()) === 'Connection lost. Reconnecting…');
    await chat.say('Where is order 7?');
    await chat.sees('Will be sent when the connection is back.');
    expect(await chat.input.inputValue()).toBe('');

    sample = await SampleProcess.start(file, Number(new URL(sample.url).port));
    await chat.sees('Order 7 is shipped.');

    expect(await chat.status.innerText()).toBe('');
    const { turns } = await chat.overview();
    expect(turns).toMatchObject([
      { input: POLICY, status: 'awaiting-input', lost: 1 },
      { input: 'Where is order 7?', status: 'awaiting-input', lost: 0 },
    ]);
    const said = turns.flatMap(({ input, reply }) => [input, reply]);
    const lines = said.map(withSpeaker);
    expect(await chat.lines()).toEqual([...lines.slice(0, 2), CONTINUED, ...lines.slice(2)]);
    // The shown text only grew, and a screen reader got each turn once.
    const shown = await chat.answersShown();
    expect(shown.at(-1)).toBe(said[1]);
    expect(shown.filter((text, i) => i > 0 && !text.trimEnd().startsWith(shown[i - 1].trimEnd()))).toEqual([]);
    expect(await chat.readAloud()).toHaveLength(2);
    const rows = chat.page.locator('#turns tbody tr');
    await eventually(async () => (await rows.count()) === 2);
    expect(await rows.allInnerTexts()).toEqual([
      expect.stringMatching(/^Where is order 7\?\tanswered\t[\d.]+ m?s\t1$/),
      expect.stringMatching(/^What is your policy\?\tanswered\t\d+\.\d s\t2$/),
    ]);
  });

  it('TRN-05 a message whose acceptance was not heard of is sent again, also by the page when it is loaded again, and is one turn', async () => {
    const chat = await visit();
    await chat.page.route(SUBMITS, async (route) => {
      await route.fetch();
      await route.abort();
    });
    await chat.say('Where is order 7?');
    await chat.sees('Order 7 is shipped.');
    // A request that is sent again may still be in the handler.
    await chat.page.unrouteAll({ behavior: 'wait' });
    await chat.page.route(SUBMITS, (route) => route.abort());
    await chat.say('Where is order 9?');
    await chat.page.reload();
    await chat.sees('Where is order 9?');
    await chat.page.unroute(SUBMITS);
    await chat.sees('Order 9 is being packed.');
    await eventually(async () => (await chat.page.evaluate('sessionStorage.outbox')) === '[]');

    expect((await chat.overview()).turns).toHaveLength(2);
    expect(await chat.lines()).toHaveLength(4);
  });

  it('TRN-05 a server that says "later" gets the message later', async () => {
    const chat = await visit();
    const refusals = [408, 429];
    await chat.page.route(SUBMITS, async (route) => {
      const status = refusals.shift();
      await (status ? route.fulfill({ status, json: { code: 'LATER', message: 'Later.' } }) : route.continue());
    });
    await chat.say('Where is order 7?');
    await chat.sees('Order 7 is shipped.');
    expect(refusals).toEqual([]);
    expect(await chat.lines()).toHaveLength(2);
  });

  it('DAY-19 says on a phone, at the answer, that it continued after a crash, also after a reload', async () => {
    const chat = await visit({ viewport: PHONE });
    await chat.choose(POLICY);
    await chat.sees('Put it into a box');
    await sample.stop('SIGKILL');
    await chat.status.getByText('Connection lost. Reconnecting…').waitFor();
    sample = await SampleProcess.restart(sample);

    const note = chat.page.locator('.turn', { hasText: POLICY }).getByText(CONTINUED);
    await note.waitFor();
    await eventually(() => isInViewport(chat, '.turn .note'));
    await chat.sees('if you like that better');
    await chat.stop.waitFor({ state: 'hidden' });
    await eventually(() => isInViewport(chat, '.turn .note'));
    expect(await chat.page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
    await chat.page.reload();
    await note.waitFor();
  });

  it('DAY-19 keeps a message that the server refuses, over a reload, until it is sent again or edited', async () => {
    const chat = await visit();
    await chat.page.route(SUBMITS, (route) =>
      route.fulfill({ status: 400, json: { code: 'BUSY', message: 'Not now.' } }),
    );
    await chat.say('Where is order 7?');
    await chat.sees('Not sent: Not now.');
    await chat.say('Where is order 8?');
    await eventually(async () => (await chat.lines()).length === 4);
    await chat.page.reload();
    await chat.ready();
    expect(await chat.lines()).toEqual([
      ...['You: Where is order 7?', 'Not sent: Not now.'],
      ...['You: Where is order 8?', 'Not sent: Not now.'],
    ]);

    await chat.page.unroute(SUBMITS);
    await chat.button('Send again').first().click();
    await chat.sees('Order 7 is shipped.');
    expect(await isFocused(chat)).toBe(true);
    await chat.input.fill('Thanks.');
    await chat.button('Edit').click();
    expect(await chat.input.inputValue()).toBe('Where is order 8?\nThanks.');
    expect(await isFocused(chat)).toBe(true);
    expect((await chat.overview()).turns.map(({ input }) => input)).toEqual(['Where is order 7?']);
    await eventually(async () => (await chat.page.evaluate('sessionStorage.outbox')) === '[]');
  });

  it('DAY-19 lists the earlier conversations, and continues one of them, on a phone', async () => {
    const chat = await visit({ viewport: PHONE });
    await chat.say('Where is order 7?');
    await chat.sees('Order 7 is shipped.');
    await chat.button('New conversation').click();
    await chat.say('Where is order 9?');
    await chat.sees('Order 9 is being packed.');

    await chat.page.getByText('Earlier conversations').click();
    const entries = chat.page.locator('#conversations button');
    await entries.nth(1).waitFor();
    expect(await entries.allInnerTexts()).toEqual([
      expect.stringMatching(/^Where is order 9\?/),
      expect.stringMatching(/^Where is order 7\?/),
    ]);
    expect(await complaints(chat)).toEqual([]);
    expect(await chat.page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
    await entries.nth(1).click();
    await chat.sees('Order 7 is shipped.');
    expect(await chat.lines()).toEqual(['Where is order 7?', 'Order 7 is shipped.'].map(withSpeaker));
    await chat.say('Where is order 8?');
    await chat.sees('Order 8 is delivered.');
    expect((await chat.overview()).turns).toHaveLength(2);
    await chat.page.reload();
    await chat.sees('Order 8 is delivered.');
  });

  it('DAY-19 shows its own words, not the names of states', async () => {
    const chat = await visit();
    await chat.say('I want a refund for order 8');
    await chat.sees('Why do you want');
    await chat.page.getByRole('cell', { name: 'answered' }).waitFor();
    await eventually(async () => (await chat.page.locator('#session-state').innerText()) === 'active');
    expect(await chat.page.locator('body').innerText()).not.toMatch(/awaiting|lane|surface|_/i);
  });

  it('SES-02 a new conversation gets only messages typed after its start', async () => {
    const chat = await visit();
    const before = new URL('overview', sample.url).href;
    const [user, session] = (await context.cookies()).map(({ value }) => value);
    const submits = chat.requestsFor('/turns/submit');
    const first = await chat.hold(SUBMITS);
    await chat.say('Where is order 7?');
    await chat.say('Where is order 8?');
    await eventually(() => submits.length === 1);

    await chat.button('New conversation').click();
    await chat.say('Where is order 9?');
    await first.goesOn();
    await chat.sees('Order 9 is being packed.');

    const inputs = ({ turns }: Overview) => turns.map(({ input }) => input);
    expect(inputs(await chat.overview())).toEqual(['Where is order 9?']);
    expect(await chat.lines()).toEqual(['Where is order 9?', 'Order 9 is being packed.'].map(withSpeaker));
    const headers = { 'x-user-id': user, 'x-session-id': session };
    const old = await chat.page.request.get(before, { headers });
    // The messages that were not sent yet have stayed in their conversation (DAY-19).
    expect(inputs((await old.json()) as Overview)).toEqual(['Where is order 7?', 'Where is order 8?']);
  });

  it('TRN-33 two tabs, and one that is loaded again in mid-answer, show the same', async () => {
    const chat = await visit();
    const other = await ChatPage.open(context, sample.url);
    await chat.say('Where is order 9?');
    await chat.sees('Order 9 is being packed.');
    await chat.choose(POLICY);
    await chat.sees('You can send');
    await chat.page.reload();
    await Promise.all([chat.sees('thirty days'), other.sees('thirty days')]);
    await other.input.press('Escape');
    // Stopped, or complete on a machine that stalled.
    await Promise.all([chat, other].map((tab) => tab.stop.waitFor({ state: 'hidden' })));

    const lines = await chat.lines();
    expect(lines.slice(0, 3)).toEqual(['Where is order 9?', 'Order 9 is being packed.', POLICY].map(withSpeaker));
    expect(lines[3]).toContain('thirty days');
    expect(await other.lines()).toEqual(lines);
    await other.page.getByRole('button', { name: 'New conversation' }).click();
    await Promise.all([chat, other].map(async (tab) => eventually(async () => (await tab.lines()).length === 0)));
  });

  it('E2E is used by keyboard alone', async () => {
    const chat = await visit();
    const { keyboard } = chat.page;
    // One can write at once.
    await keyboard.type('Hello');
    await keyboard.press('Shift+Enter');
    await keyboard.type('What is your policy?');
    expect(await chat.input.inputValue()).toBe('Hello\nWhat is your policy?');
    await keyboard.press('Enter');
    await chat.sees('You can send');
    // Escape drops a word that is being composed. Without one, it stops the answer.
    const cancels = chat.requestsFor('/cancel');
    const ime = await context.newCDPSession(chat.page);
    await ime.send('Input.imeSetComposition', { text: 'に', selectionStart: 1, selectionEnd: 1 });
    await keyboard.press('Escape');
    await ime.send('Input.imeSetComposition', { text: '', selectionStart: 0, selectionEnd: 0 });
    expect(cancels).toEqual([]);
    await keyboard.press('Escape');
    await chat.sees('Stopped.');
    expect(cancels).toHaveLength(1);
    expect(await isFocused(chat)).toBe(true);

    // Back to the first suggestion, which stays where it is and keeps the focus.
    for (let i = 0; i < 4; i++) await keyboard.press('Shift+Tab');
    expect(await chat.page.evaluate('document.activeElement.textContent')).toBe('Where is order 7?');
    expect(await chat.page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).toBe('solid');
    await keyboard.press('Enter');
    await chat.sees('Order 7 is shipped.');
    expect(await chat.page.evaluate('document.activeElement.textContent')).toBe('Where is order 7?');
  });

  it('E2E fits a phone, keeps the end in sight, and leaves a reader alone who has scrolled up', async () => {
    const chat = await visit({ viewport: PHONE });
    const scroll = (code: string) => chat.page.evaluate<number>(`document.getElementById('scroll').${code}`);
    const scrollTop = () => scroll('scrollTop');
    const end = async () => (await scroll('scrollHeight')) - (await scroll('clientHeight'));
    expect(await chat.page.getByText('Active step').isVisible()).toBe(false);
    for (let i = 0; i < 4; i++) await chat.say(`Where is order ${i}?`);
    await chat.sees('I know no order 3.');
    await chat.say(POLICY);
    await chat.sees('thirty days');
    await eventually(async () => Math.abs((await end()) - (await scrollTop())) < 2);
    expect(await scrollTop()).toBeGreaterThan(0);

    await scroll('scrollTo(0, 0)');
    await chat.sees('Put it into a box');
    expect(await scrollTop()).toBe(0);

    await chat.page.getByText('Behind the scenes').click();
    expect(await chat.page.getByText('Active step').isVisible()).toBe(true);
    expect(await chat.page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
    await chat.stop.click();
  });

  it('E2E axe finds nothing to complain of, in light and in dark', async () => {
    const chat = await visit();
    expect(await complaints(chat)).toEqual([]);
    await chat.say('Where is order 7?');
    await chat.sees('Order 7 is shipped.');
    await chat.choose(POLICY);
    await chat.say('Where is order 8?');
    await chat.sees('You can send');
    expect(await complaints(chat)).toEqual([]);
    await chat.page.setViewportSize(PHONE);
    await chat.page.getByText('Behind the scenes').click();
    expect(await complaints(chat)).toEqual([]);
    await context.setOffline(true);
    await eventually(async () => (await chat.status.innerText()) !== '');
    expect(await complaints(chat)).toEqual([]);
  });

  it('E2E shows markup as text, and a message that is refused with the reason', async () => {
    const chat = await visit();
    const markup = '<img src=x onerror="document.title=1"><b>order</b>';
    await chat.say('I want a refund for order 8');
    await chat.sees('Why do you want');
    await chat.say(markup);
    await chat.sees('Shall I pay it out?');
    expect((await chat.lines()).slice(2)).toEqual(
      [markup, `A refund of order 8, because: “${markup}” Shall I pay it out? (yes or no)`].map(withSpeaker),
    );
    expect(await chat.page.locator('#content img, #content b').count()).toBe(0);
    expect(await chat.page.locator('#plan [aria-current=step]').innerText()).toBe('confirm');

    await chat.say('a'.repeat(300_000));
    await chat.sees(/^Not sent: .*262,?144/);
    await chat.say('no');
    await chat.sees('All right, no refund.');
  });
});

/** Labels for readers who do not see the side of a message. */
function withSpeaker(text: string | null, i: number): string {
  return `${i % 2 === 0 ? 'You' : 'Support desk'}: ${text}`;
}

async function isFocused({ page }: ChatPage): Promise<boolean> {
  return (await page.evaluate('document.activeElement.id')) === 'message';
}

/** Returns whether the middle of the last element is visible: neither scrolled out nor covered. */
function isInViewport({ page }: ChatPage, selector: string): Promise<boolean> {
  return page.evaluate<boolean>(`(() => {
    const element = [...document.querySelectorAll('${selector}')].at(-1);
    const { x, y, width, height } = element.getBoundingClientRect();
    return document.elementFromPoint(x + width / 2, y + height / 2) === element;
  })()`);
}

/** The findings of axe: all rules in light mode, the colours in dark mode. */
async function complaints({ page }: ChatPage): Promise<string[]> {
  await page.evaluate(axe.source);
  const light = await page.evaluate<axe.AxeResults>('axe.run()');
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await page.evaluate<axe.AxeResults>("axe.run({ runOnly: 'color-contrast' })");
  await page.emulateMedia({ colorScheme: 'light' });
  return [...light.violations, ...dark.violations].map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' ')}`,
  );
}
