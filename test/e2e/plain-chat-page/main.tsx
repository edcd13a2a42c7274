import { Chat, useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { useState } from 'react';
import { createRoot } from 'react-dom/client';

// Like the page that docs/ai-sdk.md shows, with nothing but `useChat`. The address names the chat.
const id = location.hash.slice(1);
const { messages: stored } = (await (await fetch(`/chat/${id}/messages`)).json()) as { messages: UIMessage[] };
const chat = new Chat<UIMessage>({
  id,
  messages: stored,
  transport: new DefaultChatTransport({ api: '/chat' }),
  sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
});

function Conversation() {
  const { messages, status, sendMessage, regenerate, stop, addToolApprovalResponse } = useChat({ chat, resume: true });
  const [text, setText] = useState('');

  async function stopAnswer(): Promise<void> {
    await stop();
    await fetch(`/chat/${id}/stop`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ messageId: chat.lastMessage?.id }),
    });
  }

  function decide(approvalId: string, approved: boolean): void {
    void addToolApprovalResponse({ id: approvalId, approved });
  }

  function showPart(part: UIMessage['parts'][number], index: number) {
    if (part.type === 'text') return <p key={index}>{part.text}</p>;
    if (!isToolUIPart(part)) return null;
    return (
      <div key={index}>
        <p>{`${part.type}: ${part.state}`}</p>
        {part.state === 'approval-requested' && (
          <>
            <button onClick={() => decide(part.approval.id, true)}>Approve</button>
            <button onClick={() => decide(part.approval.id, false)}>Deny</button>
          </>
        )}
      </div>
    );
  }

  return (
    <>
      {messages.map((message) => (
        <article key={message.id}>
          {message.parts.map(showPart)}
          {message.role === 'user' && (
            <button onClick={() => void sendMessage({ text, messageId: message.id })}>Edit</button>
          )}
        </article>
      ))}
      <input value={text} onChange={({ target }) => setText(target.value)} />
      <button onClick={() => void sendMessage({ text })}>Send</button>
      <button onClick={() => void regenerate()}>Regenerate</button>
      <button onClick={() => void stopAnswer()}>Stop</button>
      <output>{status}</output>
    </>
  );
}

createRoot(document.getElementById('root')!).render(<Conversation />);
