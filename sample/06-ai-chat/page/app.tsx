import { generateId } from 'ai';
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';
import { ChatList } from './chat-list';
import { Conversation } from './conversation';
import { unsentChats } from './outbox';
import { Problem } from './problem';
import { type ChatList as List, listChats, loadMessages, type MessagePage } from './server';

export function App() {
  const id = useSyncExternalStore(onHashChange, chatId);
  const [{ chats, hasMore }, setList] = useState<List>({ chats: [], hasMore: false });
  const [pages, setPages] = useState(1);
  // The list is not essential: errors leave it unchanged.
  const refresh = useCallback(() => void listChats(pages).then(setList, () => undefined), [pages]);
  useEffect(refresh, [refresh]);
  return (
    <>
      <ChatList
        chats={[...unsentChats().filter((unsent) => !chats.some((chat) => chat.id === unsent.id)), ...chats]}
        current={id}
        onMore={hasMore ? () => setPages(pages + 1) : undefined}
        onNew={openNewChat}
        onDeleted={refresh}
      />
      <StoredConversation key={id} id={id} onChange={refresh} />
    </>
  );
}

/** Loads the messages of a chat, then shows them. */
function StoredConversation({ id, onChange }: { id: string; onChange: () => void }) {
  const [page, setPage] = useState<MessagePage>();
  const [error, setError] = useState<Error>();
  const load = useCallback(() => {
    setError(undefined);
    loadMessages(id).then(setPage, setError);
  }, [id]);
  useEffect(load, [load]);
  if (page) return <Conversation id={id} page={page} onChange={onChange} />;
  return <main>{error ? <Problem error={error} onRetry={load} /> : <p role="status">Loading…</p>}</main>;
}

/** The address names the chat. A new chat gets its id here. */
function chatId(): string {
  if (location.hash.length < 2) history.replaceState(null, '', `#${generateId()}`);
  return decodeURIComponent(location.hash.slice(1));
}

/** Shows a new chat at once. The browser's own event comes later: a message that is sent before it would go to the open chat. */
function openNewChat(): void {
  history.pushState(null, '', `#${generateId()}`);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

function onHashChange(listener: () => void): () => void {
  addEventListener('hashchange', listener);
  return () => removeEventListener('hashchange', listener);
}
