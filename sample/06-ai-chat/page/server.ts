import { type UIMessage } from 'ai';

/** The routes of the chat controller that `useChat` does not use. */
const API = '/api/chat';

/** A chat of the list. The assistant sets the title. */
export interface ChatEntry {
  readonly id: string;
  readonly metadata: { readonly title?: string };
}

/** A page of messages. `before` gives the page of earlier messages. */
export interface MessagePage {
  readonly messages: UIMessage[];
  readonly before?: string;
}

export async function listChats(): Promise<ChatEntry[]> {
  const { chats } = (await request(API)) as { chats: ChatEntry[] };
  return chats;
}

/** Returns the latest messages, or those before others; no messages for an unknown chat. */
export async function loadMessages(id: string, before?: string): Promise<MessagePage> {
  const query = before === undefined ? '' : `?before=${encodeURIComponent(before)}`;
  return (await request(`${pathOf(id)}/messages${query}`)) as MessagePage;
}

/** Stops the current answer and keeps its beginning. */
export async function stopAnswer(id: string): Promise<void> {
  await request(`${pathOf(id)}/stop`, 'POST');
}

export async function deleteChat(id: string): Promise<void> {
  await request(pathOf(id), 'DELETE');
}

/** Returns what the user may read of an error. The server sends its errors as JSON. */
export function describeError(error: Error): string {
  try {
    const { message } = JSON.parse(error.message) as { message: string };
    return message;
  } catch {
    return error.message;
  }
}

async function request(path: string, method = 'GET'): Promise<unknown> {
  const response = await fetch(path, { method });
  const body = await response.text();
  if (!response.ok) throw new Error(body);
  return body === '' ? undefined : JSON.parse(body);
}

function pathOf(id: string): string {
  return `${API}/${encodeURIComponent(id)}`;
}
