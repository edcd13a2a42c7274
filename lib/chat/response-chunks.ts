import { type ChunkFields } from './chunk-fields.js';
import { UI_RESET } from './message-fold.js';
import { type UIChunk } from './ui-message.js';

/** How a turn ended, for the client of a chat. */
export interface AnswerEnd {
  readonly status: string;
  /** The reply; `null` if there is no text. */
  readonly reply?: string | null;
  /** The code of the error, unless the turn succeeded. */
  readonly code?: string;
}

/**
 * The chunks of one HTTP response, from the stored chunks of a turn (AIS-13). A response that continues over a wait is
 * one message for its client, so only the last `finish` is sent, and only the first `start`. The same stored chunks
 * give the same chunks, so that a client can continue after a number of them.
 */
export class ResponseChunks {
  /** The `finish` of the latest segment, until it is known whether more chunks follow. */
  private held: UIChunk | undefined;
  private segment = 0;
  private isFirst = true;
  private hasEndedEmpty = false;
  private isAfterFinish = false;
  /** True from the answers of the user to the step that follows them. */
  private isBeforeStep: boolean;
  /** The calls for which this response has requested an approval that is not answered, by the id of the request. */
  private readonly pending = new Map<string, string>();

  /**
   * @param turnId the id of the message
   * @param from the segment that the response begins with, see `segmentsOf`
   */
  constructor(
    private readonly turnId: string,
    private readonly from: number,
  ) {
    this.isBeforeStep = from > 0;
  }

  /** True if the turn has completed, and no chunk shows an answer. */
  get isEmpty(): boolean {
    return this.hasEndedEmpty;
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
    this.isBeforeStep = isRestart || (this.isBeforeStep && chunk.type !== 'start-step');
    this.isFirst = false;
    this.noteApproval(chunk, isRestart);
    return [...before, ...(isRestart ? metadataOf(chunk) : [chunk])];
  }

  /** Returns the last chunks if the turn waits here for its user; `undefined` if it waits for something else. */
  waiting(): UIChunk[] | undefined {
    if (this.held) return [this.held];
    // The turn waits for another answer of the user: the client can give it after the end of this response only.
    return this.from > 0 && this.isFirst ? [this.start, { type: 'finish' }] : undefined;
  }

  /** Returns the last chunks after the turn has ended. */
  ended({ status, reply, code }: AnswerEnd): UIChunk[] {
    switch (status) {
      case 'awaiting-input':
      case 'completed': {
        // The handler has streamed nothing, so the reply is all there is.
        this.hasEndedEmpty = this.isFirst && this.from === 0 && !reply;
        const answer = this.isFirst ? [this.start, ...(this.from === 0 ? textChunks(reply ?? '') : [])] : [];
        return [...answer, this.held ?? { type: 'finish' }];
      }
      case 'failed':
        return [errorChunk(code ?? 'TURN_FAILED', 'The answer failed.')];
      default:
        // Without a new step, a front end would send the user's answers again. It renders the step only at the `start`.
        return [
          // The turn no longer takes an answer (AIS-32).
          ...[...this.pending.values()].map((toolCallId) => ({ type: 'tool-output-denied', toolCallId })),
          ...(this.isBeforeStep ? [{ type: 'start-step' }, this.start] : []),
          { type: 'abort' },
          { type: 'finish' },
        ];
    }
  }

  private noteApproval({ type, approvalId, toolCallId }: ChunkFields, isRestart: boolean): void {
    // A turn continues only when it has all answers. A reset removes the parts of the step, with its requests.
    if (isRestart || type === UI_RESET || type === 'reset-step') this.pending.clear();
    else if (type === 'tool-approval-request') this.pending.set(approvalId, toolCallId);
    else if (type === 'tool-approval-response') this.pending.delete(approvalId);
    else if (type.startsWith('tool-output-')) {
      for (const [id, call] of this.pending) if (call === toolCallId) this.pending.delete(id);
    }
  }

  /** Drops the `finish` of a segment that others follow. */
  private release(): UIChunk[] {
    const { held } = this;
    this.held = undefined;
    return held ? metadataOf(held) : [];
  }

  private get start(): UIChunk {
    return { type: 'start', messageId: this.turnId };
  }
}

/** Returns an error for clients, as JSON with a stable code (AIS-19). */
export function errorChunk(code: string, message: string): UIChunk {
  return { type: 'error', errorText: JSON.stringify({ code, message }) };
}

function metadataOf({ messageMetadata }: UIChunk): UIChunk[] {
  return messageMetadata === undefined ? [] : [{ type: 'message-metadata', messageMetadata }];
}

/** Returns the chunks of a text that its handler has not streamed. */
function textChunks(text: string): UIChunk[] {
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
