import { type MessageDraft } from 'nestjs-agent-sessions';

export const called = (...ids: string[]): MessageDraft => ({
  role: 'assistant',
  content: null,
  toolCalls: ids.map((id) => ({ id, name: 'find', arguments: '{}' })),
});
const found = (toolCallId: string): MessageDraft => ({ role: 'tool', toolCallId, content: `found ${toolCallId}` });

/** The messages of an answer, one per iteration: parallel calls, an id that is used again, and an answer. */
export const ANSWER: readonly MessageDraft[] = [
  called('a', 'b'),
  found('b'),
  found('a'),
  called('a'),
  found('a'),
  { role: 'assistant', content: 'Found.' },
];

export function isInterrupted({ metadata }: MessageDraft): boolean {
  return metadata?.error === 'interrupted';
}

/** Returns the calls without a result, in their order. */
export function openIn(messages: readonly MessageDraft[]): string[] {
  let open: string[] = [];
  for (const { toolCalls = [], toolCallId } of messages) {
    open = [...open.filter((id) => id !== toolCallId), ...toolCalls.map(({ id }) => id)];
  }
  return open;
}
