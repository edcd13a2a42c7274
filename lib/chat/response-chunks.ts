import { type ChunkFields } from './chunk-fields.js';
import { UI_RESET } from './message-fold.js';
import { type UIChunk } from './ui-message.js';

/** How a turn ended, for the client of a chat. */
export interface AnswerEnd {
  readonly status: string;
  /** The reply's text, or `null`. */
  readonly reply?: string | null;
  /** The code of the error, unless the turn succeeded. */
  readonly code?: string;
}

/** The chunks that answer a call: its result, or the decision of the user. */
const ANSWERS = ['tool-output-available', 'tool-output-error', 'tool-input-error', 'tool-approval-response'];

/**
 * Converts the stored chunks of a turn to the chunks of one HTTP response (AIS-13). Stored chunks consist of segments:
 * each begins with `start`, and ends with `finish` when the turn waits for its user or ends. A response contains the
 * segments from `from` on. The client shows it as one message, so it has only one `start` and one `finish`. Example:
 * `start A finish start B finish` is sent as `start A B finish`, or as `start B finish` if `from` is 1.
 *
 * Each connection has its own instance. Call `add` with every stored chunk of the turn, then `waiting` or `ended`. The
 * same stored chunks always give the same chunks, so that a client can reconnect with the number of its chunks.
 */
export class ResponseChunks {
  /** The latest `finish`, which is sent only if no chunk follows it. */
  private held: UIChunk | undefined;
  /** The number of the segment of the latest stored chunk, from 0. */
  private segment = 0;
  /** True until the response has a chunk, not counting `finish`. */
  private isFirst = true;
  /** True if the latest stored chunk is a `finish`, so that the next one begins a segment. */
  private isAfterFinish = false;
  /**
   * True if the current step has results of calls or answers of the user. A segment above 0 continues the step that the
   * user has answered.
   */
  private isAnswered: boolean;
  /** The approvals that this response has requested and that the user has not answered: approval id to tool call id. */
  private readonly pending = new Map<string, string>();

  /**
   * @param turnId the id of the message
   * @param from the segment that the response begins with, see `segmentsOf`. If it is above 0, the client has shown the
   * earlier segments, and has sent answers of the user, with which the turn continues
   */
  constructor(
    private readonly turnId: string,
    private readonly from: number,
  ) {
    this.isAnswered = from > 0;
  }

  /** Takes the next stored chunk. @returns the chunks to send */
  add(given: UIChunk): UIChunk[] {
    const chunk = given as ChunkFields;
    if (this.isAfterFinish) this.segment += 1;
    this.isAfterFinish = chunk.type === 'finish';
    if (this.segment < this.from) return [];
    const before = this.release();
    if (chunk.type === 'finish') {
      this.held = chunk;
      return before;
    }
    const isRestart = chunk.type === 'start' && !this.isFirst;
    this.isFirst = false;
    this.noteAnswer(chunk, isRestart);
    this.noteApproval(chunk, isRestart);
    return [...before, ...(isRestart ? metadataOf(chunk) : [chunk])];
  }

  /**
   * Returns the last chunks if the turn waits for an answer of the user; `undefined` if it waits for another signal, so
   * that the response must stay open.
   */
  waiting(): UIChunk[] | undefined {
    if (this.held) return [this.held];
    // The user has answered only some requests of the earlier segment, so the turn has not continued. The response must
    // end, because the client can send the other answers only after its end.
    return this.from > 0 && this.isFirst ? [this.start, { type: 'finish' }] : undefined;
  }

  /** Returns the last chunks after the turn has ended. */
  ended({ status, reply, code }: AnswerEnd): UIChunk[] {
    switch (status) {
      case 'awaiting-input':
      case 'completed': {
        // If the handler has streamed nothing, the reply is the whole answer.
        const isReply = this.isFirst && this.from === 0;
        const rest = isReply ? [this.start, ...textChunks(reply ?? '')] : this.stepAfterAnswers;
        return [...rest, this.held ?? { type: 'finish' }];
      }
      case 'failed':
        return [errorChunk(code ?? 'TURN_FAILED', 'The answer failed.')];
      // The turn was cancelled or superseded.
      default:
        return [
          // The turn no longer takes an answer (AIS-32).
          ...[...this.pending.values()].map((toolCallId) => ({ type: 'tool-output-denied', toolCallId })),
          ...this.stepAfterAnswers,
          { type: 'abort' },
          { type: 'finish' },
        ];
    }
  }

  /** Returns true if the turn has completed, and neither a chunk nor a reply shows an answer. */
  isEmptyAfter({ status, reply }: AnswerEnd): boolean {
    const isCompleted = status === 'completed' || status === 'awaiting-input';
    return isCompleted && this.from === 0 && this.isFirst && !reply;
  }

  /** Updates `isAnswered` for the next chunk. */
  private noteAnswer({ type, providerExecuted }: ChunkFields, isRestart: boolean): void {
    if (type === 'start-step' || isReset(type)) this.isAnswered = false;
    else if (isRestart || (ANSWERS.includes(type) && providerExecuted !== true)) this.isAnswered = true;
  }

  /** Updates `pending` for the next chunk. */
  private noteApproval({ type, approvalId, toolCallId }: ChunkFields, isRestart: boolean): void {
    // A turn continues only when it has all answers. A reset removes the parts of the step, with its requests.
    if (isRestart || isReset(type)) this.pending.clear();
    else if (type === 'tool-approval-request') this.pending.set(approvalId, toolCallId);
    else if (type === 'tool-approval-response') this.pending.delete(approvalId);
    else if (type.startsWith('tool-output-')) {
      for (const [id, call] of this.pending) if (call === toolCallId) this.pending.delete(id);
    }
  }

  /** Drops the held `finish`, because another chunk follows it. @returns its metadata, as a chunk */
  private release(): UIChunk[] {
    const { held } = this;
    this.held = undefined;
    return held ? metadataOf(held) : [];
  }

  /**
   * A new step after one with answers. When the response ends, the page sends the answers of the last step to the turn
   * (`sendAutomaticallyWhen`), which no longer takes them. The AI SDK applies the step to the message only at the next
   * `start`.
   */
  private get stepAfterAnswers(): UIChunk[] {
    return this.isAnswered ? [{ type: 'start-step' }, this.start] : [];
  }

  private get start(): UIChunk {
    return { type: 'start', messageId: this.turnId };
  }
}

/** Returns an error for clients, as JSON with a stable code (AIS-19). */
export function errorChunk(code: string, message: string): UIChunk {
  return { type: 'error', errorText: JSON.stringify({ code, message }) };
}

/** Returns whether a chunk removes the parts of the current step. */
function isReset(type: string): boolean {
  return type === UI_RESET || type === 'reset-step';
}

/** Returns the metadata of a `start` or `finish` that is not sent, as a chunk. */
function metadataOf({ messageMetadata }: UIChunk): UIChunk[] {
  return messageMetadata === undefined ? [] : [{ type: 'message-metadata', messageMetadata }];
}

/** Returns the chunks of a reply that the handler has not streamed, as one step. */
export function textChunks(text: string): UIChunk[] {
  if (text === '') return [];
  const id = 'reply';
  return [
    { type: 'start-step' },
    { type: 'text-start', id },
    { type: 'text-delta', id, delta: text },
    { type: 'text-end', id },
    { type: 'finish-step' },
  ];
}
