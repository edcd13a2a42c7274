import { type AssistantModelMessage, type ModelMessage, type ToolModelMessage } from 'ai';
import { isReasoning } from '../chat/chunk-fields.js';

type AssistantPart = Exclude<AssistantModelMessage['content'], string>[number];
type AnswerPart = ToolModelMessage['content'][number];

/**
 * Removes what providers reject: tool calls without a result, results that do not follow their call, and messages that
 * are empty or contain only reasoning. A call is complete if
 *
 * - its result follows directly, as OpenAI, Anthropic and Google require for all calls of a message;
 * - the provider executes it, and its result is in the same message or a later one, or its approval was answered;
 * - the last message answers its approval: the SDK runs or denies the call before it calls the model.
 *
 * If a call is removed, reasoning at the end of its message is removed as well: OpenAI and Anthropic reject it.
 */
export function keepWholeCalls(messages: readonly ModelMessage[]): ModelMessage[] {
  const providerResults = lastProviderResults(messages);
  const called = new Set<string>();
  const kept = messages.flatMap((message, index): ModelMessage[] => {
    if (message.role === 'tool') return [];
    if (message.role !== 'assistant' || typeof message.content === 'string') return [message];
    const answers = toolMessagesAfter(messages, index);
    const isEnd = index + answers.length === messages.length - 1;
    const hasProviderResult = (id: string): boolean => (providerResults.get(id) ?? -1) >= index;
    const complete = completeCalls(message.content, answers, isEnd, hasProviderResult);
    for (const id of complete) called.add(id);
    const content = wholeParts(message.content, complete, called);
    return [{ ...message, content }, ...answers.map((answer) => ({ ...answer, content: answersTo(content, answer) }))];
  });
  return kept.filter(({ content }) => (typeof content === 'string' ? content !== '' : !content.every(isReasoning)));
}

/** Returns the index of the last message with a result of each call that the provider executed. */
function lastProviderResults(messages: readonly ModelMessage[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== 'assistant' || typeof content === 'string') continue;
    for (const part of content) if (part.type === 'tool-result') found.set(part.toolCallId, index);
  }
  return found;
}

function toolMessagesAfter(messages: readonly ModelMessage[], index: number): ToolModelMessage[] {
  const rest = messages.slice(index + 1);
  const end = rest.findIndex(({ role }) => role !== 'tool');
  return (end === -1 ? rest : rest.slice(0, end)) as ToolModelMessage[];
}

function completeCalls(
  parts: readonly AssistantPart[],
  answers: readonly ToolModelMessage[],
  isEnd: boolean,
  hasProviderResult: (id: string) => boolean,
): ReadonlySet<string> {
  const results = new Set(
    answers.flatMap(({ content }) => content.map((part) => part.type === 'tool-result' && part.toolCallId)),
  );
  const decided = decidedCalls(parts, answers);
  const decidedLast = decidedCalls(parts, isEnd ? answers.slice(-1) : []);
  return new Set(
    parts.flatMap((part) => {
      if (part.type !== 'tool-call') return [];
      const { toolCallId: id, providerExecuted } = part;
      const isRun = providerExecuted ? decided.has(id) || hasProviderResult(id) : decidedLast.has(id);
      return isRun || results.has(id) ? [id] : [];
    }),
  );
}

/** Returns the calls whose approval these messages answer. */
function decidedCalls(parts: readonly AssistantPart[], answers: readonly ToolModelMessage[]): ReadonlySet<string> {
  const ids = new Set(
    answers.flatMap(({ content }) => content.map((part) => part.type === 'tool-approval-response' && part.approvalId)),
  );
  return new Set(
    parts.flatMap((part) => (part.type === 'tool-approval-request' && ids.has(part.approvalId) ? part.toolCallId : [])),
  );
}

function wholeParts(
  parts: readonly AssistantPart[],
  complete: ReadonlySet<string>,
  called: ReadonlySet<string>,
): AssistantPart[] {
  const isMissing = (part: AssistantPart): boolean => part.type === 'tool-call' && !complete.has(part.toolCallId);
  const whole = parts.filter((part) => {
    if (part.type === 'tool-call' || part.type === 'tool-approval-request') return complete.has(part.toolCallId);
    return part.type !== 'tool-result' || called.has(part.toolCallId);
  });
  if (!parts.some(isMissing)) return whole;
  return whole.slice(0, whole.findLastIndex((part) => !isReasoning(part)) + 1);
}

/** Returns the results and answers to approvals that belong to the parts of a message. */
function answersTo(parts: readonly AssistantPart[], { content }: ToolModelMessage): AnswerPart[] {
  return content.filter((answer) =>
    parts.some((part) =>
      answer.type === 'tool-result'
        ? part.type === 'tool-call' && part.toolCallId === answer.toolCallId
        : part.type === 'tool-approval-request' && part.approvalId === answer.approvalId,
    ),
  );
}
