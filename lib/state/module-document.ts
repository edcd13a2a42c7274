import { type JsonValue } from '../common/json.js';
import { type StateDocument, type StateFold } from '../ledger/state.store.js';

/** When a document is made shorter. */
export interface FoldAt {
  /** Once it has this many batches... */
  readonly batches: number;
  /** ...but for the newest ones: while a batch is there, sending its append again adds nothing. */
  readonly keep: number;
}

/** Where nothing speaks for another size. */
export const FOLD_AT: FoldAt = { batches: 32, keep: 8 };

/**
 * What an entry makes of the value of a module's document; `null` is no value. Pure, and the same for every reader.
 * @param at ISO-8601, when it was appended
 * @returns the same value for an entry that does not fit: it is as if it had not come
 */
export type ApplyEntry<Value, Entry> = (value: Value | null, entry: Entry, at: string) => Value | null;

/** The value that a document means. */
export function valueOf<Value, Entry>(
  { value, batches }: Pick<StateDocument, 'value' | 'batches'>,
  apply: ApplyEntry<Value, Entry>,
): Value | null {
  return batches.reduce((before, batch) => applyAll(before, batch.entries, batch.at, apply), value as Value | null);
}

/** What a batch found and what it made of it; `null` when it is not in the document. */
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

/** How the document may be made shorter, when that pays: it means the same then. */
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

/** How many batches a fold takes away. */
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
