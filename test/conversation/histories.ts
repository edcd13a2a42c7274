import fc from 'fast-check';
import { type ConversationMessage, type MessageDraft, type MessagePart } from 'nestjs-agent-sessions';

const NOW = '2026-11-01T12:00:00.000Z';

/** Few ids, so that they are reused, even while a call is open. */
const callId = fc.constantFrom('a', 'b', 'c', 'd');

const draft: fc.Arbitrary<MessageDraft> = fc.oneof(
  { weight: 2, arbitrary: fc.string({ maxLength: 40 }).map((content): MessageDraft => ({ role: 'user', content })) },
  { weight: 1, arbitrary: fc.constant<MessageDraft>({ role: 'assistant', content: 'so' }) },
  { weight: 1, arbitrary: fc.constant<MessageDraft>({ role: 'system', content: 'note' }) },
  {
    weight: 3,
    arbitrary: fc.uniqueArray(callId, { minLength: 1, maxLength: 3 }).map((ids): MessageDraft => ({
      role: 'assistant',
      content: null,
      toolCalls: ids.map((id) => ({ id, name: 'find', arguments: '{"q":"order"}' })),
    })),
  },
  { weight: 5, arbitrary: callId.map((toolCallId): MessageDraft => ({ role: 'tool', content: 'found', toolCallId })) },
);

/** Results that a message of the user brings, with or without text. */
const bringing: fc.Arbitrary<MessageDraft> = fc
  .tuple(fc.uniqueArray(callId, { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([ids, withText]) => ({
    role: 'user',
    content: [
      ...ids.map((toolCallId) => ({ type: 'tool-result', toolCallId, output: 'found' })),
      ...(withText ? [{ type: 'text', text: 'Here.' }] : []),
    ],
  }));

/** A log as {@link anyLog}, in which clients have run tools and bring their results. */
export const anyClientLog: fc.Arbitrary<ConversationMessage[]> = fc
  .array(fc.oneof({ weight: 4, arbitrary: draft }, { weight: 1, arbitrary: bringing }), { maxLength: 30 })
  .map((drafts) =>
    drafts.map((message, index) => ({ ...message, id: `m${index + 1}`, position: index + 1, createdAt: NOW })),
  );

/** Lists why OpenAI or Anthropic would reject the messages: each call needs one result, directly after it. */
export function rejectedCalls(messages: readonly MessageDraft[]): string[] {
  const problems: string[] = [];
  let open: string[] = [];
  const close = (): void => {
    problems.push(...open.map((id) => `${id} has no result`));
    open = [];
  };
  for (const { role, content, toolCalls = [], toolCallId } of messages) {
    const parts = role === 'user' && Array.isArray(content) ? content : [];
    const results =
      role === 'tool'
        ? [toolCallId]
        : (parts as MessagePart[]).flatMap((part) => (part.toolCallId as string | undefined) ?? []);
    for (const id of results) {
      if (!open.includes(id as string)) problems.push(`result of ${String(id)} without a call`);
      open = open.filter((each) => each !== id);
    }
    if (role !== 'tool') close();
    open.push(...toolCalls.map(({ id }) => id));
  }
  close();
  return problems;
}

/** Any log: parallel calls, results between other messages, results without a call, calls without results. */
export const anyLog: fc.Arbitrary<ConversationMessage[]> = fc
  .tuple(fc.boolean(), fc.array(draft, { maxLength: 30 }))
  .map(([led, drafts]) => {
    const all: MessageDraft[] = [...(led ? [{ role: 'system', content: 'You are a desk.' } as const] : []), ...drafts];
    return all.map((message, index) => ({ ...message, id: `m${index + 1}`, position: index + 1, createdAt: NOW }));
  });

/** Maps each result to the call that it answers: the latest one before it with its id. Both by message id. */
export function callsOfResults(messages: readonly MessageDraft[]): Map<string, string | null> {
  return new Map(
    messages.flatMap((message, index): [string, string | null][] => {
      if (message.role !== 'tool') return [];
      const call = messages
        .slice(0, index)
        .findLast(({ toolCalls }) => toolCalls?.some(({ id }) => id === message.toolCallId));
      return [[message.id ?? '', call?.id ?? null]];
    }),
  );
}

/** Lists the broken pairs of calls and results in a window, as a model would see them. */
export function brokenPairs(window: readonly MessageDraft[], log: readonly MessageDraft[]): string[] {
  const inWindow = callsOfResults(window);
  const orphans = [...inWindow].flatMap(([result, call]) => (call === null ? [`${result} has no call`] : []));
  const answered = new Set([...inWindow].map(([result, call]) => `${call}:${idOf(result, window)}`));
  const lost = [...callsOfResults(log)].flatMap(([result, call]) => {
    if (call === null || !window.some(({ id }) => id === call)) return [];
    return answered.has(`${call}:${idOf(result, log)}`) ? [] : [`${call} lost ${result}`];
  });
  return [...orphans, ...lost];
}

function idOf(result: string, messages: readonly MessageDraft[]): string | undefined {
  return messages.find(({ id }) => id === result)?.toolCallId;
}
