import { blockKindOf } from './chunk-fields.js';
import { UI_RESET } from './message-fold.js';
import { Replay } from './replay.js';
import { type UIChunk } from './ui-message.js';

/** Chunks that exist only after the answer of the model, or the result of its tool, was stored. */
const STORED: ReadonlySet<string> = new Set([
  'tool-input-available',
  'tool-input-error',
  'tool-approval-request',
  'tool-approval-response',
  'tool-output-available',
  'tool-output-error',
  'tool-output-denied',
  'finish-step',
  'finish',
  'error',
  'abort',
]);
/** Chunks that only add a part to the current step. */
const PARTS: ReadonlySet<string> = new Set([
  'file',
  'reasoning-file',
  'source-url',
  'source-document',
  'custom',
  'steering-message',
]);

/**
 * Holds the chunks of an answer that is no longer shown live (AIS-34), merged. They are released together once the
 * answer of the model is stored, and need at most the memory of the message. Results of tools and requests to the user
 * are never held.
 */
export class HeldChunks {
  /** Chunks up to the last reset. */
  private before: UIChunk[] = [];
  private held = new Replay();

  /** Takes the next chunk of the answer. @returns the chunks to store and send now */
  add(chunk: UIChunk): UIChunk[] {
    const { type, transient, preliminary, providerExecuted } = chunk;
    if (transient === true) return [];
    // The results of tools that the provider runs are parts of the model's answer.
    if (STORED.has(type) && preliminary !== true && providerExecuted !== true) return [...this.release(), chunk];
    if (type === UI_RESET) this.before = [...withoutReplaced(this.release()), chunk];
    else this.held.add(chunk);
    return [];
  }

  /** Returns the chunks that are held, and holds them no longer. */
  release(): UIChunk[] {
    const chunks = [...this.before, ...this.held.chunks];
    this.before = [];
    this.held = new Replay();
    return chunks;
  }
}

/** Removes what a reset removes. Tool calls stay, because results can belong to an earlier call with the same id. */
function withoutReplaced(chunks: readonly UIChunk[]): UIChunk[] {
  const start = chunks.findLastIndex(({ type }) => type === 'start-step');
  return chunks.filter(({ type }, index) => index <= start || !(PARTS.has(type) || blockKindOf(type)));
}
