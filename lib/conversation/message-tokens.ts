import QuickLRU from 'quick-lru';
import { InvalidInputError, SessionsConfigurationError } from '../common/sessions.error.js';
import { type ConversationMessage, type MessageDraft, type MessagePart } from '../ledger/message.js';
import { loadTokenCounter, type TokenCounter } from './token-counter.js';

/** The overhead of a message in tokens: its role, start and end. */
const PER_MESSAGE = 4;
/** The tokens of a file, about as many as an image of one megapixel has. They do not depend on its bytes or URL. */
const PER_FILE = 1000;
const FILES: readonly string[] = ['file', 'reasoning-file'];
/** Parts that a front end shows, and models do not receive. */
const UNSEEN = /^(source|data)-|^(source|step-start)$/;
/** The number of cached counts: 500 busy sessions of 200 messages, about 15 MB. */
const REMEMBERED = 100_000;

/**
 * Counts the tokens of messages: content, name, tool calls with their arguments, and tool results. A file counts 1,000.
 * Stored messages never change, so their counts are cached.
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
    const start = PER_MESSAGE + filesOf(message).length * PER_FILE;
    return textsOf(message).reduce((sum, text) => sum + checked(counter(text)), start);
  }
}

function textsOf({ content, name, toolCalls = [] }: MessageDraft): string[] {
  const calls = toolCalls.flatMap((call) => [call.name, toText(call.arguments)]);
  const parts = typeof content === 'string' ? [content] : (content ?? []).flatMap(textsOfPart);
  return [...parts, ...(name === undefined ? [] : [name]), ...calls].filter((text) => text !== '');
}

/**
 * Returns what a model receives of a part: its text, or the name, input and output of a tool call. Returns the JSON of
 * parts of other types.
 */
function textsOfPart(part: MessagePart): string[] {
  const { type, text } = part;
  if ((type === 'text' || type === 'reasoning') && typeof text === 'string') return [text];
  if (FILES.includes(type) || UNSEEN.test(type)) return [];
  if (type !== 'dynamic-tool' && !type.startsWith('tool-')) return [JSON.stringify(part)];
  const { toolName = type.slice('tool-'.length), input, rawInput, output, errorText } = part;
  return [toolName, input ?? rawInput, output, errorText].map(toText);
}

function toText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

function filesOf({ content }: MessageDraft): readonly MessagePart[] {
  return Array.isArray(content) ? (content as readonly MessagePart[]).filter(({ type }) => FILES.includes(type)) : [];
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
