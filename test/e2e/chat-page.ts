import { type BrowserContext, type Locator, type Page } from 'playwright-core';
import { type Turn } from 'nestjs-agent-sessions';

/** What `GET /overview` says, as far as it is looked at here. */
export interface Overview {
  readonly step: { readonly name: string; readonly tools: readonly string[] };
  readonly turns: readonly (Pick<Turn, 'id' | 'status' | 'lost'> & { input: string; reply: string | null })[];
}

/** The chat page of the support desk in a browser, as its reader sees it. */
export class ChatPage {
  private constructor(readonly page: Page) {}

  static async open(context: BrowserContext, url: string): Promise<ChatPage> {
    const page = await context.newPage();
    await page.goto(url);
    const chat = new ChatPage(page);
    await chat.ready();
    return chat;
  }

  /** Once it has what the server knows. */
  async ready(): Promise<void> {
    await this.page.locator('#log:not([aria-busy])').waitFor({ state: 'attached' });
  }

  get input(): Locator {
    return this.page.getByLabel('Message', { exact: true });
  }

  get status(): Locator {
    return this.page.getByRole('status');
  }

  get stop(): Locator {
    return this.page.getByRole('button', { name: 'Stop' });
  }

  button(name: string): Locator {
    return this.page.getByRole('button', { name, exact: true });
  }

  /** The answer to the latest message. */
  get answer(): Locator {
    return this.page.locator('.answer span:last-child').last();
  }

  async say(text: string): Promise<void> {
    await this.input.fill(text);
    await this.input.press('Enter');
  }

  /** Clicks a suggestion. */
  async choose(suggestion: string): Promise<void> {
    await this.page.getByRole('button', { name: suggestion }).click();
  }

  /** Waits until something is written somewhere in the conversation. */
  async sees(text: string | RegExp): Promise<void> {
    await this.page.locator('#content').getByText(text).first().waitFor();
  }

  /** Questions, answers and notes, one text each. */
  async lines(): Promise<string[]> {
    return this.page.locator('#content p:visible:not(#welcome)').allTextContents();
  }

  /** What a screen reader has been given to read aloud since `listen`. */
  async readAloud(): Promise<string[]> {
    return this.page.evaluate(() => (globalThis as unknown as Recorded).readAloud);
  }

  /** Each text that an answer has had since `listen`, in their order. */
  async answersShown(): Promise<string[]> {
    return this.page.evaluate(() => (globalThis as unknown as Recorded).shown);
  }

  /** Begins to note what is added to the log, and how the answer on its way changes. */
  async listen(): Promise<void> {
    await this.page.evaluate(RECORD);
  }

  /** The addresses ending so that are asked from now on. */
  requestsFor(end: string): string[] {
    const asked: string[] = [];
    this.page.on('request', (request) => {
      if (request.url().endsWith(end)) asked.push(request.url());
    });
    return asked;
  }

  /** Holds requests back until they may continue. */
  async hold(addresses: string): Promise<{ goesOn(): Promise<void> }> {
    let goOn = (): void => {};
    const held = new Promise<void>((resolve) => (goOn = resolve));
    await this.page.route(addresses, async (route) => {
      await held;
      await route.continue();
    });
    return {
      goesOn: async () => {
        goOn();
        await this.page.unrouteAll({ behavior: 'wait' });
      },
    };
  }

  /** The response of the server to this page's cookies. */
  async overview(): Promise<Overview> {
    const response = await this.page.request.get(new URL('overview', this.page.url()).href);
    return (await response.json()) as Overview;
  }
}

interface Recorded {
  readonly readAloud: string[];
  readonly shown: string[];
}

const RECORD = `
  globalThis.readAloud = [];
  globalThis.shown = [];
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const node of addedNodes) readAloud.push(node.textContent);
  }).observe(document.getElementById('log'), { childList: true, subtree: true, characterData: true });
  new MutationObserver(() => {
    const text = document.querySelector('.turn .answer span:last-child')?.textContent;
    if (text && text !== shown.at(-1)) shown.push(text);
  }).observe(document.getElementById('content'), { childList: true, subtree: true, characterData: true });
`;
