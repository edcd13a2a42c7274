import { type FileUIPart, isToolUIPart } from 'ai';
import { useState } from 'react';
import { type ChatMessage, textOf } from './server';
import { type Approval, ToolView } from './tool-view';

interface Props {
  readonly message: ChatMessage;
  readonly isBusy: boolean;
  /** True if the message could not be sent. */
  readonly isUnsent: boolean;
  readonly onApproval: (approval: Approval) => void;
  readonly onEdit: (edited: { messageId: string; text: string; files: FileUIPart[] }) => void;
}

export function MessageView({ message, isBusy, isUnsent, onApproval, onEdit }: Props) {
  const [isEditing, setEditing] = useState(false);
  const { id, role, parts, metadata } = message;
  if (isEditing) {
    const files = parts.filter((part) => part.type === 'file');
    const save = (text: string): void => onEdit({ messageId: id, text, files });
    return <Editor text={textOf(message)} onSave={save} onClose={() => setEditing(false)} />;
  }
  return (
    <article className="message" data-role={role} aria-label={role === 'user' ? 'You' : 'Assistant'}>
      {parts.map((part, index) => (
        <PartView key={index} part={part} onApproval={onApproval} />
      ))}
      {metadata?.continued && <p className="note">Continued after an interruption.</p>}
      {isUnsent && <p className="note unsent">Not sent yet.</p>}
      {role === 'user' && !isBusy && (
        <button type="button" className="quiet" onClick={() => setEditing(true)}>
          Edit
        </button>
      )}
    </article>
  );
}

type Part = ChatMessage['parts'][number];

function PartView({ part, onApproval }: { part: Part } & Pick<Props, 'onApproval'>) {
  if (isToolUIPart(part)) return <ToolView part={part} onApproval={onApproval} />;
  switch (part.type) {
    case 'text':
      return <p className="text">{part.text}</p>;
    case 'reasoning':
      return (
        <details className="reasoning">
          <summary>Reasoning</summary>
          <p>{part.text}</p>
        </details>
      );
    case 'file':
      return <FileView file={part} />;
    default:
      return null;
  }
}

function FileView({ file: { url, mediaType, filename = 'file' } }: { file: FileUIPart }) {
  if (mediaType.startsWith('image/')) return <img className="file" src={url} alt={filename} />;
  return (
    <a className="file" href={url} download={filename}>
      {filename}
    </a>
  );
}

interface EditorProps {
  readonly text: string;
  readonly onSave: (text: string) => void;
  readonly onClose: () => void;
}

function Editor({ text: initial, onSave, onClose }: EditorProps) {
  const [text, setText] = useState(initial);
  return (
    <form
      className="editor"
      onSubmit={(event) => {
        event.preventDefault();
        onSave(text);
        onClose();
      }}
    >
      <textarea
        aria-label="Edit your message"
        value={text}
        onChange={({ target }) => setText(target.value)}
        autoFocus
      />
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <button type="submit" className="primary" disabled={text.trim() === ''}>
        Save and send
      </button>
    </form>
  );
}

/** Returns whether a tool of the message needs the user's approval. */
export function isAwaitingApproval({ parts }: ChatMessage): boolean {
  return parts.some((part) => isToolUIPart(part) && part.state === 'approval-requested');
}
