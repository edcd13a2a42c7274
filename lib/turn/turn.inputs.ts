import { Allow } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, MustBeName, Optional } from '../common/check-input.js';
import { ID_RULE, isId } from '../common/ids.js';
import {
  fieldsOf,
  isFields,
  type JsonObject,
  stringifyWithin,
  toJson,
  toJsonFields,
  toJsonObject,
} from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { toHistory } from '../conversation/message-draft.js';
import { type MessageDraft } from '../ledger/message.js';
import { type TurnListener } from './turn-contexts.js';
import {
  TURN_STATUSES,
  type TurnInput,
  type TurnRequest,
  type TurnStatus,
  WHEN_BUSY,
  type WhenBusy,
} from '../ledger/turn.js';

/** A status, or a list of them. */
export const MustBeStatuses = (): PropertyDecorator =>
  Must(isStatusFilter, `must be one or more of ${TURN_STATUSES.join(', ')}.`);

/** What to do when the session is busy. */
export const MustBeWhenBusy = (): PropertyDecorator =>
  Must((value) => WHEN_BUSY.includes(value as WhenBusy), `must be one of ${WHEN_BUSY.join(', ')}.`);

/** How a turn is submitted (BOT-02). */
export class SubmitOptions {
  /** The session whose lane the turn joins. */
  @Allow()
  sessionId!: string;

  /** The history to give the handler instead of the conversation log; stored with the turn. Default: the log's window. */
  @Optional()
  @Must(Array.isArray, 'must be an array of messages.')
  history?: readonly MessageDraft[];

  /** Merged into the state before dispatch; top-level keys. Default: nothing. */
  @Allow()
  state?: Record<string, unknown>;

  /** The task that the turn is of: its handlers get it as `turn.task`, and it must be there (STA-05). Default: none. */
  @Optional()
  @Must(isId, ID_RULE)
  taskId?: string;

  /** Small JSON that is stored with the turn and given to every attempt; at most 16,384 bytes. Default `{}`. */
  @Allow()
  attributes?: Record<string, unknown>;

  /**
   * What only this process has: database handles, the request. Copied shallowly, frozen, never stored; an attempt in
   * another process sees what the `TurnContextFactory` builds. Default: nothing.
   */
  @Optional()
  @Must(isFields, 'must be an object.')
  context?: Record<string, unknown>;

  /**
   * Told what happens to the turn while it runs in this process, see `OrchestratorEvent`; what it throws is logged. Default:
   * nobody is told.
   */
  @Optional()
  @Must((value) => typeof value === 'function', 'must be a function.')
  onEvent?: TurnListener;

  /** Aborting it cancels the turn. Default: nothing does. */
  @Optional()
  @Must((value) => value instanceof AbortSignal, 'must be an AbortSignal.')
  signal?: AbortSignal;

  /** Adopt the orchestrator's present shape although the last checkpoint was written by another. Default false. */
  @Optional()
  @MustBeBoolean()
  force?: boolean;

  /** The same key with the same input gives the same turn (TRN-05). Default: no key, each call is a turn. */
  @Optional()
  @MustBeName()
  idempotencyKey?: string;

  /** What to do when the session is busy; default: the module's `turns.whenBusy`. */
  @Optional()
  @MustBeWhenBusy()
  whenBusy?: WhenBusy;
}

/** As {@link SubmitOptions}, for a caller that waits for the result. */
export class ExecuteOptions extends SubmitOptions {
  /** Milliseconds after which the caller stops waiting; the turn goes on. Default: no limit. */
  @Optional()
  @MustBeInteger(1, 2_147_483_647)
  timeoutMs?: number;
}

/** How long a caller waits for a turn that was accepted before. */
export class WaitOptions {
  /** Milliseconds after which the caller stops waiting; the turn goes on. Default: no limit. */
  @Optional()
  @MustBeInteger(1, 2_147_483_647)
  timeoutMs?: number;
}

/** Which turns of a session to list. */
export class TurnListQuery {
  /** The session whose turns they are. */
  @Allow()
  sessionId!: string;

  /** Turns with one of these statuses. Default: with any. */
  @Optional()
  @MustBeStatuses()
  status?: TurnStatus | TurnStatus[];

  /** By position in the lane; `desc` begins with the latest turn. Default `asc`. */
  @Optional()
  @Must((value) => value === 'asc' || value === 'desc', 'must be asc or desc.')
  order?: 'asc' | 'desc';

  /** Turns that come after this position in the order asked for. Default: from the first of them. */
  @Optional()
  @MustBeInteger(0, Number.MAX_SAFE_INTEGER)
  after?: number;

  /** At most this many; default 50. */
  @Optional()
  @MustBeInteger(1, 1000)
  limit?: number;
}

/** What the user said: plain text, or text with parts and metadata. */
export type TurnInputLike = string | TurnInput;

/**
 * The input as it is stored.
 * @param path names it in errors
 * @throws InvalidInputError, StateSerializationError, TooLargeError
 */
export function toTurnInput(input: unknown, maxBytes: number, path = 'input'): TurnInput {
  const given = typeof input === 'string' ? { text: input } : input;
  if (!isFields(given)) throw new InvalidInputError(path, 'must be a text, or an object with a text.');
  const unknown = Object.keys(given).find((key) => !['text', 'content', 'metadata'].includes(key));
  if (unknown !== undefined) throw new InvalidInputError(`${path}.${unknown}`, 'is not a known key.');
  const { text, content, metadata } = given;
  if (typeof text !== 'string') throw new InvalidInputError(`${path}.text`, 'must be a text.');
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

/** What else is stored with the turn. @throws InvalidInputError, StateSerializationError, TooLargeError */
export function toTurnRequest(
  input: TurnInput,
  { history, state, taskId, force, command, unlogged }: SubmitOptions & Pick<TurnRequest, 'command' | 'unlogged'>,
  callers: readonly string[],
  maxBytes: number,
): TurnRequest {
  const request: TurnRequest = {
    input,
    ...(command ? { command } : {}),
    ...(unlogged ? { unlogged } : {}),
    ...(history === undefined ? {} : { history: toHistory(history, 'history') }),
    ...(state === undefined ? {} : { statePatch: toJsonObject(state, 'state') }),
    ...(taskId === undefined ? {} : { taskId }),
    ...(force ? { force } : {}),
    ...(callers.length > 0 ? { callers } : {}),
  };
  stringifyWithin(request as unknown as JsonObject, maxBytes, 'The turn');
  return request;
}

function isStatusFilter(value: unknown): boolean {
  const statuses: unknown[] = Array.isArray(value) ? value : [value];
  return statuses.length > 0 && statuses.every((status) => TURN_STATUSES.includes(status as TurnStatus));
}
