import { type NewMessage } from './conversation.store.js';
import { type Turn } from './turn.js';

/** Returns the user's input as a message of the log. */
export function userMessage({ id, request }: Pick<Turn, 'id' | 'request'>): NewMessage {
  const { text, content, metadata } = request.input;
  return { id: messageId(id, 0), role: 'user', content: content ?? text, ...(metadata ? { metadata } : {}) };
}

/**
 * Returns the messages that remain of an interrupted turn: the user's message and those to keep, unless the turn is a
 * command or unlogged.
 */
export function interruptedMessages(turn: Pick<Turn, 'id' | 'request' | 'keep'>): NewMessage[] {
  const { command, unlogged } = turn.request;
  return command || unlogged ? [] : [userMessage(turn), ...(turn.keep ?? [])];
}

/** Returns the id of a turn's message. It is derived from the turn, so that every attempt writes the same ids. */
export function messageId(turnId: string, index: number): string {
  return `${turnId}.${index}`;
}
