import { type Principal } from '../../transport/principal.js';
import { type ChatRange } from './chat-stream.js';

/** The maximum number of chats that a process remembers. Beyond it, the least recently added chat is forgotten. */
const MAX_CHATS = 10_000;

/** A response: the turn whose answer it contains, and the segment of the answer that it begins with. */
export type NamedResponse = Pick<ChatRange, 'turnId' | 'segment'>;

/**
 * Remembers which responses clients continue by the id of their chat (AIS-33). The usual name is `turnId~segment`, but
 * `WorkflowChatTransport` sends the id of the chat if its page was opened during an answer, or if the response began
 * during an outage. It adds the number of its chunks. Example: a client has 7 chunks of turn 1, and turn 2 begins
 * before it reconnects. It must get the next chunks of turn 1, and none of turn 2.
 *
 * Each process has its own memory. It keeps a response after its end, because the server does not notice whether the
 * client received the end. `ClientChats.continued` ignores turns that ended too long ago for a client to reconnect. If
 * the process remembers none, as after a restart, the client continues only if a single turn ran in that time.
 */
export class ChatNamedResponses {
  /**
   * The latest two responses of each user and chat, the latest last. Two are enough: if a client may continue either of
   * them, it gets `NOTHING_TO_RESUME`, because the server does not know which one the client means.
   */
  private readonly responses = new Map<string, readonly NamedResponse[]>();

  /** Remembers a response that its client will continue by the id of the chat. */
  add(principal: Principal, chatId: string, { turnId, segment }: NamedResponse): void {
    const key = keyOf(principal, chatId);
    const response = { turnId, segment };
    const others = (this.responses.get(key) ?? []).filter((other) => !isSame(other, response));
    // Moves the chat to the end of the map, whose first chat is the next to be forgotten.
    this.responses.delete(key);
    this.responses.set(key, [...others.slice(-1), response]);
    if (this.responses.size <= MAX_CHATS) return;
    const [oldest] = this.responses.keys();
    this.responses.delete(oldest);
  }

  /** Returns the remembered responses of a chat, however old. The caller must check which of them may be continued. */
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
