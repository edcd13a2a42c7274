import { readFileSync } from 'node:fs';
import { type JsonValue, type MessageRole } from 'nestjs-agent-sessions';

/** A line of a recorded file: one conversation that starts with a user message, after optional system messages. */
export interface RecordedConversation {
  readonly id: string;
  readonly userId?: string;
  readonly messages: readonly RecordedMessage[];
}

/** A message in the format of OpenAI's chat API; `state` and `calls` are annotations of data sets. */
export interface RecordedMessage {
  readonly role: MessageRole;
  readonly content: string | null;
  readonly name?: string;
  readonly tool_calls?: readonly RecordedToolCall[];
  readonly tool_call_id?: string;
  readonly state?: JsonValue;
  readonly calls?: JsonValue;
}

export interface RecordedToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** One message of the user and all messages up to the next one. */
export interface RecordedTurn {
  /** System messages before the first turn's message. */
  readonly leading: readonly RecordedMessage[];
  readonly user: RecordedMessage;
  readonly rest: readonly RecordedMessage[];
}

/** An error in a recorded file, shown to its author. */
export class RecordError extends Error {}

/** Allowed fields of a message besides role and content. Other fields cannot be stored and are rejected. */
const KEYS: Readonly<Record<MessageRole, readonly string[]>> = {
  system: [],
  user: ['state'],
  assistant: ['tool_calls', 'calls'],
  tool: ['tool_call_id', 'name'],
};

/** @throws RecordError naming the line */
export function readRecords(file: string): RecordedConversation[] {
  const lines = readText(file).split('\n');
  const ids = new Set<string>();
  const records = lines.flatMap((line, index) => {
    if (line.trim() === '') return [];
    const record = parseRecord(line, `${file}, line ${index + 1}`);
    if (ids.has(record.id)) throw new RecordError(`${file}, line ${index + 1}: the id ${record.id} was there before.`);
    ids.add(record.id);
    return [record];
  });
  if (records.length === 0) throw new RecordError(`${file} has no conversations.`);
  return records;
}

export function turnsOf({ messages }: RecordedConversation): RecordedTurn[] {
  const starts = messages.flatMap(({ role }, index) => (role === 'user' ? [index] : []));
  return starts.map((start, turn) => ({
    leading: turn === 0 ? messages.slice(0, start) : [],
    user: messages[start],
    rest: messages.slice(start + 1, starts[turn + 1]),
  }));
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new RecordError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

function parseRecord(line: string, place: string): RecordedConversation {
  const check: Check = (ok, what, rule) => {
    if (!ok) throw new RecordError(`${place}: ${what} ${rule}`);
  };
  const record = parseJson(line, place);
  check(isObject(record), 'a conversation', 'must be an object with id and messages.');
  const { id, userId, messages } = record as Record<string, unknown>;
  check(isText(id), 'id', 'must be a string.');
  check(userId === undefined || isText(userId), 'userId', 'must be a string.');
  check(Array.isArray(messages), 'messages', 'must be an array.');
  (messages as unknown[]).forEach((message, index) => checkMessage(message, `messages[${index}]`, check));
  checkOrder(messages as RecordedMessage[], check);
  return record as RecordedConversation;
}

function parseJson(line: string, place: string): unknown {
  try {
    return JSON.parse(line);
  } catch (error) {
    throw new RecordError(`${place} is not JSON: ${(error as Error).message}`);
  }
}

type Check = (ok: boolean, what: string, rule: string) => void;

function checkMessage(message: unknown, path: string, check: Check): void {
  check(isObject(message), path, 'must be a message, an object with role and content.');
  const { role, content, ...rest } = message as Record<string, unknown>;
  check(Object.hasOwn(KEYS, role as string), `${path}.role`, `must be one of ${Object.keys(KEYS).join(', ')}.`);
  for (const key of Object.keys(rest)) {
    check(
      KEYS[role as MessageRole].includes(key),
      `${path}.${key}`,
      `is not a known key of a ${role as string} message.`,
    );
  }
  check(
    typeof content === 'string' || (content === null && role === 'assistant'),
    `${path}.content`,
    'must be a string.',
  );
  check(role !== 'user' || (content as string).trim() !== '', `${path}.content`, 'must not be empty.');
  check(role !== 'tool' || isText(rest.tool_call_id), `${path}.tool_call_id`, 'must be a string.');
  check(rest.name === undefined || isText(rest.name), `${path}.name`, 'must be a string.');
  const calls = rest.tool_calls;
  check(
    calls === undefined || (Array.isArray(calls) && calls.every(isToolCall)),
    `${path}.tool_calls`,
    "must be an array of { id, type: 'function', function: { name, arguments } }.",
  );
}

function checkOrder(messages: readonly RecordedMessage[], check: Check): void {
  const first = messages.findIndex(({ role }) => role !== 'system');
  check(messages[first]?.role === 'user', 'messages', 'must begin with a user message, after system messages at most.');
  const late = messages.findIndex(({ role }, index) => role === 'system' && index > first);
  check(late === -1, `messages[${late}]`, 'is a system message; those stand only at the beginning.');
}

function isToolCall(call: unknown): boolean {
  if (!hasOnly(call, ['id', 'type', 'function']) || !hasOnly(call.function, ['name', 'arguments'])) return false;
  return (
    isText(call.id) &&
    call.type === 'function' &&
    isText(call.function.name) &&
    typeof call.function.arguments === 'string'
  );
}

function hasOnly(value: unknown, keys: readonly string[]): value is Record<string, unknown> {
  return isObject(value) && Object.keys(value).every((key) => keys.includes(key));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
