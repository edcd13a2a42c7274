import { Allow } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { ID_RULE, isId } from '../common/ids.js';
import {
  assertWithin,
  fieldsOf,
  isFields,
  type JsonObject,
  type JsonValue,
  stringifyWithin,
  toJson,
  toJsonFields,
  toJsonObject,
} from '../common/json.js';
import { unknownKeyRule } from '../common/known-keys.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { toHistory } from '../conversation/message-draft.js';
import { interruptedResults } from '../conversation/close-calls.js';
import { type NewMessage } from '../ledger/conversation.store.js';
import { type MessageDraft } from '../ledger/message.js';
import { type Session } from '../ledger/session.js';
import { MustBeSession } from '../session/session.inputs.js';
import { type TurnListener } from './turn-contexts.js';
import {
  TURN_STATUSES,
  type TurnInput,
  type TurnRequest,
  type TurnStatus,
  WHEN_BUSY,
  type WhenBusy,
} from '../ledger/turn.js';
import { messageId } from '../ledger/user-message.js';

/** Validates a status, or a list of them. */
export const MustBeStatuses = (): PropertyDecorator =>
  Must(isStatusFilter, `must be one or more of ${TURN_STATUSES.join(', ')}.`);

/** Validates a `whenBusy` option. */
export const MustBeWhenBusy = (): PropertyDecorator =>
  Must((value) => WHEN_BUSY.includes(value as WhenBusy), `must be one of ${WHEN_BUSY.join(', ')}.`);

/** Options of `turns.submit` (BOT-02). */
export class SubmitOptions {
  /** The session whose lane the turn joins. */
  @Allow()
  sessionId!: string;

  /**
   * The session that the caller has read. If the id was deleted and created again since, the turn is rejected (FIX-90).
   * Default: the session of the current turn, or of the current request to a handler with `@UseSession()`, if it has this
   * id; otherwise any session with the id.
   */
  @Optional()
  @MustBeSession()
  session?: Pick<Session, 'createdAt' | 'userId'>;

  /** The history for the handler, instead of the conversation log; stored with the turn. Default: the log's window. */
  @Optional()
  @Must(Array.isArray, 'must be an array of messages.')
  history?: readonly MessageDraft[];

  /** Merged into the state before dispatch, by top-level keys. Default: no change. */
  @Allow()
  state?: Record<string, unknown>;

  /**
   * The id of an earlier turn of the session that this one replaces (AIS-07), for example to answer again. The turn
   * continues from before that turn: without its messages and those of the orchestrator's later turns, and with the
   * state and the plan of that time. The commit that settles the turn undoes them; if it fails or is cancelled, they
   * stay. Default: none.
   */
  @Optional()
  @Must(isId, ID_RULE)
  replaces?: string;

  /** The task that the turn belongs to. Handlers receive it as `turn.task`; it must exist (STA-05). Default: none. */
  @Optional()
  @Must(isId, ID_RULE)
  taskId?: string;

  /** Small JSON that is stored with the turn and passed to every attempt; at most 16,384 bytes. Default `{}`. */
  @Allow()
  attributes?: Record<string, unknown>;

  /**
   * Values that exist only in this process, such as database handles or the request. They are copied shallowly, frozen,
   * and never stored. An attempt in another process sees only what the `TurnContextFactory` builds. Default: none.
   */
  @Optional()
  @Must(isFields, 'must be an object.')
  context?: Record<string, unknown>;

  /**
   * Called for each event of the turn while it runs in this process, see `OrchestratorEvent`; errors are logged.
   * Default: none.
   */
  @Optional()
  @Must((value) => typeof value === 'function', 'must be a function.')
  onEvent?: TurnListener;

  /**
   * Aborting the signal cancels the turn. The `signal` of a handler cancels it only if the handler's turn is cancelled,
   * not if its attempt stops. Default: none.
   */
  @Optional()
  @Must((value) => value instanceof AbortSignal, 'must be an AbortSignal.')
  signal?: AbortSignal;

  /**
   * Adopts the orchestrator's current structure, even if the last checkpoint was written by a different one. Default
   * false.
   */
  @Optional()
  @MustBeBoolean()
  force?: boolean;

  /** Calls with the same key and input return the same turn (TRN-05). Default: no key, each call is a turn. */
  @Optional()
  @MustBeName()
  idempotencyKey?: string;

  /** How the turn is handled when the session is busy. Default: the module's `turns.whenBusy`. */
  @Optional()
  @MustBeWhenBusy()
  whenBusy?: WhenBusy;
}

/** {@link SubmitOptions} for a caller that waits for the result. */
export class ExecuteOptions extends SubmitOptions {
  /** Milliseconds after which the caller stops waiting; the turn continues. Default: no limit. */
  @Optional()
  @MustBeInteger(1, 2_147_483_647)
  timeoutMs?: number;
}

/** Options of `turns.cancel`. */
export class CancelOptions {
  /**
   * What stays of the turn in the conversation. `true`: the user's message, and the messages of completed iterations.
   * An array of messages: the user's message and these, for example the part of the answer that the user has seen; an
   * empty one is the same as `true`. A running answer of a chat (`streamReply`, `uiStream`) keeps what clients have
   * received and every provider accepts (AIS-30), in place of `true` or of a UI message. A turn that has not begun keeps
   * nothing. Default false: nothing.
   */
  @Optional()
  @Must((value) => typeof value === 'boolean' || Array.isArray(value), 'must be true, false, or an array of messages.')
  keep?: boolean | readonly MessageDraft[];
}

/**
 * Returns the messages to keep with their ids, and a result for each call (FIX-60); undefined if nothing of the turn
 * stays.
 * @throws InvalidInputError, StateSerializationError, TooLargeError
 */
export function toKept(
  turnId: string,
  keep: CancelOptions['keep'] = false,
  maxBytes: number,
): readonly NewMessage[] | undefined {
  if (typeof keep === 'boolean') return keep ? [] : undefined;
  const given = toHistory(keep, 'options.keep');
  const messages = [...given, ...interruptedResults(given)].map((message, at) => {
    return { ...message, id: message.id ?? messageId(turnId, at + 1) };
  });
  assertWithin(messages as object as JsonValue, maxBytes, 'The messages to keep');
  return messages;
}

/** Options for waiting for a turn that was already accepted. */
export class WaitOptions {
  /** Milliseconds after which the caller stops waiting; the turn continues. Default: no limit. */
  @Optional()
  @MustBeInteger(1, 2_147_483_647)
  timeoutMs?: number;
}

/** Selects the turns of a session to list. */
export class TurnListQuery {
  /** The session. */
  @Allow()
  sessionId!: string;

  /** Returns turns with one of these statuses. Default: any. */
  @Optional()
  @MustBeStatuses()
  status?: TurnStatus | TurnStatus[];

  /** The order by position in the lane; `desc` starts with the latest turn. Default `asc`. */
  @Optional()
  @Must((value) => value === 'asc' || value === 'desc', 'must be asc or desc.')
  order?: 'asc' | 'desc';

  /** Returns turns that come after this position in the given order. Default: from the first. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  after?: number;

  /** The maximum number of turns. Default 50. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}

/** The user's input: a plain string, or an object with text, parts and metadata. */
export type TurnInputLike = string | TurnInput;

const KEYS = ['text', 'content', 'metadata'];

/**
 * Validates the input and returns it in its stored form.
 * @param path names it in errors
 * @throws InvalidInputError, StateSerializationError, TooLargeError
 */
export function toTurnInput(input: unknown, maxBytes: number, path = 'input'): TurnInput {
  const given = typeof input === 'string' ? { text: input } : input;
  if (!isFields(given)) throw new InvalidInputError(path, 'must be a string or an object with a `text` string.');
  const unknown = Object.keys(given).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) throw new InvalidInputError(`${path}.${unknown}`, unknownKeyRule(unknown, KEYS));
  const { text, content, metadata } = given;
  if (typeof text !== 'string') throw new InvalidInputError(`${path}.text`, 'must be a string.');
  if (text.trim() === '' && content === undefined) throw new InvalidInputError(`${path}.text`, 'must not be empty.');
  const isParts = Array.isArray(content) && content.every((part) => isFields(part) && typeof part.type === 'string');
  if (content !== undefined && !isParts)
    throw new InvalidInputError(`${path}.content`, 'must be an array of parts, each with a type.');
  const checked = {
    text,
    ...(content === undefined ? {} : { content: toJson(content.map(fieldsOf), `${path}.content`) }),
    ...(metadata === undefined ? {} : { metadata: toJsonFields(metadata, `${path}.metadata`) }),
  };
  stringifyWithin(checked, maxBytes, 'The input');
  return checked as TurnInput;
}

/**
 * Builds the request that is stored with the turn. @throws InvalidInputError, StateSerializationError, TooLargeError
 */
export function toTurnRequest(
  input: TurnInput,
  {
    history,
    state,
    replaces,
    taskId,
    force,
    command,
    unlogged,
  }: SubmitOptions & Pick<TurnRequest, 'command' | 'unlogged'>,
  maxBytes: number,
): TurnRequest {
  const request: TurnRequest = {
    input,
    ...(command ? { command } : {}),
    ...(unlogged ? { unlogged } : {}),
    ...(history === undefined ? {} : { history: toHistory(history, 'history') }),
    ...(state === undefined ? {} : { statePatch: toJsonObject(state, 'state') }),
    ...(replaces === undefined ? {} : { replaces }),
    ...(taskId === undefined ? {} : { taskId }),
    ...(force ? { force } : {}),
  };
  stringifyWithin(request as unknown as JsonObject, maxBytes, 'The turn');
  return request;
}

function isStatusFilter(value: unknown): boolean {
  const statuses: unknown[] = Array.isArray(value) ? value : [value];
  return statuses.length > 0 && statuses.every((status) => TURN_STATUSES.includes(status as TurnStatus));
}
