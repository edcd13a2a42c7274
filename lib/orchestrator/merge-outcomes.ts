import { isPlainObject, type JsonObject, type JsonValue, toJson, toJsonObject } from '../common/json.js';
import { toMessageDrafts } from '../conversation/message-draft.js';
import { type MessageDraft } from '../conversation/message.js';
import { OrchestratorResultError } from './orchestrator.errors.js';
import { type OutcomeOptions, TurnOutcome } from './turn-outcome.js';

/** What the intents of a turn made of it together. */
export interface MergedOutcome {
  readonly text: string | null;
  readonly data?: JsonValue;
  readonly status: 'awaiting-input' | 'completed';
  readonly state: JsonObject;
  readonly messages: readonly MessageDraft[];
}

/**
 * Joins the results of intents in the order of the route: later patches win, texts are joined by an empty line, and one
 * `completed` completes the conversation.
 * @throws OrchestratorResultError, InvalidInputError or StateSerializationError for what an intent must not return
 */
export function mergeOutcomes(
  orchestrator: string,
  state: JsonObject,
  results: readonly { readonly intent: string; readonly value: unknown }[],
): MergedOutcome {
  const outcomes = results.map(({ intent, value }) => normalize(orchestrator, intent, value));
  const texts = outcomes.flatMap(({ text }) => text ?? []);
  const data = outcomes.map(({ options }) => options.data).findLast((value) => value !== undefined);
  const completed = outcomes.some(({ options }) => options.status === 'completed');
  return {
    text: texts.length > 0 ? texts.join('\n\n') : null,
    ...(data === undefined ? {} : { data: toJson(data, 'data') }),
    status: completed ? 'completed' : 'awaiting-input',
    state: outcomes.reduce((merged, { options }) => patched(merged, options.state ?? {}), state),
    messages: outcomes.flatMap(messagesOf),
  };
}

/** A shallow merge; `undefined` removes a key. */
export function patched(state: JsonObject, patch: object): JsonObject {
  const merged: Record<string, JsonValue> = { ...state, ...toJsonObject(patch, 'state') };
  for (const [key, value] of Object.entries(patch)) {
    if (value === undefined) delete merged[key];
  }
  return merged;
}

function normalize(orchestrator: string, intent: string, value: unknown): TurnOutcome {
  if (value instanceof TurnOutcome) return checked(orchestrator, intent, value as TurnOutcome);
  if (value === undefined) return new TurnOutcome(null);
  if (typeof value === 'string') return new TurnOutcome(value);
  if (isPlainObject(value)) return new TurnOutcome(null, { state: value });
  throw new OrchestratorResultError(
    orchestrator,
    `intent ${intent} returned ${value === null ? 'null' : `a ${typeof value}`}; return reply(...), a text, a patch of the state, or nothing.`,
  );
}

function checked(orchestrator: string, intent: string, value: TurnOutcome): TurnOutcome {
  const { status, state } = value.options as OutcomeOptions & { status?: unknown };
  const problem =
    value.text !== null && typeof value.text !== 'string'
      ? 'a reply must be a text.'
      : status !== undefined && status !== 'awaiting-input' && status !== 'completed'
        ? `status is ${JSON.stringify(status)}; it must be awaiting-input or completed.`
        : state !== undefined && !isPlainObject(state)
          ? 'state must be an object.'
          : null;
  if (problem !== null) throw new OrchestratorResultError(orchestrator, `intent ${intent}: ${problem}`);
  return value;
}

function messagesOf({ text, options }: TurnOutcome): MessageDraft[] {
  if (options.messages !== undefined) return toMessageDrafts(options.messages, 'messages');
  return text === null ? [] : [{ role: 'assistant', content: text }];
}
