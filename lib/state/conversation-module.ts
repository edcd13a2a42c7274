import { type JsonObject, type JsonValue, toJsonObject } from '../common/json.js';
import { HEAD, readHead } from '../conversation/conversation-head.js';
import { type ConversationCompaction } from '../conversation/conversation-compaction.service.js';
import { type Message } from '../conversation/message.js';
import { type SessionsAdapter } from '../sessions.adapter.js';
import { type ConversationState } from './conversation-state.js';
import { firstOf, InvalidCursorError } from './state-data.js';
import {
  type StateCompaction,
  type StateCompactionOptions,
  type StateDataPage,
  type StateDescription,
  type StateInspection,
} from './state-module.js';

/** The message log as the control plane sees it. Its items are the messages, which stay where they are when it is compacted. */
export class ConversationModule implements StateInspection {
  constructor(
    private readonly stores: Pick<SessionsAdapter, 'state' | 'conversations'>,
    private readonly conversation: ConversationState,
    private readonly compaction: ConversationCompaction,
  ) {}

  async describe(sessionId: string, page?: StateDataPage): Promise<StateDescription> {
    const { state, conversations } = this.stores;
    const after = page?.after === undefined ? 0 : positionIn(page.after);
    const [messageCount, head] = await Promise.all([this.count(sessionId), state.get({ ...HEAD, sessionId })]);
    const through = head ? readHead(head).hiddenThrough : 0;
    const metadata: JsonObject = through > 0 ? { through } : {};
    const found = { exists: messageCount > 0, itemCount: messageCount, messageCount, metadata };
    if (!page) return found;
    const items = firstOf(await conversations.page(sessionId, { after, limit: page.limit }), (message) => message);
    const end = items.at(-1)?.position ?? messageCount;
    const next = end < messageCount ? { next: String(end) } : {};
    return { ...found, data: { items: items.map(asJson), ...next } };
  }

  async compact(sessionId: string, options: StateCompactionOptions): Promise<StateCompaction> {
    // The text of a summary is no count: it would pass no redactor, and outlive a reset wherever the report is kept.
    const { compacted, summary: _, ...outcome } = await this.compaction.compactBy(sessionId, options);
    const messageCount = await this.count(sessionId);
    return { exists: messageCount > 0, compacted, messageCount, metadata: toJsonObject(outcome, 'metadata') };
  }

  async *export(sessionId: string): AsyncGenerator<JsonValue, void> {
    for await (const message of this.conversation.export(sessionId)) yield asJson(message);
  }

  /** Positions begin at 1, and there are no gaps. */
  private async count(sessionId: string): Promise<number> {
    const window = await this.stores.conversations.window(sessionId, 1);
    return window.at(-1)?.position ?? 0;
  }
}

function asJson(message: Message): JsonValue {
  return message as unknown as JsonValue;
}

function positionIn(after: string): number {
  if (/^[1-9]\d{0,14}$/.test(after)) return Number(after);
  throw new InvalidCursorError();
}
