import { checkInput } from '../common/check-input.js';
import { mintId } from '../common/ids.js';
import { assertWithin, isPlainObject, type JsonObject, type JsonValue, toJsonFields } from '../common/json.js';
import { InvalidInputError, TooLargeError } from '../common/sessions.error.js';
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
type ToolIncrement = ToolChange & { readonly type: 'increment' };

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

/** Returns the error for the first change that does not fit the entry, which would ignore it; `null` if all fit. */
export function misfitIn(stored: StoredToolEntry | null, changes: readonly ToolChange[]): Error | null {
  let entry = stored;
  for (const change of changes) {
    const after = applyToolChange(entry, change);
    if (after === entry && change.type === 'patch') return patchMisfit(entry?.value, change);
    if (after === entry && change.type === 'increment') return incrementMisfit(entry?.value);
    entry = after;
  }
  return null;
}

/** Returns the error for a patch that does not fit a stored value. */
export function patchMisfit(value: JsonValue = {}, patch: ToolPatch): Error {
  if (!isPlainObject(value))
    return new InvalidInputError('patch', 'requires a stored object. The stored value is not an object.');
  const bytes = Buffer.byteLength(JSON.stringify(mergedWith(value, patch)));
  return new TooLargeError('The merged value', bytes, patch.maxBytes);
}

/** Returns the error for an increment that does not fit a stored value. */
export function incrementMisfit(value: JsonValue | undefined): Error {
  const problem =
    typeof value === 'number'
      ? 'makes the number too large. The result must be finite.'
      : 'requires a stored number. The stored value is not a number.';
  return new InvalidInputError('by', problem);
}

/** Combines the changes of one entry in a turn, so that the stored document does not grow with their number. */
export function combineChanges(changes: readonly ToolChange[]): readonly ToolChange[] {
  const combined: ToolChange[] = [];
  for (const change of changes.slice(Math.max(lastReplacement(changes), 0))) {
    const last = combined.at(-1);
    const both = last && combinationOf(last, change);
    if (both) combined[combined.length - 1] = both;
    else combined.push(change);
  }
  return combined;
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

/** Returns one change with the effect of two; `null` if none has it. */
function combinationOf(first: ToolChange, second: ToolChange): ToolPatch | ToolIncrement | null {
  if (first.type === 'increment' && second.type === 'increment') {
    const by = first.by + second.by;
    return Number.isFinite(by) ? { ...first, by } : null;
  }
  if (first.type !== 'patch' || second.type !== 'patch') return null;
  const { patch, unset = [] } = first;
  const earlier = unset.filter((key) => !Object.hasOwn(second.patch, key));
  return { ...first, patch: mergedWith(patch, second), unset: [...new Set([...earlier, ...(second.unset ?? [])])] };
}

/** Returns the index of the last change that does not depend on the entry before it, or -1. */
function lastReplacement(changes: readonly ToolChange[]): number {
  return changes.findLastIndex(({ type }) => type === 'set' || type === 'delete');
}

/** Returns whether the changes create the entry, and when it expires. */
function lifetimeAfter(changes: readonly ToolChange[]): Pick<StateAppend, 'initial' | 'ttlMs' | 'keepExpiry'> {
  // Changes before the last `set` or `delete` have no effect on the expiry.
  const begins = lastReplacement(changes);
  const begin = changes[begins];
  const creates = changes.some(({ type }) => type !== 'delete');
  const initial = creates ? { initial: null } : {};
  // A deleted entry expires immediately.
  if (begin?.type === 'delete' && begins === changes.length - 1) return { ...initial, ttlMs: 0 };
  const creator = begin?.type === 'set' ? begin : changes[begins + 1];
  const ttl = creator && creator.type !== 'delete' && creator.ttlMs !== undefined ? { ttlMs: creator.ttlMs } : {};
  return { ...initial, ...ttl, ...(begin ? {} : { keepExpiry: true }) };
}
