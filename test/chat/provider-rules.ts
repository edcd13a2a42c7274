import { type UIChunk } from '../../lib/chat/ui-message.js';

/** The metadata with which tests mark the parts of an answer, as providers do. */
export interface Mark {
  /** The id of a part that the provider stores with its answer, or the signature of reasoning. */
  readonly item: string;
  /** The id of the reasoning without which the provider rejects the item. */
  readonly after?: string;
}

export function marked(mark: Mark): { readonly providerMetadata: { readonly maker: Mark } } {
  return { providerMetadata: { maker: mark } };
}

/** What the rules read of a part of a model message. */
interface Part {
  readonly type: string;
  readonly text?: string;
  readonly toolCallId?: string;
  readonly providerExecuted?: boolean;
  readonly providerOptions?: { readonly maker?: Mark };
}

interface Message {
  readonly role: string;
  readonly content: string | readonly object[];
}

/**
 * Lists why OpenAI or Anthropic would reject the messages:
 *
 * - Each call of a tool has one result, directly after the message of the call.
 * - A call that the provider executes has its result in the same message.
 * - No message is empty, and text has visible characters.
 * - Reasoning has a signature, and is followed by other content.
 * - An item with an id is stored by the provider, and comes with the reasoning before it.
 *
 * @param isStored whether the provider has stored the item; it stores none of an aborted answer (vercel/ai#8811)
 */
export function rejections(messages: readonly Message[], isStored: (item: string) => boolean): string[] {
  const problems: string[] = [];
  let open: (string | undefined)[] = [];
  const close = (): void => {
    problems.push(...open.map((id) => `${id} has no result`));
    open = [];
  };
  for (const { role, content } of messages) {
    const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content as readonly Part[]);
    if (role !== 'tool') close();
    if (parts.length === 0) problems.push(`a message of ${role} is empty`);
    for (const [index, part] of parts.entries()) {
      const { type, text, toolCallId: id, providerExecuted } = part;
      if (type === 'text' && text?.trim() === '') problems.push(`a message of ${role} has an empty text`);
      if (role === 'assistant') problems.push(...problemsOf(part, index, parts, isStored));
      if (type === 'tool-call' && !providerExecuted) open.push(id);
      if (role === 'tool' && type === 'tool-result') {
        if (!open.includes(id)) problems.push(`the result of ${id} has no call before it`);
        open = open.filter((each) => each !== id);
      }
    }
  }
  close();
  return problems;
}

function problemsOf(
  { type, toolCallId: id, providerExecuted, providerOptions }: Part,
  index: number,
  parts: readonly Part[],
  isStored: (item: string) => boolean,
): string[] {
  const { item, after } = providerOptions?.maker ?? {};
  const follows = parts.slice(index + 1).some((other) => other.type !== 'reasoning');
  const isReasoned = parts.some((other) => other.type === 'reasoning' && other.providerOptions?.maker?.item === after);
  const isAnswered = parts.some((other) => other.type === 'tool-result' && other.toolCallId === id);
  return [
    ...(type === 'reasoning' && item === undefined ? ['reasoning has no signature'] : []),
    ...(type === 'reasoning' && !follows ? ['nothing follows reasoning'] : []),
    ...(type === 'tool-call' && providerExecuted === true && !isAnswered
      ? [`${id} of the provider has no result`]
      : []),
    ...(item !== undefined && !isStored(item) ? [`item ${item} is not stored`] : []),
    ...(after !== undefined && !isReasoned ? [`item ${item} needs the reasoning ${after}`] : []),
  ];
}

/**
 * Returns the number of steps whose model calls have ended after these chunks: their calls of tools, or their ends,
 * were written.
 */
export function endedSteps(chunks: readonly UIChunk[]): number {
  let step = 0;
  let ended = 0;
  for (const { type, providerExecuted } of chunks) {
    if (type === 'start-step') step += 1;
    const isCall = type === 'tool-input-available' && providerExecuted !== true;
    if (isCall || type === 'finish-step') ended = step;
  }
  return ended;
}
