import { type JsonObject, type JsonValue, toJsonObject } from '../common/json.js';
import { type ConversationCompaction } from '../conversation/conversation-compaction.service.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { type ConversationMessage } from '../ledger/message.js';
import { type ConversationState } from './conversation-state.js';
import { firstOf, InvalidCursorError } from './state-data.js';
import {
  type StateCompaction,
  type StateCompactionOptions,
  type StateDataPage,
  type StateDescription,
  type StateInspection,
} from './state-module.js';

/** The message log as a module of the control plane. Its items are the messages, which remain after a compaction. */
export class ConversationModule implements StateInspection {
  constructor(
    private readonly log: ConversationLog,
    private readonly conversation: ConversationState,
    private readonly compaction: ConversationCompaction,
  ) {}

  async describe(sessionId: string, page?: StateDataPage): Promise<StateDescription> {
    const after = page?.after === undefined ? 0 : positionIn(page.after);
    const { messageCount, windowCount, through } = await this.compaction.counts(sessionId);
    const metadata: JsonObject = through > 0 ? { through } : {};
    const found = { exists: messageCount > 0, itemCount: messageCount, messageCount, windowCount, metadata };
    if (!page) return found;
    const items = firstOf(await this.log.page(sessionId, { after, limit: page.limit }), (message) => message);
    const end = items.at(-1)?.position ?? messageCount;
    const next = end < messageCount ? { next: String(end) } : {};
    return { ...found, data: { items: items.map(asJson), ...next } };
  }

  async compact(sessionId: string, options: StateCompactionOptions): Promise<StateCompaction> {
    // Omit the text of the summary: it would bypass redaction, and survive a reset in stored reports.
    const { compacted, summary: _, ...outcome } = await this.compaction.compactBy(sessionId, options);
    const { messageCount, windowCount } = await this.compaction.counts(sessionId);
    const metadata = toJsonObject(outcome, 'metadata');
    return { exists: messageCount > 0, compacted, messageCount, windowCount, metadata };
  }

  async *export(sessionId: string): AsyncGenerator<JsonValue, void> {
    for await (const message of this.conversation.export(sessionId)) yield asJson(message);
  }
}

function asJson(message: ConversationMessage): JsonValue {
  return message as unknown as JsonValue;
}

function positionIn(after: string): number {
  if (/^[1-9]\d{0,14}$/.test(after)) return Number(after);
  throw new InvalidCursorError();
}
