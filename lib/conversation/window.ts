import { type MessageDraft } from './message.js';

/**
 * The last `limit` messages as a model may be given them (BOT-40): a leading system message stays, outside the count,
 * and the cut never separates an assistant's tool calls from their results.
 */
export function lastMessages<M extends MessageDraft>(log: readonly M[], limit: number): readonly M[] {
  if (limit === 0) return [];
  const [first] = log;
  const leading = first?.role === 'system' ? [first] : [];
  const rest = log.slice(leading.length);
  let start = Math.max(0, rest.length - limit);
  // A result whose call was cut off means nothing to a model, so the cut moves on to the next whole exchange.
  while (rest[start]?.role === 'tool') start += 1;
  return [...leading, ...rest.slice(start)];
}
