import { checkInput } from '../common/check-input.js';
import { assertId, assertName } from '../common/ids.js';
import { isPlainObject, type JsonValue, stringifyWithin, toJson } from '../common/json.js';
import { InvalidInputError, TooLargeError } from '../common/sessions.error.js';
import { addressOf, ModuleDocuments, type ModuleValue } from './module-documents.js';
import { listDocuments, type StatePage } from './state-data.js';
import { ToolEntryOptions, type ToolPatchOptions, ToolQuery, ToolSetOptions } from './state.inputs.js';
import { type StateEntry, type StateName, type StateStore } from '../ledger/state.store.js';
import {
  applyToolChange,
  mergedWith,
  type StoredToolEntry,
  type ToolChange,
  toolEntryName,
  type ToolPatch,
  TOOLS_NAMESPACE,
  toolStateChange,
  toToolPatch,
} from './tool-entry.js';
import { valueOf } from './module-document.js';

/** Characters of a patch as JSON, from which on it is looked at first what it is for. */
const LARGE = 4096;

/** What a tool keeps of a session under a key (STA-04). */
export interface ToolEntry {
  readonly tool: string;
  readonly key: string;
  readonly value: JsonValue;
  /** More with every change; one that was refused may count as well. An entry that is deleted and created again never has an earlier version. */
  readonly version: number;
  /** Never in a description, an export or a log. */
  readonly secret: boolean;
  /** ISO-8601, by the store's clock. */
  readonly createdAt: string;
  /** ISO-8601; absent when it does not expire. */
  readonly expiresAt?: string;
}

/**
 * What tools keep per session: caches, counters, cursors, credentials (STA-04). Every method is one atomic operation of the store, so
 * nothing is lost whoever else writes at the same time. JSON only; what goes in and comes out are copies.
 *
 * All methods reject with InvalidInputError for ids and names that are none, and StoreUnavailableError when the store does not answer.
 */
export class ToolState {
  private readonly documents: ModuleDocuments<StoredToolEntry, ToolChange>;

  /** @param maxBytes of a value as JSON */
  constructor(
    private readonly store: StateStore,
    private readonly maxBytes: number,
  ) {
    this.documents = new ModuleDocuments(store, applyToolChange);
  }

  /** @returns `null` when there is none, or it has expired */
  async get(sessionId: string, tool: string, key: string): Promise<ToolEntry | null> {
    const read = await this.documents.read(sessionId, nameOf(tool, key));
    return read && toToolEntry(tool, key, read);
  }

  /**
   * Writes an entry, whatever it was.
   * @returns `null` when it had another version than `ifVersion`; nothing was written then
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
   * Merges at the first level, into the entry as it is then, and removes the keys of `unset` (FIX-47). `null` is a value.
   * Creates the entry when it does not exist.
   * @param options `ttlMs`, `secret`: of an entry that it makes; one that is there expires when it did, and is as secret as it was
   * @throws InvalidInputError when what is there is no object, TooLargeError when it would get too large: it is as before then;
   * StateSerializationError
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
    throw misfit(value, change);
  }

  /**
   * Adds to a number. Makes the entry when there is none, as if it had been 0.
   * @param by default 1
   * @param options of an entry that it makes; one that is there expires when it did, and is as secret as it was
   * @throws InvalidInputError when what is there is no number, or would be none any more: it is as before then
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
    const problem =
      typeof value === 'number' ? 'makes the number too large.' : 'does not fit: what is there is no number.';
    throw new InvalidInputError('by', problem);
  }

  /** @returns whether there was one */
  async delete(sessionId: string, tool: string, key: string): Promise<boolean> {
    return this.store.delete(addressOf(sessionId, nameOf(tool, key)));
  }

  /** By tool, then key, in the order of their UTF-8 bytes; with the values of those that are secret. Costs the page. */
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

  /** What does not fit stays in the document for a while: so that it does not grow, what is large is not even written. */
  private async assertFits(sessionId: string, tool: string, key: string, patch: ToolPatch): Promise<void> {
    const read = await this.documents.read(sessionId, nameOf(tool, key));
    if (read && applyToolChange(read.value, patch) === read.value) throw misfit(read.value.value, patch);
  }

  /** What became of a change: the entry, or where it did not fit only the value that it met. */
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

function misfit(value: JsonValue | undefined, patch: ToolPatch): Error {
  if (!isPlainObject(value)) return new InvalidInputError('patch', 'does not fit: what is there is no object.');
  const bytes = Buffer.byteLength(JSON.stringify(mergedWith(value, patch)));
  return new TooLargeError('The merged value', bytes, patch.maxBytes);
}

/** What a document holds as the application sees it; `null`: nothing any more. */
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
