import { type Principal } from '../../transport/principal.js';
import { type ChatRange } from './chat-stream.js';

/** The maximum number of chats whose responses are remembered. */
const MAX_CHATS = 10_000;

/** The part of a turn's answer that a response contains. */
export type NamedResponse = Pick<ChatRange, 'turnId' | 'segment'>;

/**
 * The responses that clients name by their chat. `WorkflowChatTransport` does so in a page that was opened during an
 * answer. It continues a broken response with the number of chunks that it has. Meanwhile the turn may have ended and
 * the next one begun, whose chunks must not follow those of the old answer (AIS-33).
 *
 * A response is remembered after its end: the server does not notice that a client has not received the end. Another
 * process, or the same one after a restart, does not know the response. It continues the answer only if no other one was
 * open within the time in which clients reconnect. `ClientChats.continued` ignores responses whose turns ended before.
 */
export class ChatNamedResponses {
  /** By user and chat, the latest last. Two are enough to know that a client may have had either. */
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
