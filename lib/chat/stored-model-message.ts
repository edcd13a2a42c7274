import { isPlainObject, type JsonObject, toJson } from '../common/json.js';
import { type MessageDraft, type MessageRole, type MessageToolCall } from '../ledger/message.js';
import { decode, encode } from './stored-value.js';

/** A part of a model message. `type` decides which other fields it has. */
export interface ModelPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A message as a model receives it: the `ModelMessage` of ai 6 and 7, without their types. */
export interface ModelMessageLike {
  readonly role: MessageRole;
  readonly content: string | readonly ModelPart[];
  readonly providerOptions?: unknown;
}

/**
 * Returns the draft that stores a model message. Its content is the message's parts, and `metadata.modelMessage`
 * distinguishes them from the parts of a UI message. Tool calls are stored as `toolCalls`, so that windows and
 * summaries keep them together with their results; the content has the position of each call. A call that the provider
 * executes stays in the content, because its result is there as well.
 * @param path names the message in errors
 * @throws StateSerializationError for values that {@link encode} does not support
 */
export function storeModelMessage({ role, content, providerOptions }: ModelMessageLike, path: string): MessageDraft {
  const parts = typeof content === 'string' ? [] : content;
  const calls = parts.filter(isCall);
  const results = parts.filter(({ type }) => type === 'tool-result');
  const draft = {
    role,
    content: typeof content === 'string' ? content : content.map((part) => (isCall(part) ? toPlaceholder(part) : part)),
    toolCalls: calls.length === 0 ? undefined : calls.map(toToolCall),
    toolCallId: role === 'tool' && results.length === 1 ? results[0].toolCallId : undefined,
    metadata: typeof content === 'string' && !providerOptions ? undefined : { modelMessage: { providerOptions } },
  };
  return toJson(encode(draft), path) as unknown as MessageDraft;
}

/** Returns whether a message has the calls or the result of a tool, or was stored by {@link storeModelMessage}. */
export function isStoredModelMessage({ role, toolCalls = [], metadata }: MessageDraft): boolean {
  return role === 'tool' || toolCalls.length > 0 || isPlainObject(metadata?.modelMessage);
}

/**
 * Returns the model message that {@link storeModelMessage} stored, or that corresponds to a message with a string,
 * `toolCalls` or the result of a tool.
 * @param calls the latest tool calls before the message
 */
export function readModelMessage(message: MessageDraft, calls: readonly MessageToolCall[]): ModelMessageLike {
  const { role, content, metadata, toolCalls = [] } = message;
  if (isPlainObject(metadata?.modelMessage)) {
    const { providerOptions } = decode(metadata.modelMessage) as Pick<ModelMessageLike, 'providerOptions'>;
    const own = toolCalls.map((call) => decode(toCallPart(call) as JsonObject) as ModelPart);
    const parts = typeof content === 'string' ? content : (content ?? []).map((part) => readPart(part, own));
    return { role, content: parts, ...(providerOptions ? { providerOptions } : {}) };
  }
  if (role === 'tool') return { role, content: [toResultPart(message, calls)] };
  if (typeof content === 'string' && toolCalls.length === 0) return { role, content };
  return { role, content: [...textPartsOf(content), ...toolCalls.map(toCallPart)] };
}

function isCall({ type, providerExecuted }: ModelPart): boolean {
  return type === 'tool-call' && providerExecuted !== true;
}

/** Returns the part that marks the position of a call in the content, without the fields that `toolCalls` stores. */
function toPlaceholder(call: ModelPart): ModelPart {
  return { ...call, toolName: undefined, input: undefined };
}

function readPart(stored: ModelPart, calls: readonly ModelPart[]): ModelPart {
  const part = decode(stored as JsonObject) as ModelPart;
  const call = isCall(part) && calls.find(({ toolCallId }) => toolCallId === part.toolCallId);
  return call ? { ...part, ...call } : part;
}

function toToolCall({ toolCallId, toolName, input }: ModelPart): object {
  const encoded = isPlainObject(input) ? input : (JSON.stringify(encode(input)) ?? '');
  return { id: toolCallId, name: toolName, arguments: encoded };
}

function toCallPart({ id, name, arguments: given }: MessageToolCall): ModelPart {
  return { type: 'tool-call', toolCallId: id, toolName: name, input: typeof given === 'string' ? parse(given) : given };
}

/** Parses the arguments of a call. Models send an empty string for none, and sometimes invalid JSON. */
function parse(text: string): unknown {
  try {
    return text.trim() === '' ? {} : (JSON.parse(text) as unknown);
  } catch {
    return text;
  }
}

/** Returns the result of a tool. A result without an id belongs to the last call; `metadata.error` marks an error. */
function toResultPart(
  { content, name, toolCallId, metadata }: MessageDraft,
  calls: readonly MessageToolCall[],
): ModelPart {
  const call = toolCallId === undefined ? calls.at(-1) : calls.find(({ id }) => id === toolCallId);
  const [text, json] = metadata?.error === undefined ? ['text', 'json'] : ['error-text', 'error-json'];
  const output = typeof content === 'string' ? { type: text, value: content } : { type: json, value: content };
  return { type: 'tool-result', toolCallId: toolCallId ?? call?.id, toolName: call?.name ?? name, output };
}

function textPartsOf(content: MessageDraft['content']): ModelPart[] {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []);
  return parts.flatMap(({ type, text }) =>
    type === 'text' && typeof text === 'string' && text !== '' ? { type, text } : [],
  );
}
