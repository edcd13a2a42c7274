import { type NewMessage } from './conversation.store.js';
import { type Turn } from './turn.js';

/** What the user said, as a message of the log. */
export function userMessage({ id, request }: Pick<Turn, 'id' | 'request'>): NewMessage {
  const { text, content, metadata } = request.input;
  return { id: messageId(id, 0), role: 'user', content: content ?? text, ...(metadata ? { metadata } : {}) };
}

/** What stays in the conversation of a turn that was interrupted: what the user said, unless it is a command or unlogged. */
export function interruptedMessages(turn: Pick<Turn, 'id' | 'request'>): NewMessage[] {
  const { command, unlogged } = turn.request;
  return command || unlogged ? [] : [userMessage(turn)];
}

/** Ids of a turn's messages follow from the turn, so that every attempt writes the same ones. */
export function messageId(turnId: string, index: number): string {
  return `${turnId}.${index}`;
}
