import { type Chat } from '@ai-sdk/react';
import { DefaultChatTransport, type UIMessageChunk } from 'ai';
import { type ChatEntry, type ChatMessage, textOf } from './server';

/** A message that the server has not accepted yet. `messageId` is set if it replaces an earlier message. */
type UnsentMessage = ChatMessage & { readonly messageId?: string };

const KEY = 'unsent';
const RESUME_LIMIT_MS = 2000;
const NEVER = new Promise<never>(() => undefined);

/** A request that resumes an answer, until the server has responded. */
interface Resuming {
  readonly response: Promise<unknown>;
  readonly abort: () => void;
  /** True if a message was sent before the response. */
  isOvertaken: boolean;
}

/** The unsent message of each chat. They survive a reload of the page. */
const unsent = new Map(JSON.parse(sessionStorage.getItem(KEY) ?? '[]') as [string, UnsentMessage][]);

/** Keeps the message of the user until the server has accepted it. */
export class OutboxTransport extends DefaultChatTransport<ChatMessage> {
  private resuming?: Resuming;

  override async sendMessages(
    options: Parameters<DefaultChatTransport<ChatMessage>['sendMessages']>[0],
  ): Promise<ReadableStream<UIMessageChunk>> {
    const { chatId, messages, trigger, messageId } = options;
    const last = messages.at(-1);
    const isMessage = trigger === 'submit-message' && last?.role === 'user';
    if (isMessage) {
      unsent.set(chatId, { ...last, messageId });
      store();
    }
    await this.endResuming();
    if (!isMessage) return super.sendMessages(options);
    const answer = await super.sendMessages(options);
    return answer.pipeThrough(
      new TransformStream<UIMessageChunk, UIMessageChunk>({
        transform(chunk, controller) {
          // During an outage of the store, the response begins before the server has accepted the message.
          forgetUnsent(chatId);
          controller.enqueue(chunk);
        },
      }),
    );
  }

  override reconnectToStream(
    options: Parameters<DefaultChatTransport<ChatMessage>['reconnectToStream']>[0],
  ): Promise<ReadableStream<UIMessageChunk> | null> {
    const abort = new AbortController();
    const abortSignal = options.abortSignal ? AbortSignal.any([options.abortSignal, abort.signal]) : abort.signal;
    const stream = super.reconnectToStream({ ...options, abortSignal });
    const response = stream.catch(() => undefined);
    const resuming: Resuming = { response, abort: () => abort.abort(), isOvertaken: false };
    this.resuming = resuming;
    const end = (): void => {
      if (this.resuming === resuming) this.resuming = undefined;
    };
    // If it resolved without a stream, or was rejected, the chat would forget that the new message waits for its answer, or has failed.
    return stream.finally(end).then(
      (found) => (found === null && resuming.isOvertaken ? NEVER : found),
      (error: unknown) => (resuming.isOvertaken ? NEVER : Promise.reject(error as Error)),
    );
  }

  /** Ends a request to resume. It could find the answer to the new message, and two streams would write that answer at the same time. */
  private async endResuming(): Promise<void> {
    const { resuming } = this;
    if (!resuming) return;
    resuming.isOvertaken = true;
    await Promise.race([resuming.response, new Promise((resolve) => setTimeout(resolve, RESUME_LIMIT_MS))]);
    if (this.resuming === resuming) resuming.abort();
    await resuming.response;
  }
}

export function unsentOf(chatId: string): ChatMessage | undefined {
  return unsent.get(chatId);
}

/** Sends the unsent message of a chat again. If the server has received it before, it does not answer it twice. */
export async function sendAgain(chat: Chat<ChatMessage>): Promise<void> {
  const message = unsent.get(chat.id);
  if (!message) return;
  const at = chat.messages.findIndex(({ id }) => id === message.id);
  const earlier = at === -1 ? chat.messages : chat.messages.slice(0, at);
  // `sendMessage` adds a new message, but replaces an edited one in its place.
  chat.messages = message.messageId === undefined ? earlier : [...earlier, message];
  await chat.sendMessage(message);
}

export function forgetUnsent(chatId: string): void {
  if (unsent.delete(chatId)) store();
}

/** Returns the chats with an unsent message, as entries of the list: the server may not know them. */
export function unsentChats(): ChatEntry[] {
  return [...unsent].map(([id, message]) => ({
    id,
    metadata: { title: `${textOf(message).slice(0, 60) || 'Attachment'} (not sent)` },
  }));
}

function store(): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify([...unsent]));
  } catch {
    // Large attachments do not fit. Their message is kept until the page is closed.
  }
}
