import { type AnyUIMessage, type UIPart } from '../../chat/ui-message.js';

/**
 * Returns a message as JSON, without the ids of reasoning and without approvals: attempts have different ids, and
 * version 6 has no chunk for an answer to a request.
 */
export function comparable(message: AnyUIMessage): unknown {
  const { id, role, metadata, parts } = message;
  const compared = role === 'assistant' ? partsOf(message).map(comparablePart) : parts;
  return JSON.parse(JSON.stringify({ id, role, metadata, parts: compared })) as unknown;
}

/** Returns the parts without an empty last step: the response to a page can end with one, which is not stored. */
function partsOf({ parts }: AnyUIMessage): readonly UIPart[] {
  return parts.at(-1)?.type === 'step-start' ? parts.slice(0, -1) : parts;
}

function comparablePart(part: UIPart): UIPart {
  const { approval: _, id, rawInput, ...rest } = part;
  // Version 7 keeps the input of a failed call in `rawInput`.
  const failed = part.state === 'output-error' && rest.input === undefined ? { input: rawInput } : {};
  return { ...rest, ...(part.type === 'reasoning' ? {} : { id }), ...failed };
}

/** Returns what all answers to the same question have in common, if the model chooses other words. */
export function outlineOf(message: AnyUIMessage): unknown {
  const outline = partsOf(message).map(({ type, toolName, state, input }) => ({ type, toolName, state, input }));
  return JSON.parse(JSON.stringify(outline)) as unknown;
}

/** Returns the text and reasoning of an answer. */
export function textsOf({ parts }: AnyUIMessage): string[] {
  return parts.flatMap(({ type, text }) => (isText(type) ? [text as string] : []));
}

/**
 * Checks an answer that a client shows, complete or not.
 * @param texts all valid texts; `null` if they are unknown
 * @param whole the complete answer, perhaps in other words; absent if it is unknown
 * @throws Error if the answer is wrong
 */
export function assertShown(
  shown: AnyUIMessage,
  texts: readonly string[] | null,
  whole: AnyUIMessage | undefined,
): void {
  assertTexts(shown, texts, (known, text) => known.startsWith(text));
  const calls = countParts(shown, ({ toolCallId }) => toolCallId as string | undefined);
  for (const [call, count] of calls) if (count > 1) throw new Error(`The client shows the tool call ${call} twice.`);
  if (!whole) return;
  const expected = countParts(whole, ({ type }) => type);
  for (const [type, count] of countParts(shown, (part) => part.type)) {
    const limit = expected.get(type) ?? 0;
    if (count > limit) throw new Error(`The client shows ${count} parts of type ${type}. Expected: ${limit}.`);
  }
}

/** Checks a complete answer. @param texts as for {@link assertShown} */
export function assertComplete(shown: AnyUIMessage, texts: readonly string[] | null): void {
  assertTexts(shown, texts, (known, text) => known === text);
}

function assertTexts(
  shown: AnyUIMessage,
  texts: readonly string[] | null,
  isKnown: (known: string, text: string) => boolean,
): void {
  for (const text of texts ? textsOf(shown) : []) {
    if (texts?.some((known) => isKnown(known, text))) continue;
    throw new Error(`The client shows text that the model has not answered: ${JSON.stringify(text)}`);
  }
}

/** Counts the parts of each step by a key. Parts without a key are not counted. */
function countParts({ parts }: AnyUIMessage, keyOf: (part: UIPart) => string | undefined): Map<string, number> {
  const counts = new Map<string, number>();
  let step = 0;
  for (const part of parts) {
    if (part.type === 'step-start') step += 1;
    const key = keyOf(part);
    if (key === undefined) continue;
    const inStep = `${key} in step ${step}`;
    counts.set(inStep, (counts.get(inStep) ?? 0) + 1);
  }
  return counts;
}

function isText(type: string): boolean {
  return type === 'text' || type === 'reasoning';
}
