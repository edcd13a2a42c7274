import { type ConversationLog } from './conversation.store.js';
import { type Message } from './message.js';
import { readBackwards } from './read-backwards.js';

/** Without the messages of turns that were taken back. */
export function withoutUndone(messages: readonly Message[], undone: ReadonlySet<string>): readonly Message[] {
  return messages.filter(({ turnId }) => turnId === undefined || !undone.has(turnId));
}

/**
 * The last messages that count. Reads further back only where the window has lost some.
 * @param window as `ConversationLog.window` gives it
 * @param wanted.after what stands up to this position is not looked at
 * @param wanted.limit how many are enough
 */
export async function windowWithoutUndone(
  log: Pick<ConversationLog, 'window' | 'page'>,
  sessionId: string,
  window: readonly Message[],
  { after = 0, limit }: { readonly after?: number; readonly limit: number },
  turnIds: readonly string[] = [],
): Promise<readonly Message[]> {
  const undone = new Set(turnIds);
  const kept = withoutUndone(window, undone);
  if (kept.length === window.length) return window;
  // A leading message may stand before a gap.
  const lead = window.length > 1 && window[1].position > window[0].position + 1 ? window.slice(0, 1) : [];
  let recent = kept.filter((message) => !lead.includes(message));
  let first = window[lead.length].position;
  for await (const page of readBackwards(log, sessionId, { before: first, after })) {
    recent = [...withoutUndone(page, undone), ...recent];
    first = page[0].position;
    if (recent.length >= limit) break;
  }
  return [...(first > 1 ? withoutUndone(lead, undone) : []), ...recent];
}

/** What an undo takes back. */
export interface TakenBackTurns {
  readonly turnIds: readonly string[];
  /** The position of their first message; `null` when they have said nothing. */
  readonly from: number | null;
}

/** The turns of an orchestrator that have said something, from one of them on. */
export async function turnsSince(
  log: Pick<ConversationLog, 'window' | 'page'>,
  sessionId: string,
  orchestrator: string,
  turnId: string,
): Promise<TakenBackTurns> {
  const turnIds = new Set([turnId]);
  let from: number | null = null;
  for await (const page of readBackwards(log, sessionId)) {
    const start = page.findIndex((message) => message.turnId === turnId);
    if (start < 0 && from !== null) break;
    for (const message of start < 0 ? page : page.slice(start)) {
      if (message.orchestrator === orchestrator && message.turnId !== undefined) turnIds.add(message.turnId);
    }
    if (start >= 0) from = page[start].position;
    // At the beginning of a page there may be more of it in the one before.
    if (start > 0) break;
  }
  // Where the turn itself has said nothing, nothing is known of what came after it.
  return from === null ? { turnIds: [turnId], from } : { turnIds: [...turnIds], from };
}
