import { type JsonObject, type JsonValue } from '../common/json.js';
import { type MessageDraft } from '../ledger/message.js';
import { type IntentOutcome, patched } from './intent-outcome.js';
import { type Evaluation, type IntentReply } from './evaluation.js';

/** The accumulated result of a turn's iterations. */
export interface TurnProgress {
  readonly state: JsonObject;
  /** The text of the last iteration that answered. */
  readonly text: string | null;
  readonly data?: JsonValue;
  /** Set once an intent has returned a status. */
  readonly status?: 'awaiting-input' | 'completed';
  /** The messages that the turn adds to the conversation, in order. */
  readonly messages: readonly TurnMessage[];
  /** The replies of the last iteration. */
  readonly replies: readonly IntentReply[];
  readonly feedback?: string;
}

/** A message. `isReply` marks one that only repeats the text of the reply, which a later answer replaces. */
interface TurnMessage {
  readonly message: MessageDraft;
  readonly isReply: boolean;
}

export function begin(state: JsonObject): TurnProgress {
  return { state, text: null, messages: [], replies: [] };
}

/**
 * Adds the outcomes of one iteration, in the order of the route. Later patches win, texts are joined by an empty line,
 * and one `completed` completes the conversation. An answer replaces that of an earlier iteration, which the user does
 * not see. Messages that an intent returned are always kept.
 */
export function advance(
  before: TurnProgress,
  outcomes: readonly IntentOutcome[],
  evaluation: Evaluation = {},
): TurnProgress {
  const texts = outcomes.flatMap(({ text }) => text ?? []);
  const statuses = outcomes.flatMap(({ status }) => status ?? []);
  // `null` is data: it replaces earlier data.
  const data = [before, ...outcomes].map((one) => one.data).findLast((value) => value !== undefined);
  const status = statuses.includes('completed') ? 'completed' : (statuses[0] ?? before.status);
  const kept = texts.length > 0 ? before.messages.filter(({ isReply }) => !isReply) : before.messages;
  return {
    state: outcomes.reduce((state, { patch }) => patched(state, patch), before.state),
    text: texts.length > 0 ? texts.join('\n\n') : before.text,
    ...(data === undefined ? {} : { data }),
    ...(status === undefined ? {} : { status }),
    messages: [...kept, ...outcomes.flatMap(added)],
    replies: outcomes.map(({ intent, text, data: own }) => ({
      intent,
      text,
      ...(own === undefined ? {} : { data: own }),
    })),
    ...(evaluation.feedback === undefined ? {} : { feedback: evaluation.feedback }),
  };
}

/** Returns the messages that the turn adds to the conversation. */
export function messagesOf({ messages }: TurnProgress): readonly MessageDraft[] {
  return messages.map(({ message }) => message);
}

function added({ text, messages }: IntentOutcome): TurnMessage[] {
  if (messages) return messages.map((message) => ({ message, isReply: false }));
  return text === null ? [] : [{ message: { role: 'assistant', content: text }, isReply: true }];
}
