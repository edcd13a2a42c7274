import { type Chat } from '@ai-sdk/react';
import { useEffect, useState } from 'react';
import { sendAgain, unsentOf } from './outbox';
import { type ChatMessage, loadMessages } from './server';

const RETRY_MS = 1000;

/** Reconnects after a lost connection. Returns whether the connection is lost. */
export function useReconnect(chat: Chat<ChatMessage>, error: Error | undefined): boolean {
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
  const { messages: stored } = await loadMessages(chat.id);
  if (unsentOf(chat.id)) return sendAgain(chat);
  show(chat, stored);
  await chat.resumeStream();
  if (chat.status === 'ready') show(chat, (await loadMessages(chat.id)).messages);
}

/** Replaces the latest messages. The answer of an open turn is not stored yet: it stays. */
function show(chat: Chat<ChatMessage>, stored: ChatMessage[]): void {
  const first = chat.messages.findIndex(({ id }) => id === stored[0]?.id);
  const last = chat.lastMessage;
  const isOpen =
    last?.role === 'assistant' && stored.at(-1)?.role === 'user' && !stored.some(({ id }) => id === last.id);
  chat.messages = [...chat.messages.slice(0, Math.max(first, 0)), ...stored, ...(isOpen ? [last] : [])];
}
