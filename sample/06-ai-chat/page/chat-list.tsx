import { type ChatEntry, deleteChat } from './server';

interface Props {
  readonly chats: readonly ChatEntry[];
  readonly current: string;
  readonly onNew: () => void;
  readonly onDeleted: () => void;
}

export function ChatList({ chats, current, onNew, onDeleted }: Props) {
  async function remove(id: string): Promise<void> {
    await deleteChat(id).catch(() => undefined);
    if (id === current) onNew();
    onDeleted();
  }
  return (
    <nav aria-label="Chats">
      <h1>AI chat</h1>
      <button type="button" onClick={onNew}>
        New chat
      </button>
      <ul>
        {chats.map(({ id, metadata: { title = 'Chat' } }) => (
          <li key={id}>
            <a href={`#${encodeURIComponent(id)}`} aria-current={id === current ? 'page' : undefined}>
              <span>{title}</span>
            </a>
            <button type="button" className="quiet" aria-label={`Delete: ${title}`} onClick={() => void remove(id)}>
              ×
            </button>
          </li>
        ))}
      </ul>
    </nav>
  );
}
