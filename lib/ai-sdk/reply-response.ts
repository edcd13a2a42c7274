import { type ToolSet } from 'ai';
import { type UIChunk, type UIPart } from '../chat/ui-message.js';
import { type UIStream } from '../chat/ui-stream.js';
import { INTERRUPTED } from '../ledger/interrupted-result.js';
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

/** The calls of a response that the SDK has not answered. */
export interface UnansweredCalls {
  readonly requests: readonly PendingRequest[];
  /** The calls of tools that the server has not run. */
  readonly interrupted: readonly (OutputRequest & ToolOutput)[];
}

/** Chunks after which the user need not answer: the request is answered, or the server has run the tool. */
const ANSWERS = ['tool-approval-response', 'tool-output-available', 'tool-output-error', 'tool-output-denied'];

/**
 * Writes the chunks of one response. Errors are not written: the attempt fails, and a later one continues the response.
 *
 * The SDK runs no tools if the answer of the model ends early, for example because of its length. Clients and the model
 * then get an `interrupted` error for each call of a tool with `execute`.
 * @param answered the requests of the previous response
 */
export async function writeResponse(
  ui: UIStream,
  chunks: AsyncIterable<UIChunk>,
  answered: readonly AnsweredRequest[],
  tools: ToolSet = {},
): Promise<UnansweredCalls> {
  /** Approval requests by their id, all others by the id of their call. */
  const open = new Map<unknown, PendingRequest>();
  /** The calls that the server must run, by their id. */
  const running = new Map<unknown, OutputRequest>();
  const interrupted: (OutputRequest & ToolOutput)[] = [];
  let hasFailed = false;
  for await (const chunk of chunks) {
    const { type, toolCallId, approvalId, providerExecuted } = chunk;
    if (type === 'abort') throw new Error(`The answer was aborted. Reason: ${String(chunk.reason)}`);
    if (type === 'error') {
      hasFailed = true;
      continue;
    }
    if (type === 'tool-input-available' && providerExecuted !== true) {
      const call = toOutputRequest(chunk);
      (tools[call.toolName]?.execute ? running : open).set(toolCallId, call);
    }
    if (type === 'tool-approval-request') {
      open.delete(toolCallId);
      if (chunk.isAutomatic !== true) running.delete(toolCallId);
      open.set(approvalId, toApprovalRequest(ui, chunk));
    }
    if (type === 'finish-step' && !hasFailed) {
      for (const call of running.values()) {
        const failed = { ...call, errorText: INTERRUPTED };
        await ui.write(toChunk(failed));
        interrupted.push(failed);
      }
      running.clear();
    }
    const request = open.get(approvalId);
    await ui.write(request && isApproval(request) ? { ...chunk, approvalId: shownIdOf(request) } : chunk);
    if (ANSWERS.includes(type)) {
      open.delete(approvalId ?? toolCallId);
      running.delete(toolCallId);
    }
    if (type === 'start') for (const each of answered) await ui.write(toChunk(each));
  }
  return { requests: [...open.values()], interrupted };
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
