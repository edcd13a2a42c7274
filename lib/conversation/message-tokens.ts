import QuickLRU from 'quick-lru';
import { isPlainObject } from '../common/json.js';
import { InvalidInputError, SessionsConfigurationError } from '../common/sessions.error.js';
import { type ConversationMessage, type MessageDraft, type MessagePart } from '../ledger/message.js';
import { loadTokenCounter, type TokenCounter } from './token-counter.js';

/** The overhead of a message in tokens: its role, start and end. */
const PER_MESSAGE = 4;
/** The tokens of a file, about as many as an image of one megapixel has. They do not depend on its bytes or URL. */
const PER_FILE = 1000;
/** The types of parts that are files, in the formats of the AI SDK and of providers. */
const FILES =
  /^(file|image|audio|video|media|document|reasoning-file|image_url|input_(file|image|audio)|(file|image)-.+)$/;
/** The fields of files inside of a tool's result. Other JSON may have the same types. */
const FILE_FIELDS = ['data', 'image', 'mediaType', 'mimeType', 'image_url', 'input_audio', 'file_data'];
/** Parts that a front end shows, and models do not receive. */
const UNSEEN = /^(source|data)-|^(source|step-start)$/;
/** The length of a run without white space above which its count is an estimate: a tokenizer takes seconds for a megabyte. */
const MAX_RUN = 10_000;
/** The number of characters from which the count of a longer run is estimated. */
const SAMPLE = 1000;
/** The number of cached counts: 500 busy sessions of 200 messages, about 15 MB. */
const REMEMBERED = 100_000;

/**
 * Counts the tokens of messages: content, name, tool calls with their arguments, and tool results. A file counts 1,000.
 * The count of a long run without white space, such as base64 in a text, is estimated by its length. Stored messages never
 * change, so their counts are cached.
 */
export class MessageTokens {
  private readonly counts = new QuickLRU<string, number>({ maxSize: REMEMBERED / 2 });

  /** @param counter default: the counter that {@link load} loads */
  constructor(private counter: TokenCounter | null) {}

  /**
   * Loads the default counter, before the first count.
   * @throws SessionsConfigurationError if its package is missing
   */
  async load(wantedBy: string): Promise<void> {
    this.counter ??= await loadTokenCounter(wantedBy);
  }

  of(message: MessageDraft): number {
    const key = keyOf(message);
    if (key === null) return this.count(message);
    const known = this.counts.get(key);
    if (known !== undefined) return known;
    const count = this.count(message);
    this.counts.set(key, count);
    return count;
  }

  ofAll(messages: readonly MessageDraft[]): number {
    return messages.reduce((sum, message) => sum + this.of(message), 0);
  }

  private count(message: MessageDraft): number {
    const { counter } = this;
    if (!counter) throw new SessionsConfigurationError('The token counter must be loaded when the application starts.');
    const { texts, files } = new MessageContents(message);
    const start = PER_MESSAGE + files * PER_FILE;
    return texts.reduce((sum, text) => sum + countOf(text, counter), start);
  }
}

/** The strings that a model receives of a message, and the number of files. */
class MessageContents {
  readonly texts: string[] = [];
  files = 0;

  constructor({ content, name, toolCalls = [] }: MessageDraft) {
    if (typeof content === 'string') this.add(content);
    else for (const part of content ?? []) this.addPart(part);
    this.add(name);
    for (const call of toolCalls) for (const value of [call.name, call.arguments]) this.add(value);
  }

  /** Adds what a model receives of a part: its text, or the name, input and output of a tool call. Otherwise its JSON. */
  private addPart(part: MessagePart): void {
    const { type, text } = part;
    if ((type === 'text' || type === 'reasoning') && typeof text === 'string') this.add(text);
    else if (FILES.test(type)) this.files += 1;
    else if (UNSEEN.test(type)) return;
    else if (type !== 'dynamic-tool' && !type.startsWith('tool-')) this.add(part);
    else {
      const { toolName = type.slice('tool-'.length), input, rawInput, output, errorText } = part;
      for (const value of [toolName, input ?? rawInput, output, errorText]) this.add(value);
    }
  }

  /** Adds a string, or the JSON of another value without the files in it. */
  private add(value: unknown): void {
    const text =
      typeof value === 'string' ? value : JSON.stringify(value, (_, field: unknown) => this.withoutFile(field));
    if (text) this.texts.push(text);
  }

  private withoutFile(value: unknown): unknown {
    if (!isFile(value)) return value;
    this.files += 1;
    return undefined;
  }
}

/** Returns whether a value inside of a part is a file, or bytes as `encode` stores them. */
function isFile(value: unknown): boolean {
  if (!isPlainObject(value)) return false;
  const { $type, type, source } = value;
  if (typeof type !== 'string' || !FILES.test(type)) return $type === 'bytes';
  const isOfSdk = type === 'media' || type.includes('-');
  return isOfSdk || isPlainObject(source) || FILE_FIELDS.some((field) => Object.hasOwn(value, field));
}

function countOf(text: string, counter: TokenCounter): number {
  if (text.length <= MAX_RUN) return checked(counter(text));
  let estimated = 0;
  const rest = text.replace(/\S+/g, (run) => {
    if (run.length <= MAX_RUN) return run;
    estimated += Math.ceil((checked(counter(run.slice(0, SAMPLE))) * run.length) / SAMPLE);
    return '';
  });
  return checked(counter(rest)) + estimated;
}

/** Returns the cache key. Ids are unique only within a session, so time and position are part of it. */
function keyOf(message: MessageDraft & Partial<ConversationMessage>): string | null {
  const { id, position, createdAt, content } = message;
  if (id === undefined || position === undefined || createdAt === undefined) return null;
  return `${position} ${createdAt} ${content?.length} ${id}`;
}

function checked(count: unknown): number {
  if (typeof count === 'number' && Number.isFinite(count) && count >= 0) return count;
  throw new InvalidInputError('tokenCounter', 'must return a number of 0 or more.');
}
