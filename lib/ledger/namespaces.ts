import { type JsonValue } from '../common/json.js';
import { type TurnSettlement } from './turn.store.js';

/** The prefix of namespaces that are reserved for this package. */
export const RESERVED_PREFIX = 'agent-sessions:';

/** Returns the namespace of a built-in state module. */
export function namespaceOf(module: string): string {
  return `${RESERVED_PREFIX}${module}`;
}

/** The namespace of conversation heads. Reserved for them. */
export const CONVERSATION_NAMESPACE = namespaceOf('conversation');

export function moduleOf(namespace: string): string {
  return namespace.startsWith(RESERVED_PREFIX) ? namespace.slice(RESERVED_PREFIX.length) : namespace;
}

/** Returns the namespaces that a settlement writes to. Messages belong to the conversation's namespace. */
export function writtenNamespaces({ messages, stateChanges = [] }: TurnSettlement): string[] {
  const ofMessages = messages.length > 0 ? [CONVERSATION_NAMESPACE] : [];
  return [...new Set([...ofMessages, ...stateChanges.map(({ name }) => name.namespace)])];
}

/**
 * Returns a settlement without its writes to some namespaces. Its report names the unchanged state
 * (STA-23).
 */
export function withoutWritesTo(settlement: TurnSettlement, namespaces: readonly string[]): TurnSettlement {
  const { messages, stateChanges = [], report } = settlement;
  const before = (report?.dropped ?? []) as readonly JsonValue[];
  return {
    ...settlement,
    report: { ...report, dropped: [...before, ...namespaces.map(moduleOf)] },
    messages: namespaces.includes(CONVERSATION_NAMESPACE) ? [] : messages,
    stateChanges: stateChanges.filter(({ name }) => !namespaces.includes(name.namespace)),
  };
}
