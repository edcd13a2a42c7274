import { isDeepStrictEqual } from 'node:util';
import { isTerminal, type Message } from 'nestjs-agent-sessions';
import { type TurnView } from './turn-view.js';

const PAGE = 500;

/** A session seen from outside: what was sent to it, and what the API says of its turns. */
export class Lane {
  /** Every message that was accepted, in this order. */
  readonly sent: { readonly turnId: string; readonly text: string }[] = [];
  /** In the order of the lane. */
  turns: TurnView[] = [];

  private constructor(
    private readonly url: string,
    private readonly headers: Record<string, string>,
    readonly name: string,
  ) {}

  static async open(url: string, name: string): Promise<Lane> {
    const stranger = new Lane(url, { 'x-user-id': name }, name);
    const { id } = await stranger.ask<{ id: string }>('/sessions', {});
    return new Lane(url, { ...stranger.headers, 'x-session-id': id }, name);
  }

  async say(text: string): Promise<void> {
    const { id } = await this.ask<TurnView>('/turns', { input: text });
    this.sent.push({ turnId: id, text });
  }

  /** Reads what may have changed. */
  async look(): Promise<void> {
    const over = this.settled;
    this.turns = [...this.turns.slice(0, over), ...(await this.readAll<TurnView>('/turns', over))];
  }

  /** How many turns have settled, from the first one without a gap. */
  get settled(): number {
    const open = this.turns.findIndex(({ status }) => !isTerminal(status));
    return open < 0 ? this.turns.length : open;
  }

  /** Also with turns that somebody else has sent: `verify` tells of them. */
  get isIdle(): boolean {
    return this.settled >= this.sent.length;
  }

  get running(): TurnView | undefined {
    return this.turns.find(({ status }) => status === 'running');
  }

  /** What a look at any time must show: one after the other, and nothing begun before what came earlier has settled. */
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
   * Compares everything that is stored with what was sent: every message is answered once, in its order, on top of the
   * one before it. @returns what is wrong, or null
   */
  async verify(): Promise<string | null> {
    this.turns = await this.readAll<TurnView>('/turns');
    const messages = await this.readAll<Message>('/messages');
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
