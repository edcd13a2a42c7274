import { ask, Refused } from './api.js';

const KEPT = 'outbox';

/**
 * Messages that the server has not accepted yet, in their order. They survive a reload. Each has an idempotency key: a message that is sent
 * twice, because the first response was lost, creates one turn.
 */
export class Outbox {
  messages = JSON.parse(sessionStorage.getItem(KEPT) ?? '[]');

  add(text) {
    this.keep([...this.messages, { key: newKey(), text }]);
  }

  /**
   * Sends the first message.
   * @param onRefused receives a message that the server rejected, and the reason
   * @throws Unreachable
   */
  async sendFirst(onRefused) {
    const [message] = this.messages;
    const { key, text } = message;
    try {
      await ask('turns/submit', { method: 'POST', body: { input: text }, headers: { 'idempotency-key': key } });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      onRefused(message, error.message);
    }
    this.keep(this.messages.filter((other) => other !== message));
  }

  clear() {
    this.keep([]);
  }

  keep(messages) {
    this.messages = messages;
    sessionStorage.setItem(KEPT, JSON.stringify(messages));
  }
}

/** `crypto.randomUUID` exists on HTTPS and localhost only; a phone in the same network may open the page over HTTP. */
function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
