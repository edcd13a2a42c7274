import { forgetUnsent } from './outbox';
import { type ChatEntry, deleteChat } from './server';

interface Props {
  readonly chats: readonly ChatEntry[];
  readonly current: string;
  /** Shows earlier chats. Absent if all are shown. */
  readonly onMore?: () => void;
  readonly onNew: () => void;
  readonly onDeleted: () => void;
}

export function ChatList({ chats, current, onMore, onNew, onDeleted }: Props) {
  async function remove(id: string): Promise<void> {
    await deleteChat(id).then(
      () => forgetUnsent(id),
      () => undefined,
    );
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
      {onMore && (
        <button type="button" className="quiet" onClick={onMore}>
          Earlier chats
        </button>
      )}
    </nav>
  );
}
