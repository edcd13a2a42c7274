import * as ai6 from 'ai';
import * as ai7 from '../ai-7/ai.js';
import { type AnyUIMessage } from '../../lib/chat/ui-message.js';

type Status = 'submitted' | 'streaming' | 'ready' | 'error';

/** What tests use of `AbstractChat`, in both versions. */
export interface FrontEnd {
  readonly id: string;
  readonly status: Status;
  readonly messages: AnyUIMessage[];
  readonly error: Error | undefined;
  readonly lastMessage: AnyUIMessage | undefined;
  sendMessage(message?: { text: string; messageId?: string; files?: object[] }, options?: object): Promise<void>;
  regenerate(options?: { messageId?: string }): Promise<void>;
  resumeStream(): Promise<void>;
  addToolApprovalResponse(answer: { id: string; approved: boolean; reason?: string }): PromiseLike<void> | void;
  addToolOutput(
    result: { tool: string; toolCallId: string } & ({ output: unknown } | { state: 'output-error'; errorText: string }),
  ): PromiseLike<void> | void;
  stop(): Promise<void>;
}

export interface FrontEndOptions {
  readonly id?: string;
  readonly api: string;
  readonly headers?: Record<string, string>;
  readonly messages?: readonly AnyUIMessage[];
  /** The version of the SDK. */
  readonly version: 6 | 7;
  readonly fetch?: typeof fetch;
  readonly transport?: object;
  /** Called when a tool call arrives that the server does not run, or not yet. */
  readonly onToolCall?: (call: { readonly toolCallId: string; readonly toolName: string }) => void;
  /** Called with each version of a message that the front end shows. It must not throw. */
  readonly onShown?: (message: AnyUIMessage) => void;
}

type Start = Omit<ConstructorParameters<typeof ai6.AbstractChat<ai6.UIMessage>>[0], 'state'> & {
  readonly messages: ai6.UIMessage[];
  readonly onShown: (message: AnyUIMessage) => void;
};

/** The state of a chat, as a page without a framework keeps it. */
class State implements ai6.ChatState<ai6.UIMessage> {
  status: Status = 'ready';
  error: Error | undefined;

  constructor(
    public messages: ai6.UIMessage[],
    private readonly shown: (message: AnyUIMessage) => void,
  ) {}

  pushMessage = (message: ai6.UIMessage): void => {
    this.messages = [...this.messages, message];
    this.shown(message);
  };
  popMessage = (): void => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index: number, message: ai6.UIMessage): void => {
    this.messages = this.messages.with(index, structuredClone(message));
    this.shown(message);
  };
  snapshot = <T>(value: T): T => structuredClone(value);
}

class FrontEnd6 extends ai6.AbstractChat<ai6.UIMessage> {
  constructor({ messages, onShown, ...init }: Start) {
    super({ ...init, state: new State(messages, onShown) });
  }
}

class FrontEnd7 extends ai7.AbstractChat<ai7.UIMessage> {
  constructor({ messages, onShown, ...init }: Start) {
    super({ ...init, state: new State(messages, onShown) } as unknown as ConstructorParameters<
      typeof ai7.AbstractChat<ai7.UIMessage>
    >[0]);
  }
}

/**
 * Returns what `useChat` is without React: a chat with the default transport, which sends approvals and the outputs of
 * tools automatically.
 */
export function frontEnd({
  version,
  id,
  api,
  headers = {},
  messages = [],
  fetch,
  transport,
  onToolCall,
  onShown = () => undefined,
}: FrontEndOptions): FrontEnd {
  const sdk = version === 6 ? ai6 : (ai7 as unknown as typeof ai6);
  const init = {
    ...(id === undefined ? {} : { id }),
    messages: structuredClone(messages) as unknown as ai6.UIMessage[],
    onShown,
    transport: (transport ?? new sdk.DefaultChatTransport({ api, headers, ...(fetch ? { fetch } : {}) })) as never,
    sendAutomaticallyWhen: (chat: { messages: ai6.UIMessage[] }) =>
      sdk.lastAssistantMessageIsCompleteWithApprovalResponses(chat) ||
      sdk.lastAssistantMessageIsCompleteWithToolCalls(chat),
    ...(onToolCall && {
      onToolCall: ({ toolCall }: { toolCall: Parameters<typeof onToolCall>[0] }) => onToolCall(toolCall),
    }),
  };
  const chat = version === 6 ? new FrontEnd6(init) : new FrontEnd7(init);
  return chat;
}

export const VERSIONS = [6, 7] as const;

/** Returns the text of a message. */
export function textOf(message: AnyUIMessage | undefined): string {
  return (message?.parts ?? []).flatMap((part) => (part.type === 'text' ? [part.text as string] : [])).join('');
}

/** Returns `type: state` of the tool calls of a message. */
export function toolsOf(message: AnyUIMessage | undefined): string[] {
  return (message?.parts ?? []).flatMap((part) =>
    part.toolCallId === undefined ? [] : [`${part.type}: ${part.state as string}`],
  );
}
