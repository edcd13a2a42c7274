import fc from 'fast-check';
import { type ConversationMessage, type MessageDraft } from 'nestjs-agent-sessions';

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
