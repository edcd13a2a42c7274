import { TurnRow } from './turn-row.js';

const log = document.getElementById('log');
const open = document.getElementById('open');
const welcome = document.getElementById('welcome');

/**
 * The rows of the conversation, by the idempotency key of their message: one row from typing to the answer. A row is in #open until its
 * turn is over; then it moves to #log, where a screen reader announces it once, complete.
 */
export class Conversation {
  rows = new Map();
  /** All turns up to this position are over, so the server need not send them again. */
  seen = 0;

  /** @param actions for a message that was not sent, by the label of their button; they receive the key of the message */
  constructor(actions) {
    this.actions = actions;
  }

  /** Adds a message that the server does not have yet. */
  add({ key, text, refused }, note) {
    const row = this.row(key, text);
    // The server has it, if the row has an id: only the response was lost.
    if (refused === undefined && row.id === undefined) row.change({ note });
    if (refused !== undefined && row.isOpen) row.refuse(refused, this.actions, key);
  }

  /** Shows turns from the server, in their order. */
  show(turns) {
    for (const { id, idempotencyKey, position, input, status, reply, lost } of turns) {
      const isContinued = lost > 0 || undefined;
      this.row(idempotencyKey ?? id, input).change({ id, position, status, reply, isContinued });
    }
    this.arrange();
    for (const { position, settledAt } of turns) {
      if (!settledAt) break;
      this.seen = position;
    }
  }

  /** Shows the end of a turn before the server is polled. */
  end(row, end) {
    row.change(end);
    this.arrange();
  }

  remove(key) {
    this.rows.get(key)?.element.remove();
    this.rows.delete(key);
    welcome.hidden = this.rows.size > 0;
  }

  /** The first turn that still runs on the server. */
  get current() {
    const open = [...this.rows.values()].filter(({ isOpen, id }) => isOpen && id);
    return open.sort(byPosition)[0];
  }

  clear() {
    this.rows.clear();
    this.seen = 0;
    log.replaceChildren();
    open.replaceChildren();
    welcome.hidden = false;
  }

  /** The rows in the order of the lane. */
  arrange() {
    const rows = [...this.rows.values()].filter(({ element }) => element.parentElement === open);
    rows.sort(byPosition);
    while (rows.length > 0 && !rows[0].isOpen) {
      log.append(rows.shift().element);
    }
    if (rows.some(({ element }, at) => open.children[at] !== element))
      open.append(...rows.map(({ element }) => element));
  }

  row(key, text) {
    if (!this.rows.has(key)) {
      const row = new TurnRow(text);
      this.rows.set(key, row);
      open.append(row.element);
      welcome.hidden = true;
    }
    return this.rows.get(key);
  }
}

function byPosition(a, b) {
  return a.position === b.position ? 0 : a.position - b.position;
}
