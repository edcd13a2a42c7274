import { type JsonObject } from '../../common/json.js';
import { type ConversationMessage, type MessagePart } from '../../ledger/message.js';
import { type Turn } from '../../ledger/turn.js';
import { type TranscriptMessage, type TranscriptTurn } from '../../orchestrator/transcript-turn.js';
import { type TurnView } from './turn-view.js';

/** A page of a conversation, in its order. It can be empty: earlier turns follow while it has `before`. */
export interface ConversationPage {
  readonly turns: readonly ConversationTurn[];
  /** The value of `before` for the page of earlier turns; absent on the first page. */
  readonly before?: string;
}

/**
 * A turn with its messages. A deleted turn has only its id and messages. Messages that no turn wrote are listed without any
 * field of a turn.
 */
export interface ConversationTurn extends Partial<TurnView> {
  /** Includes the user's message even if the turn is open or did not succeed. Empty if all messages are of tools. */
  readonly messages: readonly MessageView[];
}

/** A message as its user sees it. */
export interface MessageView extends Pick<ConversationMessage, 'id'> {
  readonly role: 'user' | 'assistant';
  readonly content: string | readonly MessagePart[];
  /** Absent on messages of the assistant. */
  readonly metadata?: JsonObject;
  /** Time when the message was stored, ISO-8601. Absent while it is only the input of its turn. */
  readonly createdAt?: string;
}

/** The types of parts that users see, in the formats of the AI SDK and of providers. */
const SHOWN_PARTS: ReadonlySet<string> = new Set([
  ...['text', 'input_text', 'output_text', 'refusal'],
  ...['image', 'image_url', 'input_image', 'file', 'input_file', 'document', 'audio', 'input_audio', 'video'],
  ...['source', 'source-url', 'source-document'],
]);

/**
 * Shows text, files and sources. Other parts, such as calls and results of tools, reasoning and data, may not be meant for the user
 * (DAY-21).
 */
export function conversationTurns(
  turns: readonly TranscriptTurn[],
  viewOf: (turn: Turn) => TurnView,
): readonly ConversationTurn[] {
  return turns.flatMap(({ id, turn, messages }) => {
    const shown = messages.flatMap(toMessageView);
    if (turn) return [{ ...viewOf(turn), messages: shown }];
    return shown.length > 0 ? [{ ...(id === undefined ? {} : { id }), messages: shown }] : [];
  });
}

function toMessageView({ id, role, content: given, metadata, createdAt }: TranscriptMessage): MessageView[] {
  if (role !== 'user' && role !== 'assistant') return [];
  const content = typeof given === 'string' ? given : (given ?? []).flatMap(toShownPart);
  if (content.length === 0) return [];
  return [
    {
      id,
      role,
      content,
      ...(role === 'assistant' || metadata === undefined ? {} : { metadata }),
      ...(createdAt === undefined ? {} : { createdAt }),
    },
  ];
}

function toShownPart(part: MessagePart): MessagePart[] {
  if (!SHOWN_PARTS.has(part.type)) return [];
  const { providerMetadata: _, ...shown } = part;
  return [shown];
}
