import 'reflect-metadata';
import { jest } from '@jest/globals';
import { type AnyUIMessage } from '../../lib/chat/ui-message.js';
import { comparable, outlineOf, textsOf } from '../../lib/testing/chat/shown-answer.js';
import { PLATFORMS } from '../http/http-app.js';
import { eventually } from '../support/eventually.js';
import { Network } from '../support/network.js';
import { gate } from '../support/running-application.js';
import { Page, type PageOptions, PREPARED } from './page.js';
import { QUESTION, type Shop, type ShopOptions, startShop } from './shop.js';

/** Conversations at a time. */
const AT_ONCE = 16;

beforeEach(() => {
  // The transport logs each broken connection.
  jest.spyOn(console, 'error').mockImplementation(() => undefined);
});

afterEach(() => jest.restoreAllMocks());

describe.each(PLATFORMS)('WorkflowChatTransport on $name', (platform) => {
  it('AIS-13 AIS-16 works with the address of a chat, and no other option', async () => {
    const { page } = await open({ platform });
    await page.converse(QUESTION);
    await expectAnswered(page);
    expect(page.network.sent.map(({ type, body }) => [type, Object.keys(body)])).toEqual([
      ['text/plain;charset=UTF-8', ['messages']],
      ['text/plain;charset=UTF-8', ['messages']],
    ]);
    // The name of a response has the turn and the segment.
    const turnId = page.messages[1].id;
    expect(page.network.runs).toEqual([`${turnId}~0`, `${turnId}~1`]);
  });

  it('AIS-13 works with the three lines of docs/ai-sdk.md that also send trigger and messageId', async () => {
    const { page } = await open({ platform }, { transport: PREPARED });
    await page.converse(QUESTION);
    await expectAnswered(page);
    expect(page.network.sent.map(({ type, body }) => [type, body.trigger, body.messageId])).toEqual([
      ['application/json', 'submit-message', undefined],
      ['application/json', 'submit-message', page.messages[1].id],
    ]);
  });

  it('AIS-13 shows an answer once although the connection breaks after each chunk', async () => {
    // The transport counts breaks, and never forgets them.
    const transport = { ...PREPARED, maxConsecutiveErrors: 1000 };
    const { page } = await open({ platform }, { transport, network: new Network({ at: () => true }) });
    await page.converse(QUESTION);
    await expectAnswered(page);
    expect(page.network.breaks).toBe(page.network.chunks);
  });
});

describe('a page with WorkflowChatTransport', () => {
  it('AIS-13 reconnects with startIndex after a connection breaks at any chunk', async () => {
    const shop = await startShop();
    const undisturbed = new Page({ ...shop });
    await undisturbed.converse(QUESTION);
    const { chunks } = undisturbed.network;
    expect(chunks).toBeGreaterThan(20);
    const cuts = Array.from({ length: chunks }, (_, index) => index);
    await inBatches(cuts, async (cut) => {
      const page = new Page({ ...shop, network: new Network({ at: (chunk) => chunk === cut }) });
      await page.converse(QUESTION);
      await expectAnswered(page);
      expect(outlinesOf(page)).toEqual(outlinesOf(undisturbed));
      expect(page.network).toMatchObject({ chunks, breaks: 1 });
      const inFirst = page.network.requests.findIndex((request) => request.startsWith('GET')) === 1;
      const [run, start] = inFirst ? [0, cut] : [1, cut - firstChunksOf(undisturbed)];
      expect(page.network.requests.filter((request) => request.startsWith('GET'))).toEqual([
        `GET /chat/${page.id}/${page.network.runs[run]}/stream?startIndex=${start}`,
      ]);
    });
  });

  it('AIS-13 resumes an answer by the id of the chat, also over a broken connection', async () => {
    const { page, shop, more } = await openHeld();
    const sent = page.converse('Count.');
    await eventually(() => textOf(page).includes('three'));
    const other = await page.reload({ ...shop, network: new Network({ at: (chunk) => chunk > 2 && chunk < 5 }) });
    expect(other.messages.map(({ role }) => role)).toEqual(['user']);
    const resumed = other.chat.resumeStream();
    await eventually(() => textOf(other) === textOf(page));
    more();
    await Promise.all([sent, resumed]);
    await expectCounted(page);
    await expectCounted(other);
    expect(other.messages.map(comparable)).toEqual(page.messages.map(comparable));
    expect(other.network.requests).toEqual([
      `GET /chat/${page.id}/${page.id}/stream?startIndex=0`,
      `GET /chat/${page.id}/${page.id}/stream?startIndex=3`,
      `GET /chat/${page.id}/${page.id}/stream?startIndex=4`,
    ]);
  });

  it('AIS-13 resumes without a reload, after the transport has given up', async () => {
    const network = new Network({ at: (chunk) => chunk === 6, fails: (request) => request === 2 });
    const { page, more } = await openHeld({ network });
    // Otherwise the chat appends the replay to the shown part: the transport does not set this field of transports.
    Object.assign((page.chat as unknown as { transport: object }).transport, { resumeStreamIsReplay: true });
    await page.chat.sendMessage({ text: 'Count.' });
    expect(page.chat.error?.message).toBe('fetch failed');
    expect(textOf(page)).toBe('One two three ');
    const resumed = page.chat.resumeStream();
    await eventually(() => network.chunks === 6 + 7);
    more();
    await resumed;
    await expectCounted(page);
  });

  it('AIS-13 gets the rest of an answer that ended while the connection was broken', async () => {
    const ended = gate();
    const { page, shop, more } = await openHeld();
    const sent = page.converse('Count.');
    await eventually(() => textOf(page).includes('three'));
    const network = new Network({ at: (chunk) => chunk === 3, before: (chunk) => chunk === 3 && ended.pass() });
    const other = await page.reload({ ...shop, network });
    const resumed = other.chat.resumeStream();
    await eventually(() => network.chunks === 3);
    more();
    await sent;
    ended.open();
    await resumed;
    await expectCounted(other);
  });

  it('AIS-13 resumes to an approval request, and after the approval', async () => {
    const { page, shop, more } = await openHeld();
    await page.chat.sendMessage({ text: QUESTION });
    const second = await page.reload({ ...shop, transport: PREPARED });
    await second.chat.resumeStream();
    expect(second.messages.at(-1)?.parts.at(-1)).toMatchObject({ state: 'approval-requested' });
    const approved = second.approve();
    await eventually(() => textOf(second).includes('Order 7 is '));
    const third = await second.reload({ ...shop });
    const resumed = third.chat.resumeStream();
    await eventually(() => textOf(third) === textOf(second));
    more();
    await Promise.all([approved, resumed]);
    await expectAnswered(second);
    await expectAnswered(third);
  });

  it.each([0, -10])('AIS-13 shows no error if there is no answer to resume, with startIndex %i', async (start) => {
    const { page, shop } = await open();
    const transport = { initialStartIndex: start };
    const unknown = new Page({ ...shop, transport });
    await unknown.chat.resumeStream();
    expect([unknown.chat.status, unknown.chat.error, unknown.messages]).toEqual(['ready', undefined, []]);
    await page.converse('Count.');
    const other = await page.reload({ ...shop, transport });
    await other.chat.resumeStream();
    expect([other.chat.status, other.chat.error, other.messages]).toEqual(['ready', undefined, await page.stored()]);
    expect(other.network.requests).toHaveLength(1);
  });

  it('AIS-13 begins an answer at its start if startIndex is negative', async () => {
    const { page, shop, more } = await openHeld();
    const sent = page.converse('Count.');
    await eventually(() => textOf(page).includes('three'));
    const warn = jest.spyOn(console, 'warn');
    const other = await page.reload({
      ...shop,
      transport: { initialStartIndex: -2 },
      network: new Network({ at: (chunk) => chunk === 4 }),
    });
    const resumed = other.chat.resumeStream();
    await eventually(() => textOf(other) === textOf(page));
    more();
    await Promise.all([sent, resumed]);
    await expectCounted(other);
    expect(other.network.requests.map((request) => request.split('?')[1])).toEqual(['startIndex=-2', 'startIndex=4']);
    expect(warn).not.toHaveBeenCalled();
  });

  it('AIS-13 AIS-12 regenerates an answer, and edits a message', async () => {
    const { page } = await open({}, { transport: PREPARED });
    await page.converse('Count.');
    const [, first] = page.messages;
    await page.chat.regenerate();
    page.check();
    await expectCounted(page);
    expect(page.messages[1].id).not.toBe(first.id);
    const [user] = page.messages;
    await page.chat.sendMessage({ text: QUESTION, messageId: user.id });
    await page.approve();
    await expectAnswered(page);
    expect(page.messages[0]).toMatchObject({ id: user.id, parts: [{ text: QUESTION }] });
    expect(page.network.sent.map(({ body }) => [body.trigger, body.messageId])).toEqual([
      ['submit-message', undefined],
      ['regenerate-message', undefined],
      ['submit-message', user.id],
      ['submit-message', page.messages[1].id],
    ]);
  });

  it('AIS-13 AIS-19 shows that an answer has failed, and does not reconnect without end', async () => {
    const { page, shop } = await open();
    await page.chat.sendMessage({ text: 'Fail.' });
    expect(page.chat.status).toBe('error');
    expect(JSON.parse(page.chat.error!.message)).toEqual({ code: 'TURN_FAILED', message: 'The answer failed.' });
    // The transport asks again at the end of a response without a finish, until the chat has closed its stream.
    await eventually(() => page.network.requests.length === 2);
    await page.chat.resumeStream();
    await page.reload(shop);
    expect(page.network.requests).toHaveLength(3);
  });

  it('AIS-13 disconnects without further requests if the page stops', async () => {
    const { page, more } = await openHeld();
    const sent = page.chat.sendMessage({ text: 'Count.' });
    await eventually(() => textOf(page).includes('three'));
    await page.chat.stop();
    await sent;
    expect([page.chat.status, page.network.requests.length]).toEqual(['ready', 1]);
    more();
  });
});

interface Opened {
  readonly shop: Shop;
  readonly page: Page;
}

async function open(options: ShopOptions = {}, page: Partial<PageOptions> = {}): Promise<Opened> {
  const shop = await startShop(options);
  return { shop, page: new Page({ ...shop, ...page }) };
}

/** Opens a page of a shop that holds its last answer after the fourth word, until `more` is called. */
async function openHeld(page: Partial<PageOptions> = {}): Promise<Opened & { readonly more: () => void }> {
  const held = gate();
  const opened = await open({ before: (word) => word === 4 && held.pass() }, page);
  return { ...opened, more: held.open };
}

async function expectAnswered(page: Page): Promise<void> {
  page.check();
  expect(page.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  expect(
    page.messages[1].parts.map(({ type, state }) => (state === undefined ? type : `${type}: ${state as string}`)),
  ).toEqual([
    'step-start',
    'reasoning: done',
    'text: done',
    'tool-findOrder: output-available',
    'tool-refundOrder: output-available',
    'step-start',
    'text: done',
  ]);
  await expectStored(page);
}

async function expectCounted(page: Page): Promise<void> {
  page.check();
  expect(page.messages.map(textsOf)).toEqual([
    ['Count.'],
    [expect.stringMatching(/^One two three \(version \d+\) four five\.$/)],
  ]);
  await expectStored(page);
}

async function expectStored(page: Page): Promise<void> {
  expect(page.chat.status).toBe('ready');
  expect((await page.stored()).map(comparable)).toEqual(page.messages.map(comparable));
}

function textOf(page: Page): string {
  return page.messages.flatMap((message) => (message.role === 'assistant' ? textsOf(message) : [])).join('');
}

function outlinesOf({ messages }: Page): unknown[] {
  return messages.map((message: AnyUIMessage) => outlineOf(message));
}

/** Returns the number of chunks of the first response. */
function firstChunksOf({ network }: Page): number {
  return network.ends[0];
}

async function inBatches<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) await Promise.all(items.slice(at, at + AT_ONCE).map(run));
}
