import { isPlainObject } from '../common/json.js';

/**
 * Merges a message's metadata as clients do: objects at every level, while arrays and all other values are replaced.
 */
export function mergeMetadata(metadata: unknown, change: unknown): unknown {
  return change === undefined || change === null ? metadata : merged(metadata, change);
}

function merged(value: unknown, change: unknown): unknown {
  if (!isPlainObject(value) || !isPlainObject(change)) return change;
  const changes = Object.entries(change).map(([key, item]) => [key, merged(value[key], item)] as const);
  return { ...value, ...Object.fromEntries(changes) };
}
