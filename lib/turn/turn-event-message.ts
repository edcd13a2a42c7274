import { type TurnEvent, type TurnEventMessage } from '../ledger/turn-event.js';

/** Readers of one event share its message, and its data is put into text once. */
const messages = new WeakMap<TurnEvent, TurnEventMessage>();

export function messageOf(event: TurnEvent): TurnEventMessage {
  let message = messages.get(event);
  if (!message) {
    message = { id: String(event.offset), type: event.type, data: JSON.stringify(event.data) };
    messages.set(event, message);
  }
  return message;
}
