import { randomUUID } from 'node:crypto';
import { type AnyUIMessage, type UIPart } from '../../chat/ui-message.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';

/** The functions of `ai`, version 6 or 7, that a client needs. */
export interface ChatSdk {
  readonly AbstractChat: new (init: object) => SdkChat;
  readonly DefaultChatTransport: new (options: object) => object;
}

/** The members of `AbstractChat` that a client uses. */
interface SdkChat {
  readonly status: 'submitted' | 'streaming' | 'ready' | 'error';
  readonly error: Error | undefined;
  messages: AnyUIMessage[];
  sendMessage(message?: { readonly text: string }): Promise<void>;
  resumeStream(): Promise<void>;
  addToolApprovalResponse(answer: { readonly id: string; readonly approved: boolean }): PromiseLike<void> | void;
}

/** A tool call that waits for the approval of the user. */
export interface RequestedCall {
  /** The name of the tool. */
  readonly toolName: string;
  /** The input of the call. */
  readonly input: unknown;
}

export interface ChatClientOptions {
  readonly sdk: ChatSdk;
  /** The URL of the chat controller. */
  readonly api: string;
  readonly headers: Record<string, string>;
  /** Decides about a tool call. */
  readonly approve: (call: RequestedCall) => boolean;
  /** Called with each version of an answer that the client shows. It may throw. */
  readonly onShown: (answer: AnyUIMessage) => void;
}

/** Maximum number of resumes of one answer. */
const MAX_RESUMES = 50;

const MAX_MESSAGE = 300;

/** A chat front end as a page has it: the chat and the transport of `ai`. It resumes after its connection breaks. */
export class ChatClient {
  readonly id: string = randomUUID();
  /** How often a connection has broken. */
  breaks = 0;
  private readonly chat: SdkChat;
  private connection = new AbortController();
  private isBroken = false;
  private isOver = false;
  private failure: { readonly error: unknown } | undefined;

  constructor(private readonly options: ChatClientOptions) {
    const { sdk, api, headers, onShown } = options;
    const transport = new sdk.DefaultChatTransport({ api, headers, fetch: this.fetch });
    const shown = (message: AnyUIMessage): void => {
      if (message.role !== 'assistant') return;
      try {
        onShown(message);
      } catch (error) {
        this.failure ??= { error };
      }
    };
    class Chat extends sdk.AbstractChat {}
    this.chat = new Chat({ id: this.id, transport, state: new ChatState(shown) });
  }

  /** The messages as the client shows them. */
  get messages(): readonly AnyUIMessage[] {
    return this.chat.messages;
  }

  /** Sends a message, and resolves when its answer is complete. Approves tool calls. @throws what `onShown` throws */
  async send(text: string): Promise<void> {
    this.begin();
    await this.chat.sendMessage({ text });
    await this.complete();
  }

  /** Returns the messages that the server has stored. */
  async stored(): Promise<AnyUIMessage[]> {
    const { api, headers } = this.options;
    const pages: AnyUIMessage[][] = [];
    for (let before: string | undefined; ;) {
      const query = before === undefined ? '' : `?before=${encodeURIComponent(before)}`;
      const response = await fetch(`${api}/${this.id}/messages${query}`, { headers });
      if (!response.ok) throw new Error(`GET ${response.url} returned ${response.status}: ${await response.text()}`);
      const page = (await response.json()) as { messages: AnyUIMessage[]; before?: string };
      pages.unshift(page.messages);
      if (page.before === undefined) return pages.flat();
      before = page.before;
    }
  }

  /** Breaks the current connection, as when the server ends. */
  cut(): void {
    this.connection.abort(new TypeError('network error'));
  }

  private async complete(): Promise<void> {
    for (let resumes = 0; ;) {
      if (this.failure) throw this.failure.error;
      if (this.chat.status === 'error') {
        if (!this.isBroken) throw failed(this.chat.error);
        resumes += 1;
        if (resumes > MAX_RESUMES) throw new Error(`The answer is not complete after ${MAX_RESUMES} resumes.`);
        await this.resume();
      } else {
        const requests = this.requests();
        if (requests.length === 0) return;
        await this.answer(requests);
      }
    }
  }

  private async resume(): Promise<void> {
    this.begin();
    await this.chat.resumeStream();
    // The turn has ended, so a page loads the messages.
    if (this.isOver) this.chat.messages = await this.stored();
  }

  private async answer(requests: readonly UIPart[]): Promise<void> {
    for (const { type, toolName, input, approval } of requests) {
      const name = type === 'dynamic-tool' ? (toolName as string) : type.slice('tool-'.length);
      const { id } = approval as { readonly id: string };
      await this.chat.addToolApprovalResponse({ id, approved: this.options.approve({ toolName: name, input }) });
    }
    this.begin();
    await this.chat.sendMessage();
  }

  private requests(): UIPart[] {
    const parts = this.chat.messages.at(-1)?.parts ?? [];
    return parts.filter(({ state }) => state === 'approval-requested');
  }

  private begin(): void {
    this.connection = new AbortController();
    this.isBroken = false;
    this.isOver = false;
  }

  /** Works like the global function, and notices when the connection breaks. */
  private readonly fetch: typeof fetch = async (input, init) => {
    const { signal } = this.connection;
    const signals = init?.signal ? [init.signal, signal] : [signal];
    try {
      const response = await fetch(input, { ...init, signal: AbortSignal.any(signals) });
      this.isOver = response.status === 204;
      if (!response.body || !response.ok) return response;
      return new Response(ReadableStream.from(this.read(response.body)), response);
    } catch (error) {
      throw this.broken(error);
    }
  };

  private async *read(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    try {
      yield* body;
    } catch (error) {
      throw this.broken(error);
    }
  }

  private broken(error: unknown): unknown {
    this.isBroken = true;
    this.breaks += 1;
    return error;
  }
}

/** Shortens the message: for an unknown chunk, it contains the whole schema. */
function failed(cause: Error | undefined): Error {
  const { message = '' } = cause ?? {};
  const shown = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)} ...` : message;
  return new Error(`The client got an error: ${shown}`, { cause });
}

/** The state of a chat, as a page without a framework keeps it. */
class ChatState {
  status = 'ready';
  error: Error | undefined;
  messages: AnyUIMessage[] = [];

  constructor(private readonly shown: (message: AnyUIMessage) => void) {}

  readonly pushMessage = (message: AnyUIMessage): void => {
    this.messages = [...this.messages, structuredClone(message)];
    this.shown(message);
  };

  readonly popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
  };

  readonly replaceMessage = (index: number, message: AnyUIMessage): void => {
    this.messages = this.messages.with(index, structuredClone(message));
    this.shown(message);
  };

  readonly snapshot = <T>(value: T): T => structuredClone(value);
}

/** @throws SessionsConfigurationError if it is not a version of `ai` with chats */
export function toChatSdk(sdk: unknown): ChatSdk {
  const { AbstractChat, DefaultChatTransport } = Object(sdk) as Record<string, unknown>;
  if (typeof AbstractChat === 'function' && typeof DefaultChatTransport === 'function') return sdk as ChatSdk;
  throw new SessionsConfigurationError(
    "describeChatTransport: The option sdk must return the package ai, version 6 or 7: () => import('ai').",
  );
}
