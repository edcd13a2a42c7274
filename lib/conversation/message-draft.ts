import { assertId } from '../common/ids.js';
import { fieldsOf, isFields, toJson } from '../common/json.js';
import { unknownKeyRule } from '../common/known-keys.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type MessageDraft, type MessageRole } from '../ledger/message.js';

const ROLES: readonly MessageRole[] = ['system', 'user', 'assistant', 'tool'];
const KEYS = ['role', 'content', 'name', 'metadata', 'toolCalls', 'toolCallId', 'id'];
/** The fields that the log adds to a message. */
const LOG_KEYS = ['position', 'createdAt', 'orchestrator', 'turnId', 'replaces'];

/**
 * Validates and copies messages of a handler or a caller.
 * @param path names them in errors
 * @throws InvalidInputError for an invalid shape; StateSerializationError for values that JSON cannot represent
 */
export function toMessageDrafts(values: unknown, path: string): MessageDraft[] {
  if (!Array.isArray(values)) throw new InvalidInputError(path, 'must be an array of messages.');
  return values.map((value, index) => toMessageDraft(value, `${path}[${index}]`));
}

/** Works like {@link toMessageDrafts}, but also accepts messages from a log. */
export function toHistory(values: unknown, path: string): MessageDraft[] {
  if (!Array.isArray(values)) throw new InvalidInputError(path, 'must be an array of messages.');
  const drafts = values.map((value: unknown) =>
    isFields(value) ? Object.fromEntries(Object.entries(value).filter(([key]) => !LOG_KEYS.includes(key))) : value,
  );
  return toMessageDrafts(drafts, path);
}

function toMessageDraft(value: unknown, path: string): MessageDraft {
  if (!isFields(value)) throw new InvalidInputError(path, 'must be an object with role and content.');
  const check = (ok: boolean, key: string, rule: string): void => {
    if (!ok) throw new InvalidInputError(`${path}.${key}`, rule);
  };
  const { role, content, name, metadata, toolCalls, toolCallId, id } = value;
  const unknown = Object.keys(value).find((key) => !KEYS.includes(key));
  if (unknown !== undefined) throw new InvalidInputError(`${path}.${unknown}`, unknownKeyRule(unknown, KEYS));
  check(ROLES.includes(role as MessageRole), 'role', `must be one of ${ROLES.join(', ')}.`);
  check(isContent(content), 'content', 'must be a string, an array of parts that each have a type, or null.');
  check(name === undefined || typeof name === 'string', 'name', 'must be a string.');
  check(metadata === undefined || isFields(metadata), 'metadata', 'must be an object.');
  check(toolCalls === undefined || isToolCalls(toolCalls), 'toolCalls', 'must be an array of { id, name, arguments }.');
  check(toolCallId === undefined || typeof toolCallId === 'string', 'toolCallId', 'must be a string.');
  if (id !== undefined) assertId(id, `${path}.id`);
  const plain = {
    ...value,
    ...(Array.isArray(content) ? { content: content.map(fieldsOf) } : {}),
    ...(Array.isArray(toolCalls) ? { toolCalls: toolCalls.map(fieldsOf) } : {}),
    ...(metadata === undefined ? {} : { metadata: fieldsOf(metadata) }),
  };
  return toJson(plain, path) as unknown as MessageDraft;
}

function isContent(content: unknown): boolean {
  if (content === null || typeof content === 'string') return true;
  return Array.isArray(content) && content.every((part) => isFields(part) && typeof part.type === 'string');
}

function isToolCalls(calls: unknown): boolean {
  return (
    Array.isArray(calls) &&
    calls.every(
      (call) =>
        isFields(call) &&
        typeof call.id === 'string' &&
        typeof call.name === 'string' &&
        (typeof call.arguments === 'string' || isFields(call.arguments)),
    )
  );
}
