/** What begins so is this package's own. */
export const RESERVED_PREFIX = 'agent-sessions:';

/** Where a state module of this package keeps its documents. */
export function namespaceOf(module: string): string {
  return `${RESERVED_PREFIX}${module}`;
}

/** Where heads of conversations are kept, and nothing else may be. */
export const CONVERSATION_NAMESPACE = namespaceOf('conversation');

export function moduleOf(namespace: string): string {
  return namespace.startsWith(RESERVED_PREFIX) ? namespace.slice(RESERVED_PREFIX.length) : namespace;
}
