import { Allow } from 'class-validator';
import { Must, MustBeInteger, MustBeName, Optional } from '../../common/check-input.js';
import { InvalidInputError } from '../../common/sessions.error.js';
import { type MessagePart } from '../../ledger/message.js';
import { MustBeStatuses, MustBeWhenBusy, toTurnInput } from '../../turn/turn.inputs.js';
import { toUserPart } from '../controllers/user-parts.js';
import { type TurnInput, type TurnStatus, type WhenBusy } from '../../ledger/turn.js';

const MAX_PAGE = 200;
/** Keys of metadata under which this package stores its own fields of a message. */
const RESERVED_KEYS = ['modelMessage', 'ui'];
/** The types of other parts that a user may send: in the formats of providers, and the result of a client's tool. */
const OTHER_PARTS: readonly string[] = [
  ...['input_text', 'image', 'image_url', 'input_image', 'input_file', 'document'],
  ...['audio', 'input_audio', 'video', 'tool-result'],
];
const TYPE_RULE = `must be text, file, data-*, ${OTHER_PARTS.join(', ')}.`;

/** The body of a new turn: a TurnInput with options. */
export class SubmitTurnBody implements TurnInput {
  @Allow()
  text!: TurnInput['text'];

  @Allow()
  content?: TurnInput['content'];

  @Allow()
  metadata?: TurnInput['metadata'];

  /** The orchestrator that handles the turn. Default: the only one that clients may use. */
  @Optional()
  @MustBeName()
  orchestrator?: string;

  /** One of the policies that clients may choose. Default: the policy of the module. */
  @Optional()
  @MustBeWhenBusy()
  whenBusy?: WhenBusy;
}

/** Selects turns of the session. */
export class ListTurnsQuery {
  @Optional()
  @MustBeStatuses()
  status?: TurnStatus | TurnStatus[];

  /** Returns turns after this position. Default 0. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  after?: number;

  /** Maximum number of turns per page. Default 50. */
  @Optional()
  @MustBeInteger(1, MAX_PAGE)
  limit?: number;
}

/** Selects a page of the conversation. */
export class ConversationQuery {
  /** The `before` of the page of later turns. Default: the latest page. */
  @Optional()
  @Must((value) => typeof value === 'string', 'must be the `before` of an earlier response, unchanged.')
  before?: string;

  /** Maximum number of turns per page. Default 50. */
  @Optional()
  @MustBeInteger(1, MAX_PAGE)
  limit?: number;
}

/**
 * Returns the input of a turn that a client submits. Its size is not checked.
 * @throws InvalidInputError, StateSerializationError
 */
export function toClientInput({ text, content, metadata }: SubmitTurnBody): TurnInput {
  const input = toTurnInput({ text, content, metadata }, Infinity, 'body');
  const reserved = RESERVED_KEYS.find((key) => Object.hasOwn(input.metadata ?? {}, key));
  if (reserved !== undefined) {
    throw new InvalidInputError(`body.metadata.${reserved}`, 'is reserved for this package. Use another key.');
  }
  if (!input.content) return input;
  return { ...input, content: input.content.map((part, index) => toClientPart(part, `body.content[${index}]`)) };
}

function toClientPart(part: MessagePart, path: string): MessagePart {
  const own = toUserPart(part, path);
  if (own) return own as MessagePart;
  if (!OTHER_PARTS.includes(part.type)) throw new InvalidInputError(`${path}.type`, TYPE_RULE);
  const { providerOptions: _, providerMetadata: __, ...rest } = part;
  return rest;
}
