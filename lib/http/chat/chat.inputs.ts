import { Allow } from 'class-validator';
import { checkInput, Must, MustBeInteger, MustBeName, Optional } from '../../common/check-input.js';
import { sha256 } from '../../common/digests.js';
import { isFields, toJson } from '../../common/json.js';
import { InvalidInputError } from '../../common/sessions.error.js';
import { type AnyUIMessage, type UIPart } from '../../chat/ui-message.js';
import { fromUIMessage } from '../../chat/stored-messages.js';
import { type TurnInput } from '../../ledger/turn.js';
import { assertPlain } from '../controllers/http-request.js';
import { toUserPart } from '../controllers/user-parts.js';
import { httpMessages } from '../http.messages.js';

const MAX_PAGE = 200;
/** The maximum number of parts of a message. An answer of 1,000 steps has about 5,000. */
const MAX_PARTS = 10_000;
const MAX_MESSAGE_ID = 200;
const MESSAGE_ID_RULE = `must be a string of 1 to ${MAX_MESSAGE_ID} characters.`;
const TRIGGERS = ['submit-message', 'regenerate-message'] as const;

/** The request of a chat front end, without the earlier messages. */
export class ChatRequest {
  /** The chat. Optional if the URL names it. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be a string.')
  id?: string;

  /** The last of the front end's messages, or the answer to which the user has added approvals or outputs of tools. */
  @Allow()
  message!: AnyUIMessage;

  /** Whether the message is new or an earlier answer is generated again. Default: `submit-message`. */
  @Optional()
  @Must((value) => TRIGGERS.includes(value as ChatRequest['trigger']), `must be one of ${TRIGGERS.join(', ')}.`)
  trigger!: (typeof TRIGGERS)[number];

  /** The message to edit or to answer again, or the answer with approvals or outputs of tools. Default: none. */
  @Optional()
  @Must(isMessageId, MESSAGE_ID_RULE)
  messageId?: string;

  /** The orchestrator that answers. Default: the only one that clients may use. */
  @Optional()
  @MustBeName()
  orchestrator?: string;
}

/** Selects the turn of a chat to stop. */
export class StopChatRequest {
  /** The message of the user, or the answer. Default: the current answer. */
  @Optional()
  @Must(isMessageId, MESSAGE_ID_RULE)
  messageId?: string;
}

/** Selects a page of the messages of a chat. */
export class ChatMessagesQuery {
  /** The `before` of the page of later messages. Default: the latest page. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be the `before` of an earlier response, unchanged.')
  before?: string;

  /** Maximum number of turns per page. Default 50. */
  @Optional()
  @MustBeInteger(1, MAX_PAGE)
  limit?: number;
}

/** Selects a page of the user's chats. */
export class ListChatsQuery {
  /** The `nextCursor` of the previous page. Default: the first page. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be the `nextCursor` of an earlier response, unchanged.')
  cursor?: string;

  /** Maximum number of chats per page. Default 50. */
  @Optional()
  @MustBeInteger(1, MAX_PAGE)
  limit?: number;
}

/** Selects the chunks of a response. */
export class ChatStreamQuery {
  /**
   * The number of chunks that the client has received of the response. Negative: the client counts from the end, and gets
   * the response from its start. Default: replays the answer from its start.
   */
  @Optional()
  @MustBeInteger(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
  startIndex?: number;
}

/**
 * Reads what `DefaultChatTransport` and `WorkflowChatTransport` send: `messages`, of which only one counts, or that one
 * as `message`. Fields that an application adds for itself are ignored.
 * @throws InvalidInputError
 */
export function toChatRequest(body: unknown): ChatRequest {
  if (!isFields(body)) throw new InvalidInputError('body', 'must be a JSON object.');
  const { id, messages, trigger, messageId, orchestrator } = body;
  const [path, message] = Array.isArray(messages)
    ? sentMessage(messages, trigger, messageId)
    : ['body.message', body.message];
  if (message === undefined) throw new InvalidInputError('body', httpMessages.noMessage());
  assertPlain(message, 0);
  const given = { id, trigger, messageId, orchestrator };
  const present = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return checkInput(ChatRequest, { trigger: 'submit-message', ...present, message: toMessage(message, path) }, 'body');
}

/**
 * Reads what to stop. Other fields of the body are ignored: applications that follow the documentation of the AI SDK
 * send the answer so far.
 * @param body default: the request has none
 * @throws InvalidInputError
 */
export function toStopRequest(body: unknown = {}): StopChatRequest {
  if (!isFields(body)) throw new InvalidInputError('body', 'must be a JSON object.');
  const { messageId } = body;
  return checkInput(StopChatRequest, messageId === undefined ? {} : { messageId }, 'body');
}

/** Returns the idempotency key of a request: a front end that sends it again gets the same turn (AIS-11). */
export function requestKeyOf({ trigger, messageId, message }: ChatRequest, replacedId: string | undefined): string {
  return `chat:${sha256(JSON.stringify([trigger, messageId, message.id, message.parts, replacedId]))}`;
}

/** Returns the message of the user as input of a turn. */
export function toTurnInput(message: AnyUIMessage): TurnInput {
  const { content, metadata } = fromUIMessage(message);
  const text = message.parts.flatMap((part) => (part.type === 'text' ? [part.text as string] : [])).join('\n');
  return { text, ...(Array.isArray(content) ? { content } : {}), metadata };
}

/**
 * Returns the path and the value of the message that counts: the last one, or the answer that `messageId` names. The
 * user may have sent messages after the answer that asked for an approval (AIS-38).
 */
function sentMessage(messages: readonly unknown[], trigger: unknown, messageId: unknown): [string, unknown] {
  const isAnswer = (message: unknown): boolean =>
    isFields(message) && message.role === 'assistant' && message.id === messageId;
  const mayBeAnswer = messageId !== undefined && trigger !== 'regenerate-message';
  const answer = mayBeAnswer ? messages.findLastIndex(isAnswer) : -1;
  const index = answer === -1 ? messages.length - 1 : answer;
  return [`body.messages[${index}]`, messages[index]];
}

function toMessage(given: unknown, path: string): AnyUIMessage {
  if (!isFields(given)) throw new InvalidInputError(path, 'must be a message with id, role and parts.');
  const { id, role, parts, metadata } = given;
  if (!isMessageId(id)) {
    throw new InvalidInputError(`${path}.id`, MESSAGE_ID_RULE);
  }
  if (role !== 'user' && role !== 'assistant')
    throw new InvalidInputError(`${path}.role`, 'must be user or assistant.');
  if (!Array.isArray(parts) || parts.length === 0) {
    throw new InvalidInputError(`${path}.parts`, 'must be an array with at least one part.');
  }
  if (parts.length > MAX_PARTS) throw new InvalidInputError(`${path}.parts`, `must have at most ${MAX_PARTS} parts.`);
  const checked = parts.map((part, index) => {
    const at = `${path}.parts[${index}]`;
    if (!isFields(part) || typeof part.type !== 'string') throw new InvalidInputError(at, 'must have a type.');
    return role === 'user' ? toChatPart(part as UIPart, at) : (part as UIPart);
  });
  if (role === 'user' && !checked.some(isContent)) {
    throw new InvalidInputError(`${path}.parts`, 'must contain text or a file.');
  }
  const own = metadata === undefined ? {} : { metadata: toJson(metadata, `${path}.metadata`) };
  return { id, role, ...own, parts: checked };
}

/** Returns whether a part of the user reaches a model: data parts are for front ends. */
function isContent({ type, text }: UIPart): boolean {
  return type === 'file' || (type === 'text' && (text as string).trim() !== '');
}

/** @throws InvalidInputError also for a part of another type */
function toChatPart(part: UIPart, path: string): UIPart {
  const own = toUserPart(part, path);
  if (own) return own;
  throw new InvalidInputError(`${path}.type`, 'must be text, file or data-*, because the message is of a user.');
}

function isMessageId(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= MAX_MESSAGE_ID;
}
