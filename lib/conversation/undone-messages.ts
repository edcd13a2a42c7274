import { type ConversationLog } from './conversation.store.js';
import { type Message } from './message.js';
import { readBackwards } from './read-backwards.js';

/** Without the messages of turns that were taken back. */
export function withoutUndone(messages: readonly Message[], undone: ReadonlySet<string>): readonly Message[] {
  return messages.filter(({ turnId }) => turnId === undefined || !undone.has(turnId));
}

/**
 * The last messages that count. Reads further back only where the window has lost some.
 * @param window as `ConversationLog.window(sessionId, limit)` gives it
 */
export async function windowWithoutUndone(
  log: Pick<ConversationLog, 'window' | 'page'>,
  sessionId: string,
  window: readonly Message[],
  limit: number,
  turnIds: readonly string[] = [],
): Promise<readonly Message[]> {
  const undone = new Set(turnIds);
  const kept = withoutUndone(window, undone);
  if (kept.length === window.length) return window;
  // A leading message may stand before a gap.
  const lead = window.length > 1 && window[1].position > window[0].position + 1 ? window.slice(0, 1) : [];
  let recent = kept.filter((message) => !lead.includes(message));
  let first = window[lead.length].position;
  for await (const page of readBackwards(log, sessionId, first)) {
    recent = [...withoutUndone(page, undone), ...recent];
    first = page[0].position;
    if (recent.length >= limit) break;
  }
  return [...(first > 1 ? withoutUndone(lead, undone) : []), ...recent];
}

/**
 * The turns of an orchestrator from one of them on that have said something.
 * @returns that one among them in any case
 */
export async function turnsSince(
  log: Pick<ConversationLog, 'window' | 'page'>,
  sessionId: string,
  orchestrator: string,
  turnId: string,
): Promise<readonly string[]> {
  const since = new Set([turnId]);
  for await (const page of readBackwards(log, sessionId)) {
    const start = page.findIndex((message) => message.turnId === turnId);
    for (const message of start < 0 ? page : page.slice(start)) {
      if (message.orchestrator === orchestrator && message.turnId !== undefined) since.add(message.turnId);
    }
    if (start >= 0) return [...since];
  }
  // It has said nothing, so nothing is known of what came after it.
  return [turnId];
}
