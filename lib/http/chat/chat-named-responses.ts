import { type Principal } from '../../transport/principal.js';
import { type ChatRange } from './chat-stream.js';

/** The maximum number of chats whose responses are remembered. */
const MAX_CHATS = 10_000;

/** The part of a turn's answer that a response contains. */
export type NamedResponse = Pick<ChatRange, 'turnId' | 'segment'>;

/**
 * Remembers the responses that clients continue by the id of their chat instead of the response's name (AIS-33).
 * `WorkflowChatTransport` does so in a page that was opened during an answer: it sends the id of the chat and the number of
 * chunks that it has. If the turn has ended meanwhile and the next one has begun, the chunks of the new answer must not
 * follow those of the old one.
 *
 * A response is remembered after its end, because the server does not notice whether the client received the end.
 * `ClientChats.continued` ignores responses whose turns ended too long ago for a client to reconnect. A process that does
 * not know the response, such as this one after a restart, continues an answer only if it was the only one in that time.
 */
export class ChatNamedResponses {
  /** By user and chat, the latest last. Two are enough to know that a client may continue either of them. */
  private readonly responses = new Map<string, readonly NamedResponse[]>();

  add(principal: Principal, chatId: string, { turnId, segment }: NamedResponse): void {
    const key = keyOf(principal, chatId);
    const response = { turnId, segment };
    const others = (this.responses.get(key) ?? []).filter((other) => !isSame(other, response));
    this.responses.delete(key);
    this.responses.set(key, [...others.slice(-1), response]);
    if (this.responses.size <= MAX_CHATS) return;
    const [oldest] = this.responses.keys();
    this.responses.delete(oldest);
  }

  /** Returns the responses that a client may continue. */
  of(principal: Principal, chatId: string): readonly NamedResponse[] {
    return this.responses.get(keyOf(principal, chatId)) ?? [];
  }
}

function isSame(one: NamedResponse, other: NamedResponse): boolean {
  return one.turnId === other.turnId && one.segment === other.segment;
}

function keyOf({ workspaceId, userId }: Principal, chatId: string): string {
  return JSON.stringify([workspaceId, userId, chatId]);
}
