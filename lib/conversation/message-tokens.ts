import { InvalidInputError, SessionsConfigurationError } from '../common/sessions.error.js';
import { type Message, type MessageDraft, type MessagePart } from '../ledger/message.js';
import { RecentCounts } from './recent-counts.js';
import { loadTokenCounter, type TokenCounter } from './token-counter.js';

/** What a message takes besides its text: its role, and where it begins and ends. */
const PER_MESSAGE = 4;
/** For 500 busy sessions of 200 messages; some 15 MB. */
const REMEMBERED = 100_000;

/**
 * Counts the tokens of messages: content, name, tool calls with their arguments, tool results. Messages of a log never change,
 * so the counts of the last ones are remembered.
 */
export class MessageTokens {
  private readonly counts = new RecentCounts(REMEMBERED / 2);

  /** @param counter default: the one that {@link load} loads */
  constructor(private counter: TokenCounter | null) {}

  /** Called before anything is counted. @throws SessionsConfigurationError when the default counter's package is missing */
  async load(wantedBy: string): Promise<void> {
    this.counter ??= await loadTokenCounter(wantedBy);
  }

  of(message: MessageDraft): number {
    const key = keyOf(message);
    return key === null ? this.count(message) : this.counts.get(key, () => this.count(message));
  }

  ofAll(messages: readonly MessageDraft[]): number {
    return messages.reduce((sum, message) => sum + this.of(message), 0);
  }

  private count(message: MessageDraft): number {
    const { counter } = this;
    if (!counter) throw new SessionsConfigurationError('The token counter was not loaded at start-up.');
    return PER_MESSAGE + textsOf(message).reduce((sum, text) => sum + checked(counter(text)), 0);
  }
}

function textsOf({ content, name, toolCalls = [] }: MessageDraft): string[] {
  const calls = toolCalls.flatMap((call) => [
    call.name,
    typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments),
  ]);
  const parts = typeof content === 'string' ? [content] : (content ?? []).map(textOf);
  return [...parts, ...(name === undefined ? [] : [name]), ...calls].filter((text) => text !== '');
}

/** Of a text its words; of anything else what it looks like in JSON. */
function textOf(part: MessagePart): string {
  return part.type === 'text' && typeof part.text === 'string' ? part.text : JSON.stringify(part);
}

/** Ids are unique in their session only: time and place tell messages of several apart. */
function keyOf(message: MessageDraft & Partial<Message>): string | null {
  const { id, position, createdAt, content } = message;
  if (id === undefined || position === undefined || createdAt === undefined) return null;
  return `${position} ${createdAt} ${content?.length} ${id}`;
}

function checked(count: unknown): number {
  if (typeof count === 'number' && Number.isFinite(count) && count >= 0) return count;
  throw new InvalidInputError('tokenCounter', 'must return a number of 0 or more.');
}
