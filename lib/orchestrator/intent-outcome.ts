import {
  ignoreRejections,
  isPlainObject,
  kindOf,
  type JsonObject,
  type JsonValue,
  toJson,
  toJsonObject,
} from '../common/json.js';
import { unknownKeyRule } from '../common/known-keys.js';
import { toMessageDrafts } from '../conversation/message-draft.js';
import { type MessageDraft } from '../ledger/message.js';
import { wrongResult } from './orchestrator.errors.js';
import { type IntentReply } from './evaluation.js';
import { orchestratorMessages } from './orchestrator.messages.js';
import { type OutcomeOptions, TurnOutcome } from './turn-outcome.js';

/** An intent's result, validated and as JSON, so that it can be stored between two iterations. */
export interface IntentOutcome extends IntentReply {
  /** Absent unless the intent set it. */
  readonly status?: 'awaiting-input' | 'completed';
  readonly patch: StatePatch;
  /** Messages from the intent. If absent, its text is its message. */
  readonly messages?: readonly MessageDraft[];
}

/** A shallow change of a state. */
export interface StatePatch {
  readonly set: JsonObject;
  readonly unset: readonly string[];
}

/** Keys of an object that was meant as a reply, unless the state has them (DAY-16). */
const REPLY_KEYS = ['text', 'reply'] as const;
const OUTCOME_KEYS: readonly string[] = ['state', 'status', 'data', 'messages'] satisfies (keyof OutcomeOptions)[];
const NO_PATCH: StatePatch = { set: {}, unset: [] };

/**
 * @param current the state that the result may change
 * @throws HandlerError, InvalidInputError or StateSerializationError if the result of the intent is invalid
 */
export function toIntentOutcome(
  orchestrator: string,
  intent: string,
  value: unknown,
  current: JsonObject,
): IntentOutcome {
  try {
    return outcomeOf(orchestrator, intent, value, current);
  } catch (error) {
    ignoreRejections(value instanceof TurnOutcome ? [value.text, value.options] : value);
    throw error;
  }
}

function outcomeOf(orchestrator: string, intent: string, value: unknown, current: JsonObject): IntentOutcome {
  const { text, options } = checked(orchestrator, intent, normalize(orchestrator, intent, value, current));
  const { data, status, state, messages } = options;
  return {
    intent,
    text,
    patch: state === undefined ? NO_PATCH : toPatch(state),
    ...(data === undefined ? {} : { data: toJson(data, 'data') }),
    ...(status === undefined ? {} : { status }),
    ...(messages === undefined ? {} : { messages: toMessageDrafts(messages, 'messages') }),
  };
}

/** Converts a patch; `undefined` removes a key. @throws StateSerializationError */
export function toPatch(patch: object): StatePatch {
  const unset = Object.entries(patch).flatMap(([key, value]) => (value === undefined ? [key] : []));
  return { set: toJsonObject(patch, 'state'), unset };
}

export function patched(state: JsonObject, patch: StatePatch): JsonObject {
  if (patch === NO_PATCH) return state;
  const { set, unset } = patch;
  const merged: Record<string, JsonValue> = { ...state, ...set };
  for (const key of unset) delete merged[key];
  return merged;
}

function normalize(orchestrator: string, intent: string, value: unknown, current: JsonObject): TurnOutcome {
  if (value instanceof TurnOutcome) return value as TurnOutcome;
  if (value === undefined) return new TurnOutcome(null);
  if (typeof value === 'string') return new TurnOutcome(value);
  if (isPlainObject(value)) {
    const key = REPLY_KEYS.find((name) => typeof value[name] === 'string' && !Object.hasOwn(current, name));
    if (key === undefined) return new TurnOutcome(null, { state: value });
    throw wrongResult(orchestrator, orchestratorMessages.replyAsState(intent, key));
  }
  throw wrongResult(orchestrator, `intent ${intent} returned ${kindOf(value)}. ${cureOf(value)}`);
}

function cureOf(value: unknown): string {
  if (typeof value === 'object' && value !== null) {
    if ('textStream' in value) return 'To answer with a model, return streamReply(turn, { model }).';
    if (value instanceof Response) return orchestratorMessages.responseCure();
    if (Symbol.asyncIterator in value) return orchestratorMessages.streamCure();
  }
  return 'Return reply(...), a string, a plain object (a patch of the state), or nothing.';
}

function checked(orchestrator: string, intent: string, value: TurnOutcome): TurnOutcome {
  const { status, state } = value.options as OutcomeOptions & { status?: unknown };
  const problem =
    value.text !== null && typeof value.text !== 'string'
      ? `a reply must be a string, not ${kindOf(value.text)}.`
      : status !== undefined && status !== 'awaiting-input' && status !== 'completed'
        ? 'status must be awaiting-input or completed.'
        : state !== undefined && !isPlainObject(state)
          ? 'state must be an object.'
          : null;
  if (problem !== null) throw wrongResult(orchestrator, `intent ${intent}: ${problem}`);
  const unknown = Object.keys(value.options).find((key) => !OUTCOME_KEYS.includes(key));
  if (unknown === undefined) return value;
  const rule = unknownKeyRule(unknown, OUTCOME_KEYS);
  throw wrongResult(orchestrator, orchestratorMessages.unknownOutcomeKey(intent, unknown, rule));
}
