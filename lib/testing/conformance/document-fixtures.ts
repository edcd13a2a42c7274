import { type JsonValue } from '../../common/json.js';
import { type StateAddress, type StateAppend, type StateDocument, type StateFold } from '../../ledger/state.store.js';
import { type ConformanceContext } from './target.js';

/** Of a document that no other test has. */
export function addressOf(context: ConformanceContext, patch: Partial<StateAddress> = {}): StateAddress {
  return { namespace: context.id(), scope: '', sessionId: context.id(), key: 'state', ...patch };
}

/** Of entries, with an id of its own. */
export function appendOf(
  context: ConformanceContext,
  entries: JsonValue[],
  patch: Partial<StateAppend> = {},
): StateAppend {
  return { id: context.id(), entries, ...patch };
}

/** Any time, as stores write it. */
export function anyTime(): string {
  return expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string;
}

/** Any version, as stores count them. */
export function anyVersion(): number {
  return expect.any(Number) as number;
}

/** The version after `writes` more writes. */
export function versionAfter(document: StateDocument | null, writes: number): number {
  return (document?.version ?? NaN) + writes;
}

/** A document that never expires, just after its value was written. */
export function written(value: JsonValue, version = anyVersion()): StateDocument {
  return { value, batches: [], version, createdAt: anyTime(), accessedAt: anyTime() };
}

/** A fold of the oldest batches of a document. */
export function foldOf(document: StateDocument | null, batches: number, value: JsonValue): StateFold {
  return { through: document?.batches[batches - 1]?.id ?? 'none', value };
}

/** What was appended, in order. */
export function entriesOf(document: StateDocument | null): JsonValue[] {
  return (document?.batches ?? []).flatMap(({ entries }) => entries);
}

/** What a document means whose value is a list to which the entries are added. */
export function listOf(document: StateDocument | null): JsonValue[] {
  return [...((document?.value ?? []) as JsonValue[]), ...entriesOf(document)];
}

/** Whether a time of the store is after another one. */
export function isAfter(time = '', other = ''): boolean {
  return time > other;
}
