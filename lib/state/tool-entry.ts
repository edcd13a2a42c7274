import { checkInput } from '../common/check-input.js';
import { mintId } from '../common/ids.js';
import { assertWithin, isPlainObject, type JsonObject, type JsonValue, toJsonFields } from '../common/json.js';
import { assertNotSet } from '../common/unset-keys.js';
import { namespaceOf } from '../ledger/module-namespace.js';
import { ToolPatchOptions } from './state.inputs.js';
import { type StateAppend, type StateChange, type StateName } from '../ledger/state.store.js';

/** Where entries of tools are kept, and nothing else may be. */
export const TOOLS_NAMESPACE = namespaceOf('tools');

/** What a tool keeps under one key. */
export interface StoredToolEntry {
  readonly value: JsonValue;
  readonly secret: boolean;
}

/** A change of an entry, as it is stored: it says what, and not what follows from it. */
export type ToolChange =
  | {
      readonly type: 'set';
      readonly value: JsonValue;
      readonly secret: boolean;
      /** Left out: it does not expire. */
      readonly ttlMs?: number;
    }
  /** Does not fit what is no object. */
  | {
      readonly type: 'patch';
      readonly patch: JsonObject;
      /** Keys to remove. */
      readonly unset?: readonly string[];
      /** Of an entry that it makes; left out: it is none. */
      readonly secret?: boolean;
      /** Of an entry that it makes. */
      readonly ttlMs?: number;
      /** Does not fit when the value gets larger as JSON. */
      readonly maxBytes: number;
    }
  /** Does not fit what is no number, nor what is none any more then. */
  | { readonly type: 'increment'; readonly by: number; readonly secret?: boolean; readonly ttlMs?: number }
  | { readonly type: 'delete' };

/** A merge at the first level. */
export type ToolPatch = ToolChange & { readonly type: 'patch' };

export function toolEntryName(tool: string, key: string): StateName {
  return { namespace: TOOLS_NAMESPACE, scope: tool, key };
}

/**
 * The patch that a caller asks for.
 * @param maxBytes of the patch, and of the entry after it, as JSON
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

/** What a patch makes of an object. */
export function mergedWith(value: Readonly<Record<string, unknown>>, { patch, unset = [] }: ToolPatch): JsonObject {
  const merged = { ...(value as JsonObject), ...patch };
  for (const key of unset) delete merged[key];
  return merged;
}

/** What a change makes of an entry. Pure. */
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

/** The changes of one entry as one append, at once or in a turn's settlement. */
export function toolStateChange(tool: string, key: string, changes: readonly ToolChange[]): StateChange {
  const entries = changes as unknown as readonly JsonValue[];
  return { name: toolEntryName(tool, key), append: { id: mintId(), entries, ...lifeAfter(changes) } };
}

function patched(stored: StoredToolEntry | null, change: ToolPatch): StoredToolEntry | null {
  const { maxBytes, secret: secretly = false } = change;
  const { value = {}, secret = secretly } = stored ?? {};
  if (!isPlainObject(value)) return stored;
  const merged = mergedWith(value, change);
  return Buffer.byteLength(JSON.stringify(merged)) <= maxBytes ? { value: merged, secret } : stored;
}

/** Whether the entry is made by the changes, and when it expires. */
function lifeAfter(changes: readonly ToolChange[]): Pick<StateAppend, 'initial' | 'ttlMs' | 'keepExpiry'> {
  const begins = changes.findLastIndex(({ type }) => type === 'set' || type === 'delete');
  const begin = changes[begins];
  const makes = changes.some(({ type }) => type !== 'delete');
  const initial = makes ? { initial: null } : {};
  // What is deleted is not there any more in the same moment.
  if (begin?.type === 'delete' && begins === changes.length - 1) return { ...initial, ttlMs: 0 };
  const maker = begin?.type === 'set' ? begin : changes[begins + 1];
  const ttl = maker && maker.type !== 'delete' && maker.ttlMs !== undefined ? { ttlMs: maker.ttlMs } : {};
  return { ...initial, ...ttl, ...(begin ? {} : { keepExpiry: true }) };
}
