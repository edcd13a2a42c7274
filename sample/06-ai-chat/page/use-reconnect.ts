import { type Chat } from '@ai-sdk/react';
import { useEffect, useState } from 'react';
import { sendAgain, unsentOf } from './outbox';
import { type ChatMessage, loadMessages } from './server';

const RETRY_MS = 1000;

/**
 * Continues the current answer when the page is opened, and after a lost connection. Returns whether the connection is lost.
 * @param isWanted false if the page sends a message when it is opened
 */
export function useReconnect(chat: Chat<ChatMessage>, error: Error | undefined, isWanted: boolean): boolean {
  useEffect(() => {
    if (isWanted) resume(chat).catch(() => undefined);
  }, [chat, isWanted]);

  // `fetch` throws a TypeError if the server does not answer, or if the connection breaks.
  const isLost = error instanceof TypeError;
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (!isLost) return;
    const timer = setTimeout(() => {
      catchUp(chat).catch(() => setAttempt((count) => count + 1));
    }, RETRY_MS);
    return () => clearTimeout(timer);
  }, [chat, error, isLost, attempt]);

  // Another tab may have continued the conversation.
  useEffect(() => {
    const onVisible = (): void => {
      if (document.visibilityState === 'visible' && chat.status === 'ready') catchUp(chat).catch(() => undefined);
    };
    document.addEventListener('visibilitychange', onVisible);
    return () => document.removeEventListener('visibilitychange', onVisible);
  }, [chat]);
  return isLost;
}

/** Shows what the server has stored, and the current answer. Sends a message that the server has not accepted. */
async function catchUp(chat: Chat<ChatMessage>): Promise<void> {
  const last = chat.lastMessage;
  const { messages: stored } = await loadMessages(chat.id);
  // The user may have sent a message meanwhile.
  if (chat.lastMessage !== last) return;
  if (unsentOf(chat.id)) return sendAgain(chat);
  show(chat, stored);
  await resume(chat);
}

/**
 * Shows the current answer, then the stored messages: if the answer has ended after the messages were loaded, the server has no answer
 * to resume (204).
 */
async function resume(chat: Chat<ChatMessage>): Promise<void> {
  await chat.resumeStream();
  // The user may have sent a message meanwhile.
  if (chat.status !== 'ready' || unsentOf(chat.id)) return;
  const last = chat.lastMessage;
  const { messages: stored } = await loadMessages(chat.id);
  if (chat.lastMessage === last) show(chat, stored);
}

/** Replaces the latest messages. The answer of an open turn is not stored yet: it stays. */
function show(chat: Chat<ChatMessage>, stored: ChatMessage[]): void {
  const first = chat.messages.findIndex(({ id }) => id === stored[0]?.id);
  const last = chat.lastMessage;
  const isOpen =
    last?.role === 'assistant' && stored.at(-1)?.role === 'user' && !stored.some(({ id }) => id === last.id);
  chat.messages = [...chat.messages.slice(0, Math.max(first, 0)), ...stored, ...(isOpen ? [last] : [])];
}
