import { type JsonValue } from '../../common/json.js';
import { type StateAddress, type StateAppend, type StateDocument, type StateFold } from '../../ledger/state.store.js';
import { type ConformanceContext } from './target.js';

/** Returns the address of a document that no other test uses. */
export function addressOf(context: ConformanceContext, patch: Partial<StateAddress> = {}): StateAddress {
  return { namespace: context.id(), scope: '', sessionId: context.id(), key: 'state', ...patch };
}

/** Returns an append of the entries with a new id. */
export function appendOf(
  context: ConformanceContext,
  entries: JsonValue[],
  patch: Partial<StateAppend> = {},
): StateAppend {
  return { id: context.id(), entries, ...patch };
}

/** Matches any time in the format of stores. */
export function anyTime(): string {
  return expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string;
}

/** Matches any version. */
export function anyVersion(): number {
  return expect.any(Number) as number;
}

/** Returns the version after `writes` more writes. */
export function versionAfter(document: StateDocument | null, writes: number): number {
  return (document?.version ?? NaN) + writes;
}

/** Returns a document that never expires, directly after its value was written. */
export function written(value: JsonValue, version = anyVersion()): StateDocument {
  return { value, batches: [], version, createdAt: anyTime(), accessedAt: anyTime() };
}

/** Returns a fold of the oldest batches of a document. */
export function foldOf(document: StateDocument | null, batches: number, value: JsonValue): StateFold {
  return { through: document?.batches[batches - 1]?.id ?? 'none', value };
}

/** Returns the appended entries in order. */
export function entriesOf(document: StateDocument | null): JsonValue[] {
  return (document?.batches ?? []).flatMap(({ entries }) => entries);
}

/** Returns the current list of a document whose value is a list and whose entries extend it. */
export function listOf(document: StateDocument | null): JsonValue[] {
  return [...((document?.value ?? []) as JsonValue[]), ...entriesOf(document)];
}

/** Returns whether one time of the store is after another. */
export function isAfter(time = '', other = ''): boolean {
  return time > other;
}
