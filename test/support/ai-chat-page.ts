import { type BrowserContext, type Locator, type Page } from 'playwright-core';

/** A message as the page shows it. */
export interface ShownMessage {
  readonly role: 'user' | 'assistant';
  /** The texts, without reasoning and tool calls. */
  readonly texts: readonly string[];
  /** `name: state` of each tool call. */
  readonly tools: readonly string[];
  readonly files: number;
}

/** The page of sample/06-ai-chat in a browser. */
export class AiChatPage {
  private constructor(readonly page: Page) {}

  /** @param chatId default: a new conversation */
  static async open(context: BrowserContext, url: string, chatId?: string): Promise<AiChatPage> {
    const page = await context.newPage();
    const chat = new AiChatPage(page);
    await page.addInitScript(RECORD);
    await page.goto(chatId === undefined ? url : `${url}/#${chatId}`);
    await chat.input.waitFor();
    return chat;
  }

  /** The id of the conversation. */
  get chatId(): string {
    return decodeURIComponent(new URL(this.page.url()).hash.slice(1));
  }

  get input(): Locator {
    return this.page.getByRole('textbox', { name: 'Message', exact: true });
  }

  get problem(): Locator {
    return this.page.locator('.problem');
  }

  /** The notes of answers that continued after a crash. */
  get continued(): Locator {
    return this.page.locator('.message').getByText('Continued after an interruption.');
  }

  get stop(): Locator {
    return this.button('Stop');
  }

  /** The text of the last message. */
  get lastText(): Locator {
    return this.page.locator('.message .text').last();
  }

  button(name: string): Locator {
    return this.page.getByRole('button', { name, exact: true });
  }

  async send(text: string): Promise<void> {
    await this.input.fill(text);
    await this.button('Send').click();
  }

  /** @param answer `Approve` or `Deny` */
  async decide(answer: 'Approve' | 'Deny'): Promise<void> {
    await this.button(answer).click();
  }

  /** Changes the last user message, and sends it. */
  async edit(text: string): Promise<void> {
    await this.button('Edit').last().click();
    await this.page.getByRole('textbox', { name: 'Edit your message' }).fill(text);
    await this.button('Save and send').click();
  }

  async attach(...files: { name: string; mimeType: string; buffer: Buffer }[]): Promise<void> {
    await this.page.getByLabel('Attach').setInputFiles(files);
    await this.page.getByRole('list', { name: 'Attachments' }).waitFor();
  }

  /** Waits until the conversation shows this. */
  async sees(text: string | RegExp): Promise<void> {
    await this.page.locator('.messages').getByText(text).first().waitFor();
  }

  /** Waits until the last message is an answer and complete. */
  async answered(): Promise<void> {
    await this.button('Regenerate').waitFor();
  }

  async messages(): Promise<ShownMessage[]> {
    return this.page.evaluate<ShownMessage[]>(READ);
  }

  /** The titles in the list of conversations, the latest first. */
  async chats(): Promise<string[]> {
    return this.page.locator('nav a span').allTextContents();
  }

  /** Returns each text that the last answer has had since the page was loaded, in their order. */
  async answersShown(): Promise<string[]> {
    return this.page.evaluate(() => (globalThis as unknown as { answersShown: string[] }).answersShown);
  }
}

const READ = `[...document.querySelectorAll('.message')].map((message) => ({
  role: message.dataset.role,
  texts: [...message.querySelectorAll('.text')].map((text) => text.textContent),
  tools: [...message.querySelectorAll('.tool-title')].map((title) =>
    [...title.children].map((child) => child.textContent).join(': ')),
  files: message.querySelectorAll('.file').length,
}))`;

const RECORD = `
  globalThis.answersShown = [];
  new MutationObserver(() => {
    const answer = [...document.querySelectorAll('.message')].at(-1);
    if (answer?.dataset.role !== 'assistant') return;
    const text = [...answer.querySelectorAll('.text')].map((each) => each.textContent).join('\\n');
    if (text !== '' && text !== answersShown.at(-1)) answersShown.push(text);
  }).observe(document, { childList: true, subtree: true, characterData: true });
`;
