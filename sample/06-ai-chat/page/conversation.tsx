import { Chat, useChat } from '@ai-sdk/react';
import { lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { useEffect, useState } from 'react';
import { Composer } from './composer';
import { isAwaitingApproval, MessageView } from './message-view';
import { OutboxTransport, sendAgain, unsentOf } from './outbox';
import { Problem } from './problem';
import { type ChatMessage, loadMessages, type MessagePage, stopAnswer, textOf } from './server';
import { useReconnect } from './use-reconnect';

interface Props {
  readonly id: string;
  readonly page: MessagePage;
  /** Called after an answer. */
  readonly onChange: () => void;
}

export function Conversation({ id, page, onChange }: Props) {
  // `useChat({ transport })` of version 3 drops `resumeStreamIsReplay` of the transport: after a lost connection, it
  // would show the resumed answer twice. A Chat keeps it.
  const [chat] = useState(
    () =>
      new Chat<ChatMessage>({
        id,
        messages: page.messages,
        transport: new OutboxTransport({ api: '/api/chat' }),
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      }),
  );
  // A message that was not sent before a reload is sent now.
  const [hasUnsent] = useState(() => unsentOf(id) !== undefined);
  useEffect(() => {
    if (hasUnsent) void sendAgain(chat);
  }, [chat, hasUnsent]);
  // Not `resume: true`: it shows nothing if the answer ends before it is resumed. `useReconnect` loads the messages then.
  const { messages, status, error, sendMessage, regenerate, addToolApprovalResponse } = useChat({ chat });
  const isReconnecting = useReconnect(chat, error, !hasUnsent);
  const [before, setBefore] = useState(page.before);
  const isBusy = status === 'submitted' || status === 'streaming';
  const last = messages.at(-1);
  const isWaiting = last !== undefined && isAwaitingApproval(last);
  const unsent = status === 'error' ? unsentOf(id) : undefined;

  useEffect(() => {
    if (!isBusy) onChange();
  }, [isBusy, onChange]);

  async function showEarlier(): Promise<void> {
    const earlier = await loadMessages(id, before);
    chat.messages = [...earlier.messages, ...chat.messages];
    setBefore(earlier.before);
  }

  return (
    <main>
      <div className="scroll" role="region" aria-label="Conversation" tabIndex={0}>
        <div className="messages">
          {before !== undefined && (
            <button type="button" className="quiet" onClick={() => void showEarlier().catch(() => undefined)}>
              Earlier messages
            </button>
          )}
          {messages.length === 0 && <Welcome />}
          {messages.map((message) => (
            <MessageView
              key={message.id}
              message={message}
              isBusy={isBusy}
              isUnsent={message.id === unsent?.id}
              onApproval={(approval) => void addToolApprovalResponse(approval)}
              onEdit={(edited) => void sendMessage(edited)}
            />
          ))}
          {status === 'submitted' && <p className="thinking">Thinking</p>}
          {status === 'ready' && last?.role === 'assistant' && !isWaiting && (
            <button type="button" className="quiet" onClick={() => void regenerate()}>
              Regenerate
            </button>
          )}
        </div>
      </div>
      {isReconnecting && <p className="problem">Connection lost. Reconnecting…</p>}
      {error && !isReconnecting && (
        <Problem error={error} onRetry={() => void (unsent ? sendAgain(chat) : regenerate())} />
      )}
      {/* A screen reader announces an answer when it is complete. */}
      <p className="unseen" role="status">
        {isBusy ? 'The assistant is answering.' : last?.role === 'assistant' && textOf(last)}
      </p>
      <Composer
        isBusy={isBusy}
        blockedBy={isWaiting ? 'Approve or deny first' : unsent && 'Your last message is not sent yet'}
        onSend={(message) => void sendMessage(message)}
        onStop={() => stopAnswer(id, last?.id)}
      />
    </main>
  );
}

function Welcome() {
  return (
    <p className="welcome">
      Ask where order 7 is, how to send something back, or for a refund. You may reload this page or kill the server:
      the answer continues.
    </p>
  );
}
