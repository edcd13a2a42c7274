import { isFields } from '../common/json.js';
import { INTERRUPTED } from '../ledger/interrupted-result.js';
import { type MessageDraft } from '../ledger/message.js';
import { isReasoning } from './chunk-fields.js';
import { MessageFold } from './message-fold.js';
import { fromAnswer } from './stored-messages.js';
import { type AnyUIMessage, type UIChunk, type UIPart } from './ui-message.js';

/** States of tool calls without a result. */
const OPEN_CALL = ['input-available', 'approval-requested', 'approval-responded'];
/** The reason of a denial by a stop. The model reads it as the result of the call. */
export const NOT_APPROVED = 'Denied: the answer was stopped before the user decided. The call did not run.';

/**
 * Returns the draft that stores the answer so far when it is stopped; `undefined` if clients have seen nothing. Every
 * provider accepts it in a prompt, wherever the answer is cut (AIS-30):
 *
 * - A call whose approval is pending is denied (AIS-32). Another tool call without a result has an `interrupted` error. A
 *   call whose input is incomplete is left out.
 * - Text ends where it is. Text without visible characters is left out.
 * - A step whose model call has not ended has no reasoning, because its signature is missing, and no calls that the
 *   provider executes. Its parts have no metadata of the provider, which does not store the rest of an aborted answer.
 */
export function stoppedAnswer(chunks: readonly UIChunk[]): MessageDraft | undefined {
  const shown = new MessageFold();
  for (const chunk of chunks) shown.add(chunk);
  return cutAnswer(shown.message, isAfterStep(chunks));
}

/**
 * Works like {@link stoppedAnswer}, with the message that clients have.
 * @param hasEnded true if the last step has ended
 */
export function cutAnswer(message: AnyUIMessage, hasEnded: boolean): MessageDraft | undefined {
  const steps = stepsOf(message.parts);
  const last = steps.length - 1;
  const parts = steps.flatMap((step, index) => stoppedStep(step, index < last || hasEnded));
  return parts.length === 0 ? undefined : fromAnswer({ ...message, parts });
}

/** Splits parts before the start of each step. */
function stepsOf(parts: readonly UIPart[]): UIPart[][] {
  const steps: UIPart[][] = [];
  for (const part of parts) {
    if (part.type === 'step-start' || steps.length === 0) steps.push([]);
    steps[steps.length - 1].push(part);
  }
  return steps;
}

function isAfterStep(chunks: readonly UIChunk[]): boolean {
  return chunks.findLast(({ type }) => type === 'start-step' || type === 'finish-step')?.type === 'finish-step';
}

/** @param hasEnded true if the chunks after the step, or its end, prove that its model call has ended */
function stoppedStep(step: readonly UIPart[], hasEnded: boolean): UIPart[] {
  // Calls that the server runs follow a complete answer of the model.
  const isWhole = (hasEnded || step.some(isOwnCall)) && !step.some(isOpenCallOfProvider);
  const whole = isWhole ? step : step.filter((part) => !belongsToProvider(part)).map(withoutProviderMetadata);
  const kept = whole.map(stopped).filter((part) => part !== undefined);
  // OpenAI rejects reasoning that nothing follows.
  const end = kept.findLastIndex(isModelContent);
  const parts = kept.filter((part, index) => index < end || !isReasoning(part));
  return parts.every(({ type }) => type === 'step-start') ? [] : parts;
}

function stopped(part: UIPart): UIPart | undefined {
  const { type, state, text } = part;
  if (type === 'text') return typeof text === 'string' && text.trim() === '' ? undefined : { ...part, state: 'done' };
  if (type === 'reasoning') return isWholeReasoning(part) ? part : undefined;
  if (state === 'input-streaming') return undefined;
  if (state === 'approval-requested') return denied(part, { approved: false, reason: NOT_APPROVED });
  if (state === 'approval-responded' && isDenial(part.approval)) return denied(part);
  if (!isOpenCall(part)) return part;
  const { approval: _approval, output: _output, preliminary: _preliminary, ...call } = part;
  return { ...call, state: 'output-error', errorText: INTERRUPTED };
}

function denied(part: UIPart, answer: object = {}): UIPart {
  return { ...part, state: 'output-denied', approval: { ...(part.approval as object), ...answer } };
}

function isDenial(approval: unknown): boolean {
  return isFields(approval) && approval.approved === false;
}

/** Reasoning without text can have encrypted content as metadata. */
function isWholeReasoning({ state, text, providerMetadata }: UIPart): boolean {
  return state !== 'streaming' && (text !== '' || providerMetadata !== undefined);
}

function isCall({ type, toolCallId }: UIPart): boolean {
  return typeof toolCallId === 'string' && (type.startsWith('tool-') || type === 'dynamic-tool');
}

function isOwnCall(part: UIPart): boolean {
  return isCall(part) && part.providerExecuted !== true && part.state !== 'input-streaming';
}

/** Returns whether a call has no result. A tool with a preliminary result had more to say. */
function isOpenCall({ state, preliminary }: UIPart): boolean {
  return (typeof state === 'string' && OPEN_CALL.includes(state)) || preliminary === true;
}

function isOpenCallOfProvider(part: UIPart): boolean {
  return isCall(part) && part.providerExecuted === true && (isOpenCall(part) || part.state === 'input-streaming');
}

/** Returns whether only the provider of a complete answer can read the part. */
function belongsToProvider(part: UIPart): boolean {
  return isReasoning(part) || part.type === 'custom' || (isCall(part) && part.providerExecuted === true);
}

/** Returns whether a model reads the part, apart from reasoning. */
function isModelContent(part: UIPart): boolean {
  return isCall(part) || part.type === 'text' || part.type === 'file' || part.type === 'custom';
}

function withoutProviderMetadata(part: UIPart): UIPart {
  const { providerMetadata: _own, callProviderMetadata: _call, resultProviderMetadata: _result, ...rest } = part;
  return rest;
}
