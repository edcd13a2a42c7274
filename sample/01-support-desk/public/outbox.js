import { ask, Refused } from './api.js';
import { NO_SESSION } from './session.js';

const KEPT = 'outbox';

/**
 * Messages that the server has not accepted yet, in their order. They survive a reload. Each has an idempotency key: a message that is sent
 * twice, because the first response was lost, creates one turn. Each belongs to the conversation in which it was written, also after the
 * page has moved to another one.
 */
export class Outbox {
  messages = JSON.parse(sessionStorage.getItem(KEPT) ?? '[]');

  /** @param sessionId the conversation; undefined if it does not exist yet */
  add(text, sessionId) {
    this.keep([...this.messages, { key: newKey(), text, sessionId }]);
  }

  /** Gives messages without a conversation to this one. */
  assign(sessionId) {
    if (this.of(undefined).length === 0) return;
    this.keep(this.messages.map((message) => ({ ...message, sessionId: message.sessionId ?? sessionId })));
  }

  /** The messages of a conversation, also those that the server has refused. */
  of(sessionId) {
    return this.messages.filter((message) => message.sessionId === sessionId);
  }

  /** The first message to send: of any conversation, because the page may have moved to another one. */
  get next() {
    return this.messages.find(({ refused, sessionId }) => refused === undefined && sessionId !== undefined);
  }

  /**
   * Sends the next message. If the server refuses it, the message stays here with the reason, until the user sends it again or removes it.
   * @throws Unreachable
   */
  async sendNext() {
    const { key, text, sessionId } = this.next;
    const headers = { 'idempotency-key': key, 'x-session-id': sessionId };
    try {
      await ask('turns/submit', { method: 'POST', body: { input: text }, headers });
      this.remove(key);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      // If its conversation has ended, the message belongs to the next one.
      const isOver = NO_SESSION.includes(error.code);
      this.change(key, { refused: error.message, ...(isOver && { sessionId: undefined }) });
    }
  }

  sendAgain(key) {
    this.change(key, { refused: undefined });
  }

  /** @returns the text of the message */
  remove(key) {
    const removed = this.messages.find((message) => message.key === key);
    this.keep(this.messages.filter((message) => message !== removed));
    return removed?.text;
  }

  change(key, change) {
    this.keep(this.messages.map((message) => (message.key === key ? { ...message, ...change } : message)));
  }

  keep(messages) {
    this.messages = messages;
    try {
      sessionStorage.setItem(KEPT, JSON.stringify(messages));
    } catch {
      // Too large for the storage of the browser: kept until the page is closed.
    }
  }
}

/** `crypto.randomUUID` exists on HTTPS and localhost only; a phone in the same network may open the page over HTTP. */
function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
