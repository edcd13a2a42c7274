import { type MessageDraft } from '../ledger/message.js';
import { type EmittedEvent, type TurnEvent } from '../ledger/turn-event.js';
import { ChunkFilter } from './chunk-filter.js';
import { chunksOfIteration, toIterationEvent, toUIEvents } from './ui-events.js';
import { type AnyUIMessage, type UIChunk } from './ui-message.js';
import { parallelAnswers } from './chat.errors.js';
import { textChunks } from './response-chunks.js';
import { cutAnswer } from './stopped-message.js';

/** The members of a turn that the stream uses. */
export interface UITurn {
  readonly id: string;
  readonly iteration: number;
  /** See `emit` of TurnContext. */
  readonly emit: (event: EmittedEvent) => Promise<void>;
  /** See `emitted` of TurnContext. */
  readonly emitted: () => Promise<readonly TurnEvent[]>;
}

/** The stream of a handler. */
interface OpenStream {
  readonly turn: UITurn;
  readonly stream: Promise<UIStream>;
}

/** The latest stream of each attempt. The attempt's handlers share its `emit`. */
const streams = new WeakMap<UITurn['emit'], OpenStream>();

/**
 * Returns the stream that the chat controller sends to clients (AIS-14). All calls of a handler, and of its tools, get
 * the same stream.
 * @throws HandlerError (`PARALLEL_ANSWERS`), StoreUnavailableError
 */
export async function uiStream(turn: UITurn): Promise<UIStream> {
  const open = streams.get(turn.emit);
  if (open?.turn === turn) return open.stream;
  if (open?.turn.iteration === turn.iteration) throw parallelAnswers();
  const stream = UIStream.open(turn);
  streams.set(turn.emit, { turn, stream });
  return stream;
}

/**
 * Streams the reply of a handler after the chunks of its turn, unless the handler has ended them with `finish`. Does
 * nothing if the turn has no chunks: clients then receive the reply when the turn ends.
 * @returns the message that stores the answer as clients have it, if the handler did not write `finish`
 * @throws AnswerError (`FINISHED_STEP_CHANGED`), StoreUnavailableError
 */
export async function streamReplyText(turn: UITurn, text: string): Promise<MessageDraft | undefined> {
  const open = streams.get(turn.emit);
  const isOfParallelHandler = open?.turn !== turn && open?.turn.iteration === turn.iteration;
  if (!open || isOfParallelHandler || (await open.stream).isEmpty) return undefined;
  return (await uiStream(turn)).end(text);
}

/**
 * Writes the answer of a handler as chunks of the UI message stream. Each attempt writes the whole answer; only what
 * goes beyond the chunks of earlier attempts is stored and sent. With `iterate`, the answers of the iterations follow
 * each other in one message.
 */
export class UIStream {
  /** The type of the latest chunk of this attempt. */
  private latest: string | undefined;
  /** True if this attempt has started a step and not finished it. */
  private isInStep = false;

  private constructor(
    private readonly turn: UITurn,
    private readonly filter: ChunkFilter,
  ) {}

  /** @internal */
  static async open(turn: UITurn): Promise<UIStream> {
    const written = chunksOfIteration(await turn.emitted(), turn.iteration);
    if (!written) await turn.emit(toIterationEvent(turn.iteration));
    return new UIStream(turn, new ChunkFilter(written ?? []));
  }

  /** The message that clients have, without the parts of other iterations. */
  get message(): AnyUIMessage {
    return this.filter.message;
  }

  /** True if clients have no chunk. @internal */
  get isEmpty(): boolean {
    return this.message.id === '';
  }

  /**
   * Writes the next chunk, as `JSON.stringify` writes it: dates become strings. The id of the message is the turn's:
   * a `start` with this id is written before any other chunk.
   * Resolves at once, unless the store is slower than the handler.
   * @throws AnswerError (`FINISHED_STEP_CHANGED`)
   */
  async write(chunk: UIChunk): Promise<void> {
    const isFirst = this.latest === undefined && chunk.type !== 'start';
    await Promise.all([...(isFirst ? [{ type: 'start' }] : []), chunk].map((each) => this.writeNext(each)));
  }

  /** See {@link streamReplyText}. @internal */
  async end(text: string): Promise<MessageDraft | undefined> {
    if (this.latest === 'finish') return undefined;
    const { isInStep } = this;
    const shown = this.message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    // In a step that is open, the reply must not begin another one: if a later attempt has a different answer, it can
    // replace only the last step.
    const chunks = isInStep ? textChunks(text).slice(1, -1) : textChunks(text);
    if (!shown.includes(text)) for (const chunk of chunks) await this.write(chunk);
    return cutAnswer(this.message, !isInStep);
  }

  private async writeNext(chunk: UIChunk): Promise<void> {
    this.latest = chunk.type;
    if (chunk.type === 'start-step') this.isInStep = true;
    if (chunk.type === 'finish-step') this.isInStep = false;
    const own = chunk.type === 'start' ? { ...chunk, messageId: this.turn.id } : chunk;
    const chunks = this.filter.write(JSON.parse(JSON.stringify(own)) as UIChunk);
    // All are emitted at once, so that those of a concurrent call do not come between them.
    await Promise.all(chunks.flatMap(toUIEvents).map((event) => this.turn.emit(event)));
  }
}
