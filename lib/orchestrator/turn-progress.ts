import { type JsonObject, type JsonValue } from '../common/json.js';
import { type MessageDraft } from '../ledger/message.js';
import { type IntentOutcome, patched } from './intent-outcome.js';
import { type Evaluation, type IntentReply } from './evaluation.js';

/** What the iterations of a turn have made of it so far. */
export interface TurnProgress {
  readonly state: JsonObject;
  /** Of the last iteration that answered. */
  readonly text: string | null;
  readonly data?: JsonValue;
  /** Once an intent has said how the turn stands. */
  readonly status?: 'awaiting-input' | 'completed';
  /** What the turn adds to the conversation, in order. */
  readonly messages: readonly TurnMessage[];
  /** Of the last iteration. */
  readonly replies: readonly IntentReply[];
  readonly feedback?: string;
}

/** A message, and whether it only repeats the text of the reply: then a later answer takes its place. */
interface TurnMessage {
  readonly message: MessageDraft;
  readonly isReply: boolean;
}

export function begin(state: JsonObject): TurnProgress {
  return { state, text: null, messages: [], replies: [] };
}

/**
 * Adds what the intents of one iteration gave, in the order of the route: later patches win, texts are joined by an empty
 * line, one `completed` completes the conversation. An answer replaces that of an earlier iteration, which the user is not to
 * see; messages that an intent gave itself all stay.
 */
export function advance(
  before: TurnProgress,
  outcomes: readonly IntentOutcome[],
  evaluation: Evaluation = {},
): TurnProgress {
  const texts = outcomes.flatMap(({ text }) => text ?? []);
  const statuses = outcomes.flatMap(({ status }) => status ?? []);
  // `null` is data: it replaces what was there before.
  const data = [before, ...outcomes].map((one) => one.data).findLast((value) => value !== undefined);
  const status = statuses.includes('completed') ? 'completed' : (statuses[0] ?? before.status);
  const kept = texts.length > 0 ? before.messages.filter(({ isReply }) => !isReply) : before.messages;
  return {
    state: outcomes.reduce((state, { patch }) => patched(state, patch), before.state),
    text: texts.length > 0 ? texts.join('\n\n') : before.text,
    ...(data === undefined ? {} : { data }),
    ...(status === undefined ? {} : { status }),
    messages: [...kept, ...outcomes.flatMap(messagesOf)],
    replies: outcomes.map(({ intent, text, data: own }) => ({
      intent,
      text,
      ...(own === undefined ? {} : { data: own }),
    })),
    ...(evaluation.feedback === undefined ? {} : { feedback: evaluation.feedback }),
  };
}

function messagesOf({ text, messages }: IntentOutcome): TurnMessage[] {
  if (messages) return messages.map((message) => ({ message, isReply: false }));
  return text === null ? [] : [{ message: { role: 'assistant', content: text }, isReply: true }];
}
