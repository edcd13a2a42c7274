import { type UIChunk, type UIPart } from '../chat/ui-message.js';
import { type UIStream } from '../chat/ui-stream.js';
import { type ApprovalAnswer, type ToolOutput } from './user-answers.js';

/** A request for the user's approval of a tool call. */
export interface ApprovalRequest {
  readonly toolCallId: string;
  /** The id in the messages for the model. */
  readonly approvalId: string;
  /** True if the provider runs the tool. */
  readonly providerExecuted?: boolean;
}

/** A call of a tool that only the client can run: a request for its output. */
export interface OutputRequest {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** A request that the user answers, in person or through the client, after the response has ended. */
export type PendingRequest = ApprovalRequest | OutputRequest;

/** A request with its answer. */
export type AnsweredRequest = (ApprovalRequest & ApprovalAnswer) | (OutputRequest & ToolOutput);

/** Chunks after which the user need not answer: the request is answered, or the server has run the tool. */
const ANSWERS = ['tool-approval-response', 'tool-output-available', 'tool-output-error', 'tool-output-denied'];

/**
 * Writes the chunks of one response. Errors are not written: the attempt fails, and a later one continues the response.
 * @param answered the requests of the previous response
 * @returns the requests that the SDK has not answered itself
 */
export async function writeResponse(
  ui: UIStream,
  chunks: AsyncIterable<UIChunk>,
  answered: readonly AnsweredRequest[],
): Promise<PendingRequest[]> {
  /** Approval requests by their id, all others by the id of their call. */
  const open = new Map<unknown, PendingRequest>();
  for await (const chunk of chunks) {
    const { type, toolCallId, approvalId, providerExecuted } = chunk;
    if (type === 'abort') throw new Error(`The answer was aborted. Reason: ${String(chunk.reason)}`);
    if (type === 'error') continue;
    if (type === 'tool-input-available' && providerExecuted !== true) open.set(toolCallId, toOutputRequest(chunk));
    if (type === 'tool-approval-request') {
      open.delete(toolCallId);
      open.set(approvalId, toApprovalRequest(ui, chunk));
    }
    const request = open.get(approvalId);
    await ui.write(request && isApproval(request) ? { ...chunk, approvalId: shownIdOf(request) } : chunk);
    if (ANSWERS.includes(type)) open.delete(approvalId ?? toolCallId);
    if (type === 'start') for (const each of answered) await ui.write(toChunk(each));
  }
  return [...open.values()];
}

/** Returns whether a request is one for an approval. */
export function isApproval<Request extends PendingRequest>(
  request: Request,
): request is Extract<Request, ApprovalRequest> {
  return 'approvalId' in request;
}

/** Returns the answer to an approval request as a chunk, or as a part of a message for the model. */
export function toApprovalResponse(
  { approved, reason, providerExecuted }: ApprovalRequest & ApprovalAnswer,
  approvalId: string,
): UIChunk & { readonly type: 'tool-approval-response' } {
  return { type: 'tool-approval-response', approvalId, approved, reason, providerExecuted };
}

/** Returns the call with its output, as a part of a UI message. */
export function toCallPart({ toolCallId, toolName, input, output, errorText }: OutputRequest & ToolOutput): UIPart {
  const call = { type: `tool-${toolName}`, toolCallId, input };
  if (errorText !== undefined) return { ...call, state: 'output-error', errorText };
  return { ...call, state: 'output-available', output: output ?? null };
}

function toChunk(answered: AnsweredRequest): UIChunk {
  if (isApproval(answered)) return toApprovalResponse(answered, shownIdOf(answered));
  const { toolCallId, state, output, errorText } = toCallPart(answered);
  return { type: `tool-${state as string}`, toolCallId, output, errorText };
}

function toOutputRequest({ toolCallId, toolName, input }: UIChunk): OutputRequest {
  return { toolCallId, toolName, input } as OutputRequest;
}

function toApprovalRequest(ui: UIStream, { toolCallId, approvalId }: UIChunk): ApprovalRequest {
  const call = ui.message.parts.findLast((part) => part.toolCallId === toolCallId);
  return { toolCallId, approvalId, providerExecuted: call?.providerExecuted } as ApprovalRequest;
}

/** Returns the id for clients, which is the same in every attempt. The SDK creates another id in each attempt. */
function shownIdOf({ toolCallId, approvalId, providerExecuted }: ApprovalRequest): string {
  return providerExecuted ? approvalId : toolCallId;
}
