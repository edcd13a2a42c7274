import { checkInput } from '../common/check-input.js';
import { assertId, mintId } from '../common/ids.js';
import { isFields } from '../common/json.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { toMessageDrafts } from '../conversation/message-draft.js';
import { type ConversationMessage, type MessageDraft } from '../ledger/message.js';
import { MessageQuery, MessageWindow } from './state.inputs.js';

const PAGE = 100;

/**
 * Provides the message log of a session (STA-03). Turns write to it automatically, in the commit that settles them. An
 * unknown session has an empty log; reading writes nothing.
 */
export class ConversationState {
  /** @param clearSession clears the log and its summaries in one commit */
  constructor(
    private readonly log: ConversationLog,
    private readonly clearSession: (sessionId: string) => Promise<boolean>,
  ) {}

  /**
   * Appends messages in order, outside of turns, for imports. A repeated call appends them again.
   * @throws InvalidInputError with the invalid message; StateSerializationError; SessionNotFoundError;
   * SessionStateError if the session has expired
   */
  async append(sessionId: string, messages: readonly MessageDraft[]): Promise<ConversationMessage[]> {
    assertId(sessionId, 'sessionId');
    const drafts = toMessageDrafts(messages, 'messages');
    if (drafts.length === 0) return [];
    return this.log.append(
      sessionId,
      drafts.map((draft) => ({ ...draft, id: draft.id ?? mintId() })),
    );
  }

  /** Returns a range of the log in order, or its end: the stored messages without summaries. */
  async list(sessionId: string, query: MessageQuery | MessageWindow = {}): Promise<ConversationMessage[]> {
    assertId(sessionId, 'sessionId');
    if (isFields(query) && 'window' in query)
      return this.log.window(sessionId, checkInput(MessageWindow, query, 'query').window);
    const { after = 0, limit = PAGE } = checkInput(MessageQuery, query, 'query');
    return this.log.page(sessionId, { after, limit });
  }

  /** Clears the log immediately, like a reset of the module. @returns whether there was a message */
  async clear(sessionId: string): Promise<boolean> {
    assertId(sessionId, 'sessionId');
    return this.clearSession(sessionId);
  }

  /** Iterates over all messages in order, page by page. */
  export(sessionId: string): AsyncIterable<ConversationMessage> {
    assertId(sessionId, 'sessionId');
    return this.exported(sessionId);
  }

  private async *exported(sessionId: string): AsyncGenerator<ConversationMessage, void> {
    for (let after = 0; ;) {
      const page = await this.log.page(sessionId, { after, limit: PAGE });
      yield* page;
      if (page.length < PAGE) return;
      after = page[page.length - 1].position;
    }
  }
}
