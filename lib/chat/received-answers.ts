import { isFields } from '../common/json.js';
import { type StoredSignal } from '../ledger/turn.store.js';
import { segmentsOf } from './replay.js';
import { type UIChunk } from './ui-message.js';
import { approvalSignal, toolOutputSignal } from './user-signals.js';

/** The signals that answer requests, by the type of the chunk that requests the answer. */
const SIGNALS = { 'tool-approval-request': approvalSignal, 'tool-input-available': toolOutputSignal } as const;

/** A request for an answer of the user. */
export interface UserRequest {
  readonly toolCallId: string;
  /** The type of the chunk that requests the answer. */
  readonly request: keyof typeof SIGNALS;
}

/** A request that has no answer in the chunks. */
interface OpenRequest extends UserRequest {
  readonly approvalId: unknown;
  /** The name of the signal that answers it. */
  readonly signal: string;
}

/** The requests for answers of the user in the responses of a turn. Reads each chunk once. */
export class UserRequests {
  /** The indexes of the responses that contain a request, by its key. */
  private readonly requested = new Map<string, number[]>();
  /** The index of the latest response that contains a request and no result of its call. */
  private readonly open = new Map<string, number>();

  constructor(responses: readonly (readonly UIChunk[])[]) {
    for (const [index, chunks] of responses.entries()) this.add(index, chunks);
  }

  /** Returns the index of the latest response that contains a request and no result of its call; -1: none does. */
  responseOf(request: UserRequest): number {
    return this.open.get(keyOf(request)) ?? -1;
  }

  /** Returns the number of responses before `index` that contain a request. The one at `index` must contain it, too. */
  countBefore(request: UserRequest, index: number): number {
    return this.requested.get(keyOf(request))!.lastIndexOf(index);
  }

  private add(index: number, chunks: readonly UIChunk[]): void {
    /** The latest chunk of each call, and its request. */
    const latest = new Map<string, readonly [UIChunk, UserRequest | undefined]>();
    for (const chunk of chunks) {
      const { type, toolCallId } = chunk;
      if (typeof toolCallId !== 'string') continue;
      const request = isRequestType(type) ? { toolCallId, request: type } : undefined;
      latest.set(toolCallId, [chunk, request]);
      if (!request) continue;
      const key = keyOf(request);
      const indexes = this.requested.get(key) ?? [];
      if (indexes.at(-1) !== index) this.requested.set(key, [...indexes, index]);
    }
    for (const [{ providerExecuted }, request] of latest.values()) {
      if (request && providerExecuted !== true) this.open.set(keyOf(request), index);
    }
  }
}

function keyOf({ toolCallId, request }: UserRequest): string {
  return `${request} ${toolCallId}`;
}

/**
 * Adds the answers of the user that a turn has received, and has not continued with yet: answers to approval requests
 * (AIS-32), and outputs of tools that the client has run (AIS-39). A client that loads the answer must not ask or run
 * the tool again, and a stop keeps them.
 * @param chunks the stored chunks of the turn
 * @param readSignals reads the signals of the turn; called if a request has no answer in the chunks
 */
export async function withReceivedAnswers(
  chunks: readonly UIChunk[],
  readSignals: () => Promise<readonly StoredSignal[]>,
): Promise<readonly UIChunk[]> {
  const requests = openRequests(segmentsOf(chunks));
  if (requests.length === 0) return chunks;
  const signals = await readSignals();
  const answers = requests.flatMap((request) => {
    return toAnswer(request, signals.find(({ name }) => name === request.signal)?.payload) ?? [];
  });
  // If the turn still waits for another answer, the chunks end with a `finish`, which must stay the last one.
  const end = chunks.at(-1)?.type === 'finish' ? chunks.length - 1 : chunks.length;
  return chunks.toSpliced(end, 0, ...answers);
}

/** Returns the requests without an answer in the chunks. They are in the latest response that has requests. */
function openRequests(segments: readonly (readonly UIChunk[])[]): OpenRequest[] {
  const at = segments.findLastIndex((chunks) => chunks.some(isRequest));
  const asking = segments[at] ?? [];
  // The next response begins with the answers. It may have only some of them, if its worker stopped in between.
  const later = segments.slice(at + 1).flat();
  const requests = new UserRequests(segments);
  return asking.flatMap(({ type, toolCallId, approvalId }) => {
    if (!isRequestType(type) || typeof toolCallId !== 'string') return [];
    const request = { toolCallId, request: type };
    // Until the response ends, a call without an output may be of a tool that the server runs.
    const isPossible = type === 'tool-approval-request' || asking.at(-1)?.type === 'finish';
    const isOpen = isPossible && requests.responseOf(request) === at;
    if (!isOpen || later.some((chunk) => isAnswerTo(chunk, toolCallId, approvalId))) return [];
    const earlier = requests.countBefore(request, at);
    return [{ ...request, approvalId, signal: SIGNALS[type](toolCallId, { earlier }) }];
  });
}

function isAnswerTo(chunk: UIChunk, toolCallId: string, approvalId: unknown): boolean {
  if (chunk.type === 'tool-approval-response') return chunk.approvalId === approvalId;
  return chunk.toolCallId === toolCallId;
}

/** Returns the chunk that answers a request; `undefined` if the payload of its signal is missing or not valid. */
function toAnswer({ toolCallId, request, approvalId }: OpenRequest, payload: unknown): UIChunk | undefined {
  if (!isFields(payload)) return undefined;
  const { approved, reason, output = null, errorText } = payload;
  if (request === 'tool-approval-request') {
    if (typeof approved !== 'boolean') return undefined;
    const given = typeof reason === 'string' ? { reason } : {};
    return { type: 'tool-approval-response', approvalId, approved, ...given };
  }
  if (errorText === undefined) return { type: 'tool-output-available', toolCallId, output };
  return typeof errorText === 'string' ? { type: 'tool-output-error', toolCallId, errorText } : undefined;
}

function isRequest({ type }: UIChunk): boolean {
  return isRequestType(type);
}

function isRequestType(type: string): type is UserRequest['request'] {
  return Object.hasOwn(SIGNALS, type);
}
