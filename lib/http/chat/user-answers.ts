import { segmentsOf } from '../../chat/replay.js';
import { type UIChunk, type UIMessage } from '../../chat/ui-message.js';
import { approvalSignal, toolOutputSignal } from '../../chat/user-signals.js';
import { isFields } from '../../common/json.js';
import { type StoredSignal } from '../../ledger/turn.store.js';

/** A request for an answer of the user. */
interface UserRequest {
  readonly toolCallId: string;
  /** The type of the chunk that requests the answer. */
  readonly request: 'tool-approval-request' | 'tool-input-available';
}

/** An answer of the user to an approval request, or the output of a tool that the client has run. */
export interface UserAnswer extends UserRequest {
  /** Returns the name of the signal. @param earlier the number of earlier requests for the id of the call */
  readonly signal: (earlier: number) => string;
  readonly payload: object;
}

/** Returns the answers of the user that a message may contain. A tool of the server has an output, too. */
export function answersOf({ parts }: UIMessage): UserAnswer[] {
  return parts.flatMap(({ state, toolCallId, approval, output = null, errorText }): UserAnswer[] => {
    if (typeof toolCallId !== 'string') return [];
    const { approved, reason } = (approval ?? {}) as { approved?: unknown; reason?: unknown };
    if (state === 'approval-responded' && typeof approved === 'boolean') {
      const payload = { approved, ...(typeof reason === 'string' ? { reason } : {}) };
      return [
        {
          toolCallId,
          request: 'tool-approval-request',
          signal: (earlier) => approvalSignal(toolCallId, { earlier }),
          payload,
        },
      ];
    }
    if (state !== 'output-available' && state !== 'output-error') return [];
    const failure = typeof errorText === 'string' ? errorText : 'The tool failed.';
    const payload = state === 'output-error' ? { errorText: failure } : { output };
    return [
      {
        toolCallId,
        request: 'tool-input-available',
        signal: (earlier) => toolOutputSignal(toolCallId, { earlier }),
        payload,
      },
    ];
  });
}

/** Returns whether a response contains the request of an answer, and no result of the call. */
export function isRequested({ toolCallId, request }: UserRequest, response: readonly UIChunk[]): boolean {
  const latest = response.findLast((chunk) => chunk.toolCallId === toolCallId);
  return latest?.type === request && latest.providerExecuted !== true;
}

/** Returns the number of responses that contain the request of an answer. */
export function countRequests(
  { toolCallId, request }: UserRequest,
  responses: readonly (readonly UIChunk[])[],
): number {
  const isRequest = (chunk: UIChunk): boolean => chunk.toolCallId === toolCallId && chunk.type === request;
  return responses.filter((chunks) => chunks.some(isRequest)).length;
}

/** Returns whether the last response of a turn requests an approval that has no answer in its chunks. */
export function hasOpenApproval(chunks: readonly UIChunk[]): boolean {
  return openApprovals(segmentsOf(chunks)).length > 0;
}

/**
 * Adds the user's answers to approval requests that a turn has received, and has not continued with yet. A client that
 * loads the answer meanwhile must not ask again (AIS-32).
 * @param chunks the stored chunks of the turn
 * @param signals the stored signals of the turn
 */
export function withReceivedApprovals(chunks: readonly UIChunk[], signals: readonly StoredSignal[]): UIChunk[] {
  const segments = segmentsOf(chunks);
  const answers = openApprovals(segments).flatMap(({ approvalId, ...request }): UIChunk[] => {
    const name = approvalSignal(request.toolCallId, { earlier: countRequests(request, segments.slice(0, -1)) });
    const payload = signals.find((signal) => signal.name === name)?.payload;
    if (!isFields(payload) || typeof payload.approved !== 'boolean') return [];
    const { approved, reason } = payload;
    return [
      { type: 'tool-approval-response', approvalId, approved, ...(typeof reason === 'string' ? { reason } : {}) },
    ];
  });
  // The turn may still wait for another answer, so that its response ends here.
  const end = chunks.at(-1)?.type === 'finish' ? chunks.length - 1 : chunks.length;
  return chunks.toSpliced(end, 0, ...answers);
}

function openApprovals(segments: readonly (readonly UIChunk[])[]): (UserRequest & { readonly approvalId: unknown })[] {
  const last = segments.at(-1) ?? [];
  return last.flatMap(({ type, toolCallId, approvalId }) => {
    if (type !== 'tool-approval-request' || typeof toolCallId !== 'string') return [];
    const request = { toolCallId, request: type, approvalId } as const;
    return isRequested(request, last) ? [request] : [];
  });
}
