import { isName } from '../common/ids.js';
import { type JsonValue } from '../common/json.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type StateEntry, type StateQuery, type StateSelection, type StateStore } from '../ledger/state.store.js';

/** The cursor is invalid. HTTP 400. */
export class InvalidCursorError extends InvalidInputError {
  constructor() {
    super('after', 'must be the `next` value of an earlier page.');
  }
}

/** The number of documents to read at once when all are read. */
const DOCUMENTS = 100;

/** The maximum size of a page as JSON, in bytes. */
const MAX_PAGE_BYTES = 1_048_576;

/** A page of a list. It ends early if its items are large. */
export interface StatePage<T> {
  readonly items: readonly T[];
  /** The value of `after` for the next page; absent on the last page. */
  readonly next?: string;
}

/**
 * Lists documents in the order of their names.
 * @param after the `next` value of the previous page
 * @throws InvalidCursorError for an invalid `after`
 */
export async function listDocuments(
  store: Pick<StateStore, 'list'>,
  selection: StateSelection,
  { after, limit }: { readonly after?: string; readonly limit: number },
): Promise<StatePage<StateEntry>> {
  const place = after === undefined ? {} : { after: nameAfter(after) };
  const found = await store.list({ ...selection, ...place, limit: limit + 1 });
  const items = firstOf(found.slice(0, limit), ({ document: { value, batches } }) => [value, batches]);
  const last = items.at(-1);
  return found.length > items.length && last ? { items, next: JSON.stringify([last.scope, last.key]) } : { items };
}

/**
 * Returns as many of the first items as fit a page, at least one.
 * @param shown returns the part of an item that counts, as JSON
 */
export function firstOf<T>(items: readonly T[], shown: (item: T) => unknown): T[] {
  let bytes = 0;
  return items.filter((item, index) => {
    bytes += Buffer.byteLength(JSON.stringify(shown(item)));
    return index === 0 || bytes <= MAX_PAGE_BYTES;
  });
}

/** Iterates over all documents, page by page. */
export async function* eachDocument(
  store: Pick<StateStore, 'list'>,
  selection: StateSelection,
): AsyncGenerator<StateEntry, void> {
  for (let place: Pick<StateQuery, 'after'> = {}; ;) {
    const entries = await store.list({ ...selection, ...place, limit: DOCUMENTS });
    yield* entries;
    const last = entries.at(-1);
    if (!last || entries.length < DOCUMENTS) return;
    place = { after: { scope: last.scope, key: last.key } };
  }
}

function nameAfter(after: string): { scope: string; key: string } {
  const [scope, key, ...more] = listIn(after);
  if (more.length > 0 || !(scope === '' || isName(scope)) || !isName(key)) {
    throw new InvalidCursorError();
  }
  return { scope, key };
}

function listIn(text: string): readonly JsonValue[] {
  try {
    const value = JSON.parse(text) as readonly JsonValue[] | JsonValue;
    return isList(value) ? value : [];
  } catch {
    return [];
  }
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
