import { type JsonObject, type ConversationMessage, type MessageDraft, type TurnInput } from 'nestjs-agent-sessions';
import { type RecordedMessage } from './record.js';

/** Converts recorded messages to those of the module and back without loss. Annotations become metadata. */

export function toInput({ content, state }: RecordedMessage): TurnInput {
  return { text: content ?? '', ...metadata({ state }) };
}

export function toDraft({ role, content, name, tool_calls, tool_call_id, calls }: RecordedMessage): MessageDraft {
  return {
    role,
    content,
    ...(name === undefined ? {} : { name }),
    ...(tool_calls && { toolCalls: tool_calls.map(({ id, function: called }) => ({ id, ...called })) }),
    ...(tool_call_id === undefined ? {} : { toolCallId: tool_call_id }),
    ...metadata({ calls }),
  };
}

export function toRecorded({
  role,
  content,
  name,
  toolCalls,
  toolCallId,
  metadata = {},
}: ConversationMessage): RecordedMessage {
  return {
    role,
    content: content as string | null,
    ...(name === undefined ? {} : { name }),
    ...(toolCalls && {
      tool_calls: toolCalls.map(({ id, ...called }) => ({
        id,
        type: 'function',
        function: { name: called.name, arguments: called.arguments as string },
      })),
    }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
    ...metadata,
  };
}

function metadata(annotations: Partial<JsonObject>): { metadata?: JsonObject } {
  const present = Object.entries(annotations).filter(([, value]) => value !== undefined);
  return present.length === 0 ? {} : { metadata: Object.fromEntries(present) as JsonObject };
}
