import { streamReplyText, type UITurn } from '../chat/ui-stream.js';
import { reply, TurnOutcome } from './turn-outcome.js';

/**
 * Streams the reply that an intent has returned, if the turn has streamed other chunks before (AIS-10).
 * @returns the intent's result; if it has no messages, with the message that clients have
 */
export async function withStreamed(turn: UITurn, value: unknown): Promise<unknown> {
  const outcome = typeof value === 'string' ? reply(value) : value;
  if (!(outcome instanceof TurnOutcome)) return value;
  const { text, options } = outcome as TurnOutcome;
  if (typeof text !== 'string' || 'messages' in options) return value;
  const message = await streamReplyText(turn, text);
  // The original is the prototype, because errors about its values show its stack.
  return message ? Object.create(outcome, { options: { value: { ...options, messages: [message] } } }) : value;
}
