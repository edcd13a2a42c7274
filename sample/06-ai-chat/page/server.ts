import { type UIMessage } from 'ai';

/** The routes of the chat controller that `useChat` does not use. */
const API = '/api/chat';

/** A message. The assistant marks an answer that a crash has interrupted. */
export type ChatMessage = UIMessage<{ continued?: boolean }>;

/** A chat of the list. The assistant sets the title. */
export interface ChatEntry {
  readonly id: string;
  readonly metadata: { readonly title?: string };
}

/** A page of messages. `before` gives the page of earlier messages. */
export interface MessagePage {
  readonly messages: ChatMessage[];
  readonly before?: string;
}

/** A number of pages of the user's chats, the latest first. */
export interface ChatList {
  readonly chats: readonly ChatEntry[];
  /** True if earlier chats follow. */
  readonly hasMore: boolean;
}

export async function listChats(pages: number): Promise<ChatList> {
  const chats: ChatEntry[] = [];
  let query = '';
  for (let page = 0; page < pages; page++) {
    const list = (await request(API + query)) as { chats: ChatEntry[]; nextCursor?: string };
    chats.push(...list.chats);
    if (list.nextCursor === undefined) return { chats, hasMore: false };
    query = `?cursor=${encodeURIComponent(list.nextCursor)}`;
  }
  return { chats, hasMore: true };
}

/** Returns the latest messages, or those before others; no messages for an unknown chat. */
export async function loadMessages(id: string, before?: string): Promise<MessagePage> {
  const query = before === undefined ? '' : `?before=${encodeURIComponent(before)}`;
  return (await request(`${pathOf(id)}/messages${query}`)) as MessagePage;
}

/**
 * Stops an answer and keeps its beginning.
 * @param messageId the answer, or the message to which it has not begun. Without it, the server could stop the next
 * answer, if this one has just ended
 */
export async function stopAnswer(id: string, messageId: string | undefined): Promise<void> {
  await request(`${pathOf(id)}/stop`, 'POST', { messageId });
}

export async function deleteChat(id: string): Promise<void> {
  await request(pathOf(id), 'DELETE');
}

/** Returns what the user may read of an error. The server sends its errors as JSON. */
export function describeError(error: Error): string {
  // `fetch` throws a TypeError if it gets no response.
  if (error instanceof TypeError) return 'The server does not answer.';
  try {
    const { message } = JSON.parse(error.message) as { message: string };
    return message;
  } catch {
    return error.message;
  }
}

export function textOf({ parts }: ChatMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join(' ');
}

async function request(path: string, method = 'GET', json?: object): Promise<unknown> {
  const sent = json && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(json) };
  const response = await fetch(path, { method, ...sent });
  const body = await response.text();
  if (!response.ok) throw new Error(body);
  return body === '' ? undefined : JSON.parse(body);
}

function pathOf(id: string): string {
  return `${API}/${encodeURIComponent(id)}`;
}
