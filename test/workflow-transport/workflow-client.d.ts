/** The part of the package that the tests use. Only this folder installs it. */
declare module '@ai-sdk/workflow/client' {
  export interface SentRequest {
    readonly messages: readonly object[];
    readonly trigger: string;
    readonly messageId: string | undefined;
  }

  export interface WorkflowChatTransportOptions {
    readonly api?: string;
    readonly fetch?: typeof fetch;
    readonly maxConsecutiveErrors?: number;
    readonly initialStartIndex?: number;
    readonly prepareSendMessagesRequest?: (request: SentRequest) => {
      readonly headers: Record<string, string>;
      readonly body: object;
    };
  }

  export class WorkflowChatTransport {
    constructor(options?: WorkflowChatTransportOptions);
  }
}
