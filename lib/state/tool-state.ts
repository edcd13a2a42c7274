import { checkInput } from '../common/check-input.js';
import { assertId, assertName } from '../common/ids.js';
import { type JsonValue, stringifyWithin, toJson } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { addressOf, ModuleDocuments, type ModuleValue } from './module-documents.js';
import { listDocuments, type StatePage } from './state-data.js';
import { ToolEntryOptions, type ToolPatchOptions, ToolQuery, ToolSetOptions } from './state.inputs.js';
import { type StateEntry, type StateName, type StateStore } from '../ledger/state.store.js';
import {
  applyToolChange,
  incrementMisfit,
  misfitIn,
  patchMisfit,
  type StoredToolEntry,
  type ToolChange,
  toolEntryName,
  type ToolPatch,
  TOOLS_NAMESPACE,
  toolStateChange,
  toToolPatch,
} from './tool-entry.js';
import { valueOf } from './module-document.js';

/** Patches with at least this many characters of JSON are checked against the stored value before they are written. */
const LARGE = 4096;

/** An entry of a tool in a session (STA-04). */
export interface ToolEntry {
  readonly tool: string;
  readonly key: string;
  readonly value: JsonValue;
  /** Increases with every change, and possibly with rejected ones. A recreated entry never has an earlier version. */
  readonly version: number;
  /** True if the value is excluded from descriptions, exports and logs. */
  readonly secret: boolean;
  /** ISO-8601, by the store's clock. */
  readonly createdAt: string;
  /** ISO-8601. Absent if the entry does not expire. */
  readonly expiresAt?: string;
}

/**
 * Stores the data of tools per session: caches, counters, cursors, credentials (STA-04). Each write is one atomic
 * operation of the store, so concurrent writes are not lost. A large patch is compared with the stored value first, in a
 * separate read. Values must be JSON and are copied on input and output.
 *
 * All methods reject with InvalidInputError for invalid ids and names, and with StoreUnavailableError if the store does not respond.
 */
export class ToolState {
  private readonly documents: ModuleDocuments<StoredToolEntry, ToolChange>;

  /** @param maxBytes the maximum size of a value as JSON */
  constructor(
    private readonly store: StateStore,
    private readonly maxBytes: number,
  ) {
    this.documents = new ModuleDocuments(store, applyToolChange);
  }

  /** Returns the entry, or `null` if it does not exist or has expired. */
  async get(sessionId: string, tool: string, key: string): Promise<ToolEntry | null> {
    const read = await this.documents.read(sessionId, nameOf(tool, key));
    return read && toToolEntry(tool, key, read);
  }

  /**
   * Writes an entry and replaces an existing one.
   * @returns `null` if the stored version is not `ifVersion`; nothing was written
   * @throws StateSerializationError, TooLargeError
   */
  async set(
    sessionId: string,
    tool: string,
    key: string,
    value: unknown,
    options: ToolSetOptions = {},
  ): Promise<ToolEntry | null> {
    const address = addressOf(sessionId, nameOf(tool, key));
    const { secret = false, ...write } = checkInput(ToolSetOptions, options, 'options');
    const stored = { value: toJson(value, 'value'), secret };
    stringifyWithin(stored.value, this.maxBytes, 'The value');
    const document = await this.store.set(address, stored, write);
    return document && toToolEntry(tool, key, { value: stored, document });
  }

  /**
   * Merges a patch into the current entry at the first level, and removes the keys of `unset` (FIX-47). `null` is a value.
   * Creates the entry when it does not exist.
   * @param options `ttlMs` and `secret` apply to a new entry; an existing one keeps its expiry and secrecy
   * @throws InvalidInputError if the stored value is not an object; TooLargeError if the result is too large; in both cases the entry
   * is unchanged. StateSerializationError
   */
  async patch(
    sessionId: string,
    tool: string,
    key: string,
    patch: Readonly<Record<string, unknown>>,
    options: ToolPatchOptions = {},
  ): Promise<ToolEntry> {
    const change = toToolPatch(patch, options, this.maxBytes);
    if (JSON.stringify(change).length > LARGE) await this.assertFits(sessionId, tool, key, change);
    const { value, entry } = await this.changed(sessionId, tool, key, change);
    if (entry) return entry;
    throw patchMisfit(value, change);
  }

  /**
   * Adds to a number. Creates the entry with 0 if it does not exist.
   * @param by default 1
   * @param options apply to a new entry; an existing one keeps its expiry and secrecy
   * @throws InvalidInputError if the stored value is not a number or the result is not finite; the entry is unchanged
   */
  async increment(
    sessionId: string,
    tool: string,
    key: string,
    by = 1,
    options: ToolEntryOptions = {},
  ): Promise<ToolEntry & { readonly value: number }> {
    if (!Number.isFinite(by)) throw new InvalidInputError('by', 'must be a finite number.');
    const change = { type: 'increment', by, ...checkInput(ToolEntryOptions, options, 'options') } as const;
    const { value, entry } = await this.changed(sessionId, tool, key, change);
    if (entry) return entry as ToolEntry & { readonly value: number };
    throw incrementMisfit(value);
  }

  /** Deletes an entry. @returns whether it existed */
  async delete(sessionId: string, tool: string, key: string): Promise<boolean> {
    return this.store.delete(addressOf(sessionId, nameOf(tool, key)));
  }

  /** Lists entries by tool, then key, in the order of their UTF-8 bytes. Includes secret values. The cost depends on the page size. */
  async list(sessionId: string, query: ToolQuery = {}): Promise<StatePage<ToolEntry>> {
    assertId(sessionId, 'sessionId');
    const { tool, limit = 100, after } = checkInput(ToolQuery, query, 'query');
    const selection = { namespace: TOOLS_NAMESPACE, sessionId, ...(tool === undefined ? {} : { scope: tool }) };
    const { items, next } = await listDocuments(this.store, selection, {
      limit,
      ...(after === undefined ? {} : { after }),
    });
    return { items: items.flatMap((item) => toolEntryIn(item) ?? []), ...(next === undefined ? {} : { next }) };
  }

  /**
   * Checks a large patch before it is written. A patch that does not fit would stay in the document for a while and
   * make it grow.
   */
  private async assertFits(sessionId: string, tool: string, key: string, patch: ToolPatch): Promise<void> {
    const read = await this.documents.read(sessionId, nameOf(tool, key));
    const misfit = read && misfitIn(read.value, [patch]);
    if (misfit) throw misfit;
  }

  /** Applies a change. Returns the new entry, or only the existing value if the change did not fit. */
  private async changed(
    sessionId: string,
    tool: string,
    key: string,
    change: ToolChange,
  ): Promise<{ readonly value: JsonValue | undefined; readonly entry: ToolEntry | null }> {
    nameOf(tool, key);
    const made = await this.documents.change(sessionId, toolStateChange(tool, key, [change]));
    if (!made?.after) return { value: undefined, entry: null };
    const { after, document, changed } = made;
    return { value: after.value, entry: changed ? toToolEntry(tool, key, { value: after, document }) : null };
  }
}

/** Converts a document to the public entry; `null` if it has no value. */
export function toolEntryIn({ scope, key, document }: StateEntry): ToolEntry | null {
  const value = valueOf(document, applyToolChange);
  return value && toToolEntry(scope, key, { value, document });
}

function toToolEntry(tool: string, key: string, { value, document }: ModuleValue<StoredToolEntry>): ToolEntry {
  const { version, createdAt, expiresAt } = document;
  return { tool, key, ...value, version, createdAt, ...(expiresAt === undefined ? {} : { expiresAt }) };
}

function nameOf(tool: string, key: string): StateName {
  assertName(tool, 'tool');
  assertName(key, 'key');
  return toolEntryName(tool, key);
}
