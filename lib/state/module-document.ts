import { type JsonValue } from '../common/json.js';
import { type StateDocument, type StateFold } from '../ledger/state.store.js';

/** When a document is folded. */
export interface FoldAt {
  /** The number of batches from which a document is folded. */
  readonly batches: number;
  /** The number of newest batches that stay. While a batch is in the document, repeating its append has no effect. */
  readonly keep: number;
}

/** The default fold size. */
export const FOLD_AT: FoldAt = { batches: 32, keep: 8 };

/**
 * Returns the value of a module's document after an entry; `null` is no value. Pure, and the same for every reader.
 * @param at the time of the append: ISO-8601
 * @returns the same value for an entry that does not fit, which is ignored
 */
export type ApplyEntry<Value, Entry> = (value: Value | null, entry: Entry, at: string) => Value | null;

/** Computes the value of a document. */
export function valueOf<Value, Entry>(
  { value, batches }: Pick<StateDocument, 'value' | 'batches'>,
  apply: ApplyEntry<Value, Entry>,
): Value | null {
  return batches.reduce((before, batch) => applyAll(before, batch.entries, batch.at, apply), value as Value | null);
}

/** Returns the values before and after a batch; `null` if the batch is not in the document. */
export function changeBy<Value, Entry>(
  id: string,
  { value, batches }: StateDocument,
  apply: ApplyEntry<Value, Entry>,
): { readonly before: Value | null; readonly after: Value | null } | null {
  const index = batches.findIndex((batch) => batch.id === id);
  if (index === -1) return null;
  const { entries, at } = batches[index];
  const before = valueOf({ value, batches: batches.slice(0, index) }, apply);
  return { before, after: applyAll(before, entries, at, apply) };
}

/** Returns how to fold the document, if it is worth it. The value does not change. */
export function foldOf<Value, Entry>(
  { value, batches }: StateDocument,
  apply: ApplyEntry<Value, Entry>,
  at: FoldAt,
): StateFold | null {
  if (batches.length < at.batches) return null;
  const folded = batches.slice(0, -at.keep);
  return {
    through: folded.at(-1)!.id,
    value: valueOf({ value, batches: folded }, apply) as JsonValue,
  };
}

/** Returns how many batches a fold removes. */
export function foldedBy({ batches }: StateDocument, { through }: StateFold): number {
  return batches.findIndex(({ id }) => id === through) + 1;
}

function applyAll<Value, Entry>(
  value: Value | null,
  entries: readonly JsonValue[],
  at: string,
  apply: ApplyEntry<Value, Entry>,
): Value | null {
  return (entries as unknown as readonly Entry[]).reduce((before, entry) => apply(before, entry, at), value);
}
