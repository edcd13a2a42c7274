import { blockKindOf, type ChunkFields, isData } from './chunk-fields.js';
import { mergeMetadata } from './merge-metadata.js';
import { UI_RESET } from './message-fold.js';
import { type UIChunk } from './ui-message.js';

/**
 * Splits the stored chunks of a turn into the chunks of its responses. Each `finish` ends one: the answer waits for
 * the user, or is complete. The client shows all of them as one message.
 */
export function segmentsOf(chunks: readonly UIChunk[]): UIChunk[][] {
  const segments: UIChunk[][] = [];
  for (const [index, chunk] of chunks.entries()) {
    if (index === 0 || chunks[index - 1].type === 'finish') segments.push([]);
    segments[segments.length - 1].push(chunk);
  }
  return segments;
}

/**
 * Returns the shortest list of chunks that gives a new client the message of all stored chunks (AIS-14), so that later
 * chunks can follow. It merges deltas, and omits replaced parts, superseded states of tool calls, transient data and errors.
 * Another attempt may follow an error: the turn's status tells whether the turn has failed.
 */
export function replay(chunks: readonly UIChunk[]): UIChunk[] {
  const collected = new Replay();
  for (const [index, chunk] of chunks.entries()) collected.add(chunk, index === chunks.length - 1);
  return collected.chunks;
}

/** Collects chunks, and returns the shortest list with the same effect on a client. */
export class Replay {
  private start: UIChunk | undefined;
  private metadata: unknown;
  private list: ChunkFields[] = [];

  get chunks(): UIChunk[] {
    const metadata = this.metadata === undefined ? {} : { messageMetadata: this.metadata };
    if (this.start) return [{ ...this.start, ...metadata }, ...this.list];
    return this.metadata === undefined ? this.list : [{ type: 'message-metadata', ...metadata }, ...this.list];
  }

  /** @param isLast only a last `finish` is kept */
  add(given: UIChunk, isLast = false): void {
    const chunk = given as ChunkFields;
    switch (chunk.type) {
      case 'error':
      case 'abort':
        return;
      case 'start':
      case 'message-metadata':
        if (chunk.type === 'start') this.start ??= chunk;
        this.metadata = mergeMetadata(this.metadata, chunk.messageMetadata);
        return;
      case 'finish':
        if (isLast) this.list.push(chunk);
        else this.metadata = mergeMetadata(this.metadata, chunk.messageMetadata);
        return;
      case UI_RESET:
      case 'reset-step':
        return this.reset();
      case 'text-delta':
      case 'reasoning-delta':
        return this.addDelta(
          chunk,
          'delta',
          ({ type, id }) => blockKindOf(type) === blockKindOf(chunk.type) && id === chunk.id,
        );
      case 'tool-input-delta':
        return this.addDelta(chunk, 'inputTextDelta', ({ toolCallId }) => toolCallId === chunk.toolCallId);
      case 'tool-input-available':
      case 'tool-input-error':
        return this.addInput(chunk);
      case 'tool-output-available':
      case 'tool-output-error':
        return this.addOutput(chunk);
      default:
        if (!isData(chunk)) this.list.push(chunk);
        else if (chunk.transient !== true) this.addData(chunk);
    }
  }

  /** Appends a delta to the previous one of its block or call. */
  private addDelta(
    chunk: ChunkFields,
    field: 'delta' | 'inputTextDelta',
    isOfSame: (chunk: ChunkFields) => boolean,
  ): void {
    const index = this.list.findLastIndex(isOfSame);
    const previous = this.list[index];
    if (previous?.type !== chunk.type) this.list.push(chunk);
    else this.list[index] = { ...previous, ...chunk, [field]: previous[field] + chunk[field] };
  }

  /** Adds the whole input of a call in place of its beginning. */
  private addInput(chunk: ChunkFields): void {
    const isOfCall = ({ type, toolCallId }: ChunkFields) => toolCallId === chunk.toolCallId && isInput(type);
    const begun = this.list.slice(this.stepStart).filter(isOfCall);
    const [start] = begun;
    this.list = this.list.filter((other) => other === start || !begun.includes(other));
    // A failed call has other fields than its start.
    if (start === undefined || chunk.type === 'tool-input-error') {
      this.list.push(chunk);
      return;
    }
    const { inputEncoding: _, ...kept } = start;
    this.list[this.list.indexOf(start)] = { ...kept, ...chunk };
  }

  /** Adds an output in place of an earlier one of the same call. */
  private addOutput(chunk: ChunkFields): void {
    const index = this.list.findLastIndex(({ toolCallId }) => toolCallId === chunk.toolCallId);
    const previous = this.list[index];
    if (previous === undefined || !isOutput(previous.type)) {
      this.list.push(chunk);
      return;
    }
    const { output: _output, errorText: _errorText, preliminary: _preliminary, ...kept } = previous;
    this.list.splice(index, 1);
    this.list.push({ ...kept, ...chunk });
  }

  private addData(chunk: ChunkFields): void {
    const index = this.list.findLastIndex(({ type, id }) => type === chunk.type && id !== undefined && id === chunk.id);
    const previous = this.list[index];
    if (previous === undefined) this.list.push(chunk);
    else this.list[index] = { ...previous, data: chunk.data };
  }

  /** Removes the chunks of the current step, except those that change parts of earlier steps. */
  private reset(): void {
    const removed = this.list.splice(this.stepStart);
    const calls = new Set<string>();
    const approvals = new Set<string>();
    for (const other of removed) {
      const { type, toolCallId, approvalId } = other;
      if (isInput(type)) calls.add(toolCallId);
      if (type === 'tool-approval-request' && calls.has(toolCallId)) approvals.add(approvalId);
      const isOfEarlierCall =
        type === 'tool-approval-response'
          ? !approvals.has(approvalId)
          : toolCallId !== undefined && !calls.has(toolCallId);
      if (isOfEarlierCall) this.list.push(other);
    }
  }

  private get stepStart(): number {
    return this.list.findLastIndex(({ type }) => type === 'start-step') + 1;
  }
}

function isInput(type: string): boolean {
  return type.startsWith('tool-input-');
}

function isOutput(type: string): boolean {
  return type === 'tool-output-available' || type === 'tool-output-error';
}
