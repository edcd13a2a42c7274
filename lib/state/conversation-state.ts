import { checkInput } from '../common/check-input.js';
import { assertId, mintId } from '../common/ids.js';
import { isPlainObject } from '../common/json.js';
import { type ConversationLog } from '../ledger/conversation.store.js';
import { toMessageDrafts } from '../conversation/message-draft.js';
import { type Message, type MessageDraft } from '../ledger/message.js';
import { MessageQuery, MessageWindow } from './state.inputs.js';

const PAGE = 100;

/**
 * The message log of a session (STA-03). Turns write to it by themselves, in the commit that settles them. An unknown session has an empty
 * log; reading writes nothing.
 */
export class ConversationState {
  /** @param clearSession clears the log, and what stands for it, in one commit */
  constructor(
    private readonly log: ConversationLog,
    private readonly clearSession: (sessionId: string) => Promise<boolean>,
  ) {}

  /**
   * Adds messages at the end, in order, for imports: outside of turns. Called again, it adds them again.
   * @throws InvalidInputError naming the message that is wrong; StateSerializationError; SessionNotFoundError; SessionStateError
   * when the session has expired
   */
  async append(sessionId: string, messages: readonly MessageDraft[]): Promise<Message[]> {
    assertId(sessionId, 'sessionId');
    const drafts = toMessageDrafts(messages, 'messages');
    if (drafts.length === 0) return [];
    return this.log.append(
      sessionId,
      drafts.map((draft) => ({ ...draft, id: draft.id ?? mintId() })),
    );
  }

  /** A stretch of the log in order, or its end; as it was written, summaries aside. */
  async list(sessionId: string, query: MessageQuery | MessageWindow = {}): Promise<Message[]> {
    assertId(sessionId, 'sessionId');
    if (isPlainObject(query) && 'window' in query)
      return this.log.window(sessionId, checkInput(MessageWindow, query, 'query').window);
    const { after = 0, limit = PAGE } = checkInput(MessageQuery, query, 'query');
    return this.log.page(sessionId, { after, limit });
  }

  /** Takes effect at once, as a reset of the module does. @returns whether there was a message */
  async clear(sessionId: string): Promise<boolean> {
    assertId(sessionId, 'sessionId');
    return this.clearSession(sessionId);
  }

  /** All messages in order, read page by page. */
  export(sessionId: string): AsyncIterable<Message> {
    assertId(sessionId, 'sessionId');
    return this.exported(sessionId);
  }

  private async *exported(sessionId: string): AsyncGenerator<Message, void> {
    for (let after = 0; ;) {
      const page = await this.log.page(sessionId, { after, limit: PAGE });
      yield* page;
      if (page.length < PAGE) return;
      after = page[page.length - 1].position;
    }
  }
}
