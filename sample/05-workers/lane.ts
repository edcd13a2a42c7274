import { isDeepStrictEqual } from 'node:util';
import { isTerminal, type ConversationMessage } from 'nestjs-agent-sessions';
import { type TurnView } from './turn-view.js';

const PAGE = 500;

/** A session from a client's point of view: the messages that it sent, and the turns that the API returns. */
export class Lane {
  /** The accepted messages, in order. */
  readonly sent: { readonly turnId: string; readonly text: string }[] = [];
  /** The turns in the order of the lane. */
  turns: TurnView[] = [];

  private constructor(
    private readonly url: string,
    private readonly headers: Record<string, string>,
    readonly name: string,
  ) {}

  static async open(url: string, name: string): Promise<Lane> {
    const withoutSession = new Lane(url, { 'x-user-id': name }, name);
    const { id } = await withoutSession.ask<{ id: string }>('/sessions', {});
    return new Lane(url, { ...withoutSession.headers, 'x-session-id': id }, name);
  }

  async say(text: string): Promise<void> {
    const { id } = await this.ask<TurnView>('/turns', { input: text });
    this.sent.push({ turnId: id, text });
  }

  /** Loads the turns that may have changed. */
  async refresh(): Promise<void> {
    const over = this.settled;
    this.turns = [...this.turns.slice(0, over), ...(await this.readAll<TurnView>('/turns', over))];
  }

  /** The number of settled turns before the first open one. */
  get settled(): number {
    const open = this.turns.findIndex(({ status }) => !isTerminal(status));
    return open < 0 ? this.turns.length : open;
  }

  /** True if as many turns have settled as were sent. Turns of other clients count too; `verify` reports them. */
  get isIdle(): boolean {
    return this.settled >= this.sent.length;
  }

  get running(): TurnView | undefined {
    return this.turns.find(({ status }) => status === 'running');
  }

  /** Checks a rule that holds at any time: turns run one after the other, and none starts before all earlier ones have settled. */
  get isInOrder(): boolean {
    const later = this.turns.slice(this.settled + 1);
    const times = this.turns.slice(0, this.settled).map(({ settledAt }) => settledAt ?? '');
    return (
      this.turns.every(({ position }, i) => position === i + 1) &&
      times.every((time, i) => i === 0 || times[i - 1] <= time) &&
      later.every(({ status }) => status === 'queued')
    );
  }

  /**
   * Compares the stored turns with the sent messages: each message was answered once, in order, based on the state of the one before it.
   * @returns the violation, or null
   */
  async verify(): Promise<string | null> {
    this.turns = await this.readAll<TurnView>('/turns');
    const messages = await this.readAll<ConversationMessage>('/messages');
    const answers = this.sent.map(({ text }, i) => `Answer ${i + 1} to ${text}`);
    return (
      difference(
        'turn',
        this.turns.map(({ id, status, turnIndex, reply }) => ({ id, status, turnIndex, reply })),
        this.sent.map(({ turnId: id }, i) => ({ id, status: 'awaiting-input', turnIndex: i, reply: answers[i] })),
      ) ??
      difference(
        'message',
        messages.map(({ content }) => content),
        this.sent.flatMap(({ text }, i) => [text, answers[i]]),
      ) ??
      (this.isInOrder ? null : 'its turns did not settle one after the other')
    );
  }

  private async readAll<T extends { readonly position: number }>(path: string, after = 0): Promise<T[]> {
    const page = await this.ask<T[]>(`${path}?after=${after}&limit=${PAGE}`);
    const last = page.at(-1);
    return page.length < PAGE || !last ? page : [...page, ...(await this.readAll<T>(path, last.position))];
  }

  private async ask<T>(path: string, body?: object): Promise<T> {
    const response = await fetch(this.url + path, {
      headers: { ...this.headers, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }
}

function difference(what: string, stored: readonly unknown[], expected: readonly unknown[]): string | null {
  if (stored.length !== expected.length) return `it has ${stored.length} ${what}s, not ${expected.length}`;
  const at = stored.findIndex((item, i) => !isDeepStrictEqual(item, expected[i]));
  if (at < 0) return null;
  return `its ${what} ${at + 1} is ${JSON.stringify(stored[at])}, not ${JSON.stringify(expected[at])}`;
}
