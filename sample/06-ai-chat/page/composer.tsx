import { convertFileListToFileUIParts, type FileUIPart } from 'ai';
import { type FormEvent, type KeyboardEvent, useRef, useState } from 'react';

/** The limit for all attachments of a message. Base64 adds a third. */
const MAX_BYTES = 4 * 1024 * 1024;

interface Props {
  readonly isBusy: boolean;
  /** The text for what the user must do first. Default: nothing. */
  readonly blockedBy: string | undefined;
  readonly onSend: (message: { text: string; files: FileUIPart[] }) => void;
  readonly onStop: () => Promise<void>;
}

export function Composer({ isBusy, blockedBy, onSend, onStop }: Props) {
  const [text, setText] = useState('');
  const [files, setFiles] = useState<FileUIPart[]>([]);
  const [problem, setProblem] = useState('');
  const input = useRef<HTMLTextAreaElement>(null);

  function send(event: FormEvent): void {
    event.preventDefault();
    if (isBusy || blockedBy !== undefined || (text.trim() === '' && files.length === 0)) return;
    onSend({ text: text.trim(), files });
    setText('');
    setFiles([]);
  }

  function stop(): void {
    onStop().catch(() => setProblem('The answer could not be stopped. Try again.'));
    input.current?.focus();
  }

  async function attach(chosen: FileList | null): Promise<void> {
    const isTooLarge = [...(chosen ?? [])].reduce((sum, { size }) => sum + size, 0) > MAX_BYTES;
    setProblem(isTooLarge ? 'The files are too large. At most 4 MB can be attached.' : '');
    setFiles(isTooLarge ? [] : await convertFileListToFileUIParts(chosen ?? undefined));
  }

  function sendOnEnter(event: KeyboardEvent<HTMLTextAreaElement>): void {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    event.currentTarget.form?.requestSubmit();
  }

  return (
    <form className="composer" onSubmit={send}>
      {files.length > 0 && (
        <ul aria-label="Attachments">
          {files.map(({ filename }, index) => (
            <li key={index}>
              {filename}
              <button
                type="button"
                className="quiet"
                aria-label={`Remove ${filename}`}
                onClick={() => setFiles(files.toSpliced(index, 1))}
              >
                ×
              </button>
            </li>
          ))}
        </ul>
      )}
      {problem !== '' && <p role="alert">{problem}</p>}
      <label className="attach">
        Attach
        <input type="file" multiple className="unseen" onChange={({ target }) => void attach(target.files)} />
      </label>
      <textarea
        ref={input}
        aria-label="Message"
        rows={1}
        value={text}
        placeholder={blockedBy ?? 'Write a message'}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={sendOnEnter}
        autoFocus
      />
      {isBusy ? (
        <button key="stop" type="button" className="stop" onClick={stop}>
          Stop
        </button>
      ) : (
        <button key="send" type="submit" className="primary" disabled={blockedBy !== undefined}>
          Send
        </button>
      )}
    </form>
  );
}
