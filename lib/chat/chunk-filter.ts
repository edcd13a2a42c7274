import { isDeepStrictEqual } from 'node:util';
import { toJsonObject } from '../common/json.js';
import { finishedStepChanged } from './chat.errors.js';
import { blockKindOf, type ChunkFields, isData, type PartFields } from './chunk-fields.js';
import { newsOf } from './chunk-news.js';
import { mergeMetadata } from './merge-metadata.js';
import { MessageFold, UI_RESET } from './message-fold.js';
import { type AnyUIMessage, type UIChunk, type UIPart } from './ui-message.js';

/**
 * Filters the chunks of an attempt: it returns only those that clients do not have from earlier attempts of the turn
 * (AIS-14). Each attempt writes the whole answer from its `start`, with the same steps, and with the same `finish` and
 * `start` around each wait. No block of text or reasoning may be open at a `finish`.
 *
 * Chunks are compared with the message that clients have: text and reasoning by their number within the step, tool
 * calls by id and state, other parts by type and number. The order of parallel tools and the size of deltas do not
 * matter. If the last step differs, `ui-reset` removes its parts, and this attempt's version follows. If an earlier step
 * differs, the attempt fails.
 *
 * Data, metadata and tool results cause no reset, because clients can replace them; data without an id is written once.
 * In earlier steps, data and metadata are not compared. Those that still differ are written at the end of the last step.
 */
export class ChunkFilter {
  /** The message that clients have, with block ids of this module. */
  private readonly shown = new MessageFold();
  /** The message of this attempt, with block ids of the provider. */
  private readonly own = new MessageFold();
  private readonly shownCounts = new Counts();
  private readonly ownCounts = new Counts();
  /** The ids of shown blocks, by the index of their part. */
  private readonly shownIds = new Map<number, string>();
  /** The ids under which this attempt's blocks are shown, by their kind and own id. */
  private readonly ids = new Map<string, string | undefined>();
  /** The chunks of this attempt's current step. A reset sends them again. */
  private step: ChunkFields[] = [];

  /** @param shown all chunks that earlier attempts of the turn have stored, in order */
  constructor(shown: readonly UIChunk[]) {
    for (const chunk of shown) this.show(chunk);
  }

  /** The message that clients have after all chunks that were stored or returned. */
  get message(): AnyUIMessage {
    return this.shown.message;
  }

  /**
   * Takes the next chunk of this attempt.
   * @returns the chunks to store and send now
   * @throws AnswerError (`FINISHED_STEP_CHANGED`); StateSerializationError if the chunk is not JSON
   */
  write(given: UIChunk): UIChunk[] {
    const chunk = toJsonObject(given, 'chunk') as unknown as ChunkFields;
    const changes = this.changesBefore(chunk);
    const part = this.own.add(chunk);
    return [...changes, ...(part ? this.writePart(chunk, part) : this.writeOther(chunk))];
  }

  private writePart(chunk: ChunkFields, part: PartFields): UIChunk[] {
    this.step.push(chunk);
    const news = this.newsOf(chunk, part);
    return news === undefined ? this.replaceStep(part) : this.sendOwn(news);
  }

  private writeOther(chunk: ChunkFields): UIChunk[] {
    switch (chunk.type) {
      case 'start-step':
        this.step = [];
        return this.once(chunk);
      case 'finish-step':
        this.step.push(chunk);
        return this.once(chunk);
      case 'reset-step':
        // Clients keep the parts until this attempt writes other ones.
        this.step = [];
        return [];
      case 'message-metadata':
        return !this.isBehind && this.changesMetadata(chunk.messageMetadata) ? this.send(chunk) : [];
      case 'start':
      case 'finish':
        return this.once(chunk);
      case 'error':
      case 'abort':
        return this.send(chunk);
      default:
        return chunk.transient === true ? this.once(chunk) : [];
    }
  }

  /** Returns what clients do not have of a chunk; `undefined` if they have something else instead. */
  private newsOf(chunk: ChunkFields, part: PartFields): ChunkFields[] | undefined {
    const known = this.shown.counterpart(part, this.own);
    if (isData(part)) return !this.isBehind && isUpdate(part, known) ? [chunk] : [];
    if (known === undefined) return this.isInEarlierStep ? undefined : [chunk];
    if (isBlockStart(chunk)) this.ids.set(keyOfBlock(chunk), this.shownIds.get(this.shown.parts.indexOf(known)));
    return newsOf(chunk, part, known);
  }

  /** Completes the current step before a chunk that ends it. */
  private changesBefore(chunk: UIChunk): UIChunk[] {
    const isEnd = chunk.type === 'start-step' || (chunk.type === 'finish' && !this.isRepeated('finish'));
    if (!isEnd) return [];
    // The answer of this attempt has fewer steps.
    if (chunk.type === 'finish' && this.isInEarlierStep) throw this.changed({ type: 'step-start' });
    const parts = this.shown.partsOfStep(this.ownCounts.of('start-step'));
    const missing = parts.find((part) => !isData(part) && !this.own.counterpart(part, this.shown));
    const replaced = missing ? this.replaceStep(missing) : [];
    return this.isBehind ? replaced : [...replaced, ...this.send(...this.updates())];
  }

  /** Returns the data and metadata of which clients have another version, or none. */
  private updates(): UIChunk[] {
    const data = this.own.parts.filter(
      (part) => isData(part) && isUpdate(part, this.shown.counterpart(part, this.own)),
    );
    const { metadata: messageMetadata } = this.own.message;
    return this.changesMetadata(messageMetadata) ? [...data, { type: 'message-metadata', messageMetadata }] : data;
  }

  private changesMetadata(change: unknown): boolean {
    const { metadata } = this.shown.message;
    return !isDeepStrictEqual(mergeMetadata(metadata, change), metadata);
  }

  /** Replaces the shown parts of the current step. @param reason a part that differs or is missing */
  private replaceStep(reason: UIPart): UIChunk[] {
    if (this.isBehind) throw this.changed(reason);
    return [...this.send({ type: UI_RESET }), ...this.sendOwn(this.step)];
  }

  private changed({ type }: UIPart): Error {
    return finishedStepChanged(this.ownCounts.of('start-step'), type);
  }

  /** Sends a chunk if clients have fewer of its type. */
  private once(chunk: UIChunk): UIChunk[] {
    const isRepeated = this.isRepeated(keyOfCount(chunk));
    this.ownCounts.add(keyOfCount(chunk));
    return isRepeated ? [] : this.send(chunk);
  }

  private isRepeated(key: string): boolean {
    return this.ownCounts.of(key) < this.shownCounts.of(key);
  }

  /** True if clients have a later step. */
  private get isInEarlierStep(): boolean {
    return this.isRepeated('start-step');
  }

  /** True if clients have a later step or a later response, so that shown parts can no longer be replaced. */
  private get isBehind(): boolean {
    return this.isInEarlierStep || this.isRepeated('finish');
  }

  /** Sends chunks of this attempt with the block ids of this module. */
  private sendOwn(chunks: readonly ChunkFields[]): UIChunk[] {
    return chunks.flatMap((chunk) => {
      if (blockKindOf(chunk.type) === undefined) return this.send(chunk);
      const key = keyOfBlock(chunk);
      if (isBlockStart(chunk)) this.ids.set(key, this.newBlockId(chunk));
      return this.send({ ...chunk, id: this.ids.get(key) });
    });
  }

  private newBlockId({ type }: UIChunk): string {
    return `${blockKindOf(type)}-${this.shownCounts.of(type) + 1}`;
  }

  private send(...chunks: UIChunk[]): UIChunk[] {
    for (const chunk of chunks) this.show(chunk);
    return chunks;
  }

  private show(chunk: UIChunk): void {
    this.shown.add(chunk);
    this.shownCounts.add(keyOfCount(chunk));
    if (isBlockStart(chunk)) this.shownIds.set(this.shown.parts.length - 1, chunk.id as string);
    // The replaced step has not ended.
    if (chunk.type === UI_RESET) this.shownCounts.set('finish-step', this.shownCounts.of('start-step') - 1);
  }
}

/** Counts chunks by their type. */
class Counts {
  private readonly counts = new Map<string, number>();

  of(key: string): number {
    return this.counts.get(key) ?? 0;
  }

  add(key: string): void {
    this.set(key, this.of(key) + 1);
  }

  set(key: string, count: number): void {
    this.counts.set(key, count);
  }
}

function keyOfCount({ type, transient }: UIChunk): string {
  return transient === true ? `transient ${type}` : type;
}

function keyOfBlock({ type, id }: ChunkFields): string {
  return `${blockKindOf(type)} ${id}`;
}

function isBlockStart({ type }: UIChunk): boolean {
  return blockKindOf(type) !== undefined && type.endsWith('-start');
}

function isUpdate(part: PartFields, known: PartFields | undefined): boolean {
  return known === undefined || (part.id !== undefined && !isDeepStrictEqual(part.data, known.data));
}
