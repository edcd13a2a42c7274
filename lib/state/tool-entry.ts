import { checkInput } from '../common/check-input.js';
import { mintId } from '../common/ids.js';
import { assertWithin, isPlainObject, type JsonObject, type JsonValue, toJsonFields } from '../common/json.js';
import { assertNotSet } from '../common/unset-keys.js';
import { namespaceOf } from '../ledger/namespaces.js';
import { ToolPatchOptions } from './state.inputs.js';
import { type StateAppend, type StateChange, type StateName } from '../ledger/state.store.js';

/** The namespace of tool entries. Reserved for this module. */
export const TOOLS_NAMESPACE = namespaceOf('tools');

/** The stored entry of a tool under one key. */
export interface StoredToolEntry {
  readonly value: JsonValue;
  readonly secret: boolean;
}

/** A stored change of an entry. It describes the operation, not its result. */
export type ToolChange =
  | {
      readonly type: 'set';
      readonly value: JsonValue;
      readonly secret: boolean;
      /** Milliseconds until the entry expires. Absent: it does not expire. */
      readonly ttlMs?: number;
    }
  /** Ignored if the value is not an object. */
  | {
      readonly type: 'patch';
      readonly patch: JsonObject;
      /** Keys to remove. */
      readonly unset?: readonly string[];
      /** Applies to an entry that the patch creates. Absent: not secret. */
      readonly secret?: boolean;
      /** Applies to an entry that the patch creates. */
      readonly ttlMs?: number;
      /** Ignored if the result as JSON exceeds this size. */
      readonly maxBytes: number;
    }
  /** Ignored if the value is not a number, or the result is not finite. */
  | { readonly type: 'increment'; readonly by: number; readonly secret?: boolean; readonly ttlMs?: number }
  | { readonly type: 'delete' };

/** A merge at the first level. */
export type ToolPatch = ToolChange & { readonly type: 'patch' };

export function toolEntryName(tool: string, key: string): StateName {
  return { namespace: TOOLS_NAMESPACE, scope: tool, key };
}

/**
 * Validates a caller's patch.
 * @param maxBytes the maximum size of the patch, and of the resulting entry, as JSON
 * @throws InvalidInputError, StateSerializationError, TooLargeError
 */
export function toToolPatch(fields: unknown, options: ToolPatchOptions, maxBytes: number): ToolPatch {
  const patch = toJsonFields(fields, 'patch');
  assertWithin(patch, maxBytes, 'The patch');
  const { unset, ...given } = checkInput(ToolPatchOptions, options, 'options');
  if (unset === undefined) return { type: 'patch', patch, maxBytes, ...given };
  assertNotSet(unset, patch, 'options.unset');
  assertWithin(unset, maxBytes, 'options.unset');
  return { type: 'patch', patch, maxBytes, ...given, unset: [...unset] };
}

/** Returns the object after a patch. */
export function mergedWith(value: Readonly<Record<string, unknown>>, { patch, unset = [] }: ToolPatch): JsonObject {
  const merged = { ...(value as JsonObject), ...patch };
  for (const key of unset) delete merged[key];
  return merged;
}

/** Returns the entry after a change. Pure. */
export function applyToolChange(stored: StoredToolEntry | null, change: ToolChange): StoredToolEntry | null {
  switch (change.type) {
    case 'set':
      return { value: change.value, secret: change.secret };
    case 'patch':
      return patched(stored, change);
    case 'increment': {
      const { value = 0, secret = change.secret ?? false } = stored ?? {};
      const sum = typeof value === 'number' ? value + change.by : NaN;
      return Number.isFinite(sum) ? { value: sum, secret } : stored;
    }
    case 'delete':
      return null;
  }
}

/** Combines the changes of one entry into one append, for a direct write or a turn's settlement. */
export function toolStateChange(tool: string, key: string, changes: readonly ToolChange[]): StateChange {
  const entries = changes as unknown as readonly JsonValue[];
  return { name: toolEntryName(tool, key), append: { id: mintId(), entries, ...lifetimeAfter(changes) } };
}

function patched(stored: StoredToolEntry | null, change: ToolPatch): StoredToolEntry | null {
  const { maxBytes, secret: secretly = false } = change;
  const { value = {}, secret = secretly } = stored ?? {};
  if (!isPlainObject(value)) return stored;
  const merged = mergedWith(value, change);
  return Buffer.byteLength(JSON.stringify(merged)) <= maxBytes ? { value: merged, secret } : stored;
}

/** Returns whether the changes create the entry, and when it expires. */
function lifetimeAfter(changes: readonly ToolChange[]): Pick<StateAppend, 'initial' | 'ttlMs' | 'keepExpiry'> {
  // Changes before the last `set` or `delete` have no effect on the expiry.
  const begins = changes.findLastIndex(({ type }) => type === 'set' || type === 'delete');
  const begin = changes[begins];
  const creates = changes.some(({ type }) => type !== 'delete');
  const initial = creates ? { initial: null } : {};
  // A deleted entry expires immediately.
  if (begin?.type === 'delete' && begins === changes.length - 1) return { ...initial, ttlMs: 0 };
  const creator = begin?.type === 'set' ? begin : changes[begins + 1];
  const ttl = creator && creator.type !== 'delete' && creator.ttlMs !== undefined ? { ttlMs: creator.ttlMs } : {};
  return { ...initial, ...ttl, ...(begin ? {} : { keepExpiry: true }) };
}
