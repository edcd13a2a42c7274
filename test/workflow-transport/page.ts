import { randomUUID } from 'node:crypto';
import { WorkflowChatTransport, type WorkflowChatTransportOptions } from '@ai-sdk/workflow/client';
import * as ai from '../ai-7/ai.js';
import { type AnyUIMessage } from '../../lib/chat/ui-message.js';
import { Network } from '../support/network.js';

/** What docs/ai-sdk.md tells pages to send. */
export const PREPARED: Pick<WorkflowChatTransportOptions, 'prepareSendMessagesRequest'> = {
  prepareSendMessagesRequest: ({ messages, trigger, messageId }) => ({
    headers: { 'content-type': 'application/json' },
    body: { messages, trigger, messageId },
  }),
};

export interface PageOptions {
  /** The URL of the chat controller. */
  readonly url: string;
  readonly id?: string;
  readonly messages?: readonly AnyUIMessage[];
  readonly network?: Network;
  /** Options of the transport, besides its address and network. */
  readonly transport?: WorkflowChatTransportOptions;
  /** Called with each version of an answer that the page shows. It may throw. */
  readonly onShown?: (answer: AnyUIMessage) => void;
}

/** A page with the chat of `ai` 7 and the unmodified transport, without React. */
export class Page {
  readonly id: string;
  readonly network: Network;
  readonly chat: ai.AbstractChat<ai.UIMessage>;
  private readonly url: string;
  private failure: { readonly error: unknown } | undefined;

  constructor({ url, id = randomUUID(), messages = [], network = new Network(), transport, onShown }: PageOptions) {
    this.url = url;
    this.id = id;
    this.network = network;
    const shown = (message: AnyUIMessage): void => {
      try {
        if (message.role === 'assistant') onShown?.(message);
      } catch (error) {
        this.failure ??= { error };
      }
    };
    this.chat = new Chat({
      id,
      state: new State(structuredClone(messages) as unknown as ai.UIMessage[], shown),
      transport: new WorkflowChatTransport({
        api: `${url}/${id}`,
        fetch: network.fetch,
        ...transport,
      }) as unknown as ai.ChatTransport<ai.UIMessage>,
    });
  }

  get messages(): AnyUIMessage[] {
    return this.chat.messages;
  }

  /** Sends a message, approves the calls that need it, and resolves after the answer. @throws what `onShown` throws */
  async converse(text: string): Promise<void> {
    await this.chat.sendMessage({ text });
    await this.approve();
  }

  /** Approves all calls that need it, and resolves after the answer. @throws what `onShown` throws */
  async approve(): Promise<void> {
    for (;;) {
      this.check();
      const requests = this.requests();
      if (requests.length === 0) return;
      for (const id of requests) await this.chat.addToolApprovalResponse({ id, approved: true });
      await this.chat.sendMessage();
    }
  }

  /** Shows the stored messages, then the answer, as after a reload. */
  async reload(options: Partial<PageOptions> = {}): Promise<Page> {
    const { url, id } = this;
    return new Page({ url, id, messages: await this.stored(), ...options });
  }

  async stored(): Promise<AnyUIMessage[]> {
    const response = await fetch(`${this.url}/${this.id}/messages`);
    return ((await response.json()) as { messages: AnyUIMessage[] }).messages;
  }

  /** @throws what `onShown` has thrown, or the error that the page shows */
  check(): void {
    if (this.failure) throw this.failure.error;
    if (this.chat.error) throw this.chat.error;
  }

  private requests(): string[] {
    return (this.messages.at(-1)?.parts ?? []).flatMap(({ state, approval }) =>
      state === 'approval-requested' ? [(approval as { id: string }).id] : [],
    );
  }
}

class Chat extends ai.AbstractChat<ai.UIMessage> {}

/** The state of a chat, as a page without a framework keeps it. */
class State implements ai.ChatState<ai.UIMessage> {
  status: ai.ChatStatus = 'ready';
  error: Error | undefined;

  constructor(
    public messages: ai.UIMessage[],
    private readonly shown: (message: AnyUIMessage) => void,
  ) {}

  pushMessage = (message: ai.UIMessage): void => {
    this.messages = [...this.messages, structuredClone(message)];
    this.shown(message);
  };
  popMessage = (): void => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index: number, message: ai.UIMessage): void => {
    this.messages = this.messages.with(index, structuredClone(message));
    this.shown(message);
  };
  snapshot = <T>(value: T): T => structuredClone(value);
}
