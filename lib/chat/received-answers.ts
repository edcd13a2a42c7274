import { isFields } from '../common/json.js';
import { type StoredSignal } from '../ledger/turn.store.js';
import { segmentsOf } from './replay.js';
import { type UIChunk } from './ui-message.js';
import { approvalSignal } from './user-signals.js';

/** A request for an answer of the user. */
export interface UserRequest {
  readonly toolCallId: string;
  /** The type of the chunk that requests the answer. */
  readonly request: 'tool-approval-request' | 'tool-input-available';
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

/**
 * Adds the user's answers to approval requests that a turn has received, and has not continued with yet (AIS-32). A
 * client that loads the answer must not ask again, and a stop must not deny an approved call.
 * @param chunks the stored chunks of the turn
 * @param readSignals reads the signals of the turn; called if a request has no answer in the chunks
 */
export async function withReceivedAnswers(
  chunks: readonly UIChunk[],
  readSignals: () => Promise<readonly StoredSignal[]>,
): Promise<readonly UIChunk[]> {
  const segments = segmentsOf(chunks);
  const requests = openApprovals(segments);
  if (requests.length === 0) return chunks;
  const signals = await readSignals();
  const answers = requests.flatMap(({ approvalId, ...request }): UIChunk[] => {
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
