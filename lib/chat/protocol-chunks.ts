import { isData } from './chunk-fields.js';
import { UI_RESET } from './message-fold.js';
import { type UIChunk } from './ui-message.js';

/** The version of the AI SDK that clients use. It decides which chunks they accept. */
export type Protocol = 6 | 7;

/** The chunks for a client. */
export interface ProtocolChunks {
  readonly chunks: readonly UIChunk[];
  /**
   * True if the client cannot show the next chunks, because protocol 6 cannot remove parts. Break the connection
   * without `finish`: the client then shows an error, and gets the whole answer when it resumes.
   */
  readonly isCut: boolean;
}

const COMMON = [
  'start',
  'finish',
  'abort',
  'error',
  'start-step',
  'finish-step',
  'message-metadata',
  'text-start',
  'text-delta',
  'text-end',
  'reasoning-start',
  'reasoning-delta',
  'reasoning-end',
  'source-url',
  'source-document',
  'file',
  'tool-input-start',
  'tool-input-delta',
  'tool-input-available',
  'tool-input-error',
  'tool-approval-request',
  'tool-output-available',
  'tool-output-error',
  'tool-output-denied',
];
/** The chunks that clients accept, besides data. They end the chat at any other. */
const ACCEPTED: Record<Protocol, ReadonlySet<string>> = {
  6: new Set(COMMON),
  7: new Set([...COMMON, 'custom', 'reasoning-file', 'reset-step', 'steering-message', 'tool-approval-response']),
};
const REQUEST = 'tool-approval-request';
const RESPONSE = 'tool-approval-response';
const FINISH_REASONS_6 = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other'];

/**
 * Translates stored chunks for the clients of a protocol (AIS-14). Omits chunks that they do not accept. A reset
 * becomes `reset-step` in protocol 7, and ends the chunks in protocol 6.
 */
export function toProtocol(chunks: readonly UIChunk[], protocol: Protocol): ProtocolChunks {
  const reset = protocol === 6 ? chunks.findIndex(({ type }) => type === UI_RESET) : -1;
  const sent = reset === -1 ? chunks : chunks.slice(0, reset);
  const accepted = sent
    .map((chunk) => translated(chunk, protocol))
    .filter((chunk) => isData(chunk) || ACCEPTED[protocol].has(chunk.type));
  return { chunks: accepted, isCut: reset !== -1 };
}

/**
 * Removes answered approval requests from a replay for protocol 6 (AIS-32). This protocol cannot send the user's answer,
 * so clients would ask again; without the request, they show the call as running. If one request is not answered, all of
 * them stay, because clients send answers only when every call of a step has one.
 * @param chunks the replay, with the answers in chunks of protocol 7
 */
export function withoutAnswered(chunks: readonly UIChunk[]): readonly UIChunk[] {
  const answers = chunks.map((chunk, at) => (chunk.type === REQUEST ? answerTo(chunk, chunks.slice(at + 1)) : null));
  if (answers.includes(undefined)) return chunks;
  return chunks.filter(({ toolCallId }, at) => {
    const isAnswered = typeof answers[at]?.approved === 'boolean';
    return !isAnswered || chunks.slice(at).some((other) => other.toolCallId === toolCallId && isOutput(other));
  });
}

function answerTo({ approvalId }: UIChunk, later: readonly UIChunk[]): UIChunk | undefined {
  const next = later.find((chunk) => chunk.approvalId === approvalId);
  return next?.type === RESPONSE ? next : undefined;
}

function isOutput({ type }: UIChunk): boolean {
  return type.startsWith('tool-output-');
}

function translated(chunk: UIChunk, protocol: Protocol): UIChunk {
  if (chunk.type === UI_RESET) return { type: 'reset-step' };
  if (protocol === 7 || chunk.type !== 'finish' || chunk.finishReason === undefined) return chunk;
  return FINISH_REASONS_6.includes(chunk.finishReason as string) ? chunk : { ...chunk, finishReason: 'other' };
}
