import { type ConversationLog } from '../ledger/conversation.store.js';
import { type ConversationMessage } from '../ledger/message.js';

/** The size of the first page, and of the largest one. */
const PAGE = 100;
const MAX_PAGE = 1000;

/**
 * Reads the messages of a log between two positions, page by page from the newest to the oldest; each page is in order.
 * Each page is twice as long as the previous one, up to 1,000 messages.
 * @param range.before default: all current messages
 * @param range.after default 0: up to the first message
 */
export async function* readBackwards(
  log: Pick<ConversationLog, 'window' | 'page'>,
  sessionId: string,
  { before, after: begin = 0 }: { readonly before?: number; readonly after?: number } = {},
): AsyncGenerator<readonly ConversationMessage[], void> {
  let end = before ?? (await lastPosition(log, sessionId)) + 1;
  for (let size = PAGE; end > begin + 1; size = Math.min(2 * size, MAX_PAGE)) {
    const after = Math.max(begin, end - 1 - size);
    yield await log.page(sessionId, { after, limit: end - 1 - after });
    end = after + 1;
  }
}

async function lastPosition(log: Pick<ConversationLog, 'window'>, sessionId: string): Promise<number> {
  return (await log.window(sessionId, 1)).at(-1)?.position ?? 0;
}
