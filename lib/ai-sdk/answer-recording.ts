import { isDeepStrictEqual } from 'node:util';
import { type ModelOutputPart } from './language-model.js';

/** Parts that are not stored: raw copies of the provider's chunks, and keep-alive parts. */
const UNRECORDED: readonly string[] = ['raw', 'ping'];
/**
 * The maximum length of a merged delta. As a turn event, it is then below the limit of 65,536 bytes even if each
 * character is escaped.
 */
const MAX_DELTA = 8192;

/** Records a streamed answer, and holds the parts that must not be seen before the answer is stored. */
export class AnswerRecording {
  /** The answer so far, with the consecutive deltas of a block merged. */
  readonly parts: ModelOutputPart[] = [];
  /** The parts that are held, in their order. */
  readonly held: ModelOutputPart[] = [];
  /** A lower bound of the size of {@link parts} as JSON, in bytes. */
  leastBytes = 0;
  /** True if the answer has ended and was not interrupted. */
  isComplete = false;

  /** @returns true if the part may be seen at once */
  add(part: ModelOutputPart): boolean {
    if (!UNRECORDED.includes(part.type)) this.record(part);
    if (part.type === 'finish') this.isComplete = !isInterrupted(part.finishReason);
    if (this.held.length === 0 && !isFinal(part)) return true;
    this.held.push(part);
    return false;
  }

  private record(part: ModelOutputPart): void {
    this.leastBytes += leastBytesOf(part);
    const merged = merge(this.parts.at(-1), part);
    if (merged) this.parts[this.parts.length - 1] = merged;
    else this.parts.push(part);
  }
}

/**
 * Returns true for parts after which an answer cannot be replaced by another one: calls of the application's tools,
 * requests for approval, and the end. Tools that the provider executes have no effect here.
 */
function isFinal({ type, providerExecuted }: ModelOutputPart): boolean {
  if (type === 'tool-input-start' || type === 'tool-call') return providerExecuted !== true;
  return type === 'tool-approval-request' || type === 'finish';
}

/** Counts the content only: each character needs at least one byte. */
function leastBytesOf(part: ModelOutputPart): number {
  const { delta, data } = part as ModelOutputPart & { readonly data?: unknown };
  if (typeof delta === 'string') return delta.length;
  return typeof data === 'string' || data instanceof Uint8Array ? data.length : 1;
}

/** @returns `undefined` if the parts are not deltas of the same block with the same metadata, or too long together */
function merge(last: ModelOutputPart | undefined, part: ModelOutputPart): ModelOutputPart | undefined {
  const { delta: before, ...block } = last ?? {};
  const { delta, ...rest } = part;
  if (typeof before !== 'string' || typeof delta !== 'string' || before.length + delta.length > MAX_DELTA) return;
  return isDeepStrictEqual(block, rest) ? { ...part, delta: before + delta } : undefined;
}

/** In specification version 4, a provider reports a broken connection as the finish reason `interrupted`. */
function isInterrupted(reason: unknown): boolean {
  return typeof reason === 'object' && reason !== null && (reason as { unified?: unknown }).unified === 'interrupted';
}
