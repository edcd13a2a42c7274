import { type Checkpoint } from '../ledger/checkpoint.js';
import { undoneIn } from './log-epoch.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { type ConversationMessage, type MessageSpan } from '../ledger/message.js';
import { readBackwards } from './read-backwards.js';

/** Returns the spans that were undone in this epoch of a log, by the latest checkpoints of its orchestrators. */
export function undoneBy(checkpoints: Iterable<Checkpoint | null>, log: string): readonly MessageSpan[] {
  return [...checkpoints].flatMap((checkpoint) => undoneIn(checkpoint, log));
}

/** Returns the messages without those that were undone. */
export function withoutUndone(
  messages: readonly ConversationMessage[],
  undone: readonly MessageSpan[],
): readonly ConversationMessage[] {
  return messages.filter(({ position }) => !spanAt(undone, position));
}

/** Returns how many messages of a span were not undone. */
export function countIn({ from, through }: MessageSpan, undone: readonly MessageSpan[]): number {
  const common = joined(undone).map((span) => Math.min(span.through, through) - Math.max(span.from, from) + 1);
  return common.reduce((count, size) => count - Math.max(0, size), Math.max(0, through - from + 1));
}

/**
 * Returns the last messages that count. Reads further back only if messages of the window were undone: only the
 * missing ones, and never the spans that were undone.
 * @param window the result of `ConversationLog.window`
 * @param wanted.after messages up to this position are not read
 * @param wanted.limit the number of messages that is enough
 */
export async function windowWithoutUndone(
  log: Pick<ConversationLog, 'page'>,
  sessionId: string,
  window: readonly ConversationMessage[],
  { after = 0, limit }: { readonly after?: number; readonly limit: number },
  undone: readonly MessageSpan[] = [],
): Promise<readonly ConversationMessage[]> {
  if (undone.length === 0) return window;
  const kept = withoutUndone(window, undone);
  if (kept.length === window.length) return window;
  // The leading message may be followed by a gap.
  const lead = window.length > 1 && window[1].position > window[0].position + 1 ? window.slice(0, 1) : [];
  let recent = kept.filter((message) => !lead.includes(message));
  let first = window[lead.length].position;
  for (let size = 0; recent.length < limit;) {
    const last = (spanAt(undone, first - 1)?.from ?? first) - 1;
    if (last <= after) break;
    // Doubles each time, because single messages between the others may have been undone.
    size = Math.max(limit - recent.length, 2 * size);
    const begin = Math.max(after, last - size);
    const page = await log.page(sessionId, { after: begin, limit: last - begin });
    recent = [...withoutUndone(page, undone), ...recent];
    first = begin + 1;
  }
  return [...withoutUndone(lead, undone).filter(({ position }) => position < first), ...recent];
}

/**
 * Returns the spans of the messages of an orchestrator's turns, from one turn on; ordered and disjoint.
 * @param isOlder whether another turn was accepted before this one: its messages are earlier, so the search ends there
 * @returns an empty list if the turn wrote no message: then later messages are unknown
 */
export async function messagesSince(
  log: Pick<ConversationLog, 'window' | 'page'>,
  sessionId: string,
  orchestrator: string,
  turnId: string,
  isOlder: (turnId: string) => Promise<boolean> = () => Promise.resolve(false),
): Promise<readonly MessageSpan[]> {
  let spans: readonly MessageSpan[] = [];
  let found = false;
  for await (const page of readBackwards(log, sessionId)) {
    const start = page.findIndex((message) => message.turnId === turnId);
    if (start < 0 && found) break;
    const taken = page.slice(Math.max(0, start)).filter((message) => {
      return message.turnId === turnId || (message.turnId !== undefined && message.orchestrator === orchestrator);
    });
    spans = joined(taken.map(({ position }) => ({ from: position, through: position })).concat(spans));
    found ||= start >= 0;
    // At the start of a page, the turn may have more messages in the page before.
    if (start > 0) break;
    const oldest = page.find((message) => message.turnId !== undefined)?.turnId;
    if (!found && oldest !== undefined && (await isOlder(oldest))) break;
  }
  return found ? spans : [];
}

/** Orders spans and joins those that touch. */
export function joined(spans: readonly MessageSpan[]): readonly MessageSpan[] {
  const result: MessageSpan[] = [];
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    if (!last || span.from > last.through + 1) result.push(span);
    else result[result.length - 1] = { from: last.from, through: Math.max(last.through, span.through) };
  }
  return result;
}

function spanAt(spans: readonly MessageSpan[], position: number): MessageSpan | undefined {
  return spans.find(({ from, through }) => from <= position && position <= through);
}
