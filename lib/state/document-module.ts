import { type JsonValue } from '../common/json.js';
import { eachDocument, listDocuments } from './state-data.js';
import { type StateDataPage, type StateDescription, type StateInspection } from './state-module.js';
import { type StateEntry, type StateSelection, type StateStore } from '../ledger/state.store.js';

export interface DocumentModuleParts {
  readonly store: StateStore;
  /** Selects the documents of the items. */
  readonly items: Omit<StateSelection, 'sessionId'>;
  /** Returns what a description shows of an item; `null` to omit it. */
  readonly show: (sessionId: string, entry: StateEntry) => JsonValue | null;
  /** Returns what an export contains of an item. */
  readonly exported: (sessionId: string, entry: StateEntry) => AsyncIterable<JsonValue> | Iterable<JsonValue>;
}

/** A control plane module that stores a document per item. */
export class DocumentModule implements StateInspection {
  constructor(private readonly parts: DocumentModuleParts) {}

  async describe(sessionId: string, page?: StateDataPage): Promise<StateDescription> {
    const { store, items, show } = this.parts;
    const selection = { ...items, sessionId };
    const itemCount = await store.count(selection);
    const found = { exists: itemCount > 0, itemCount };
    if (!page) return found;
    const { items: entries, next } = await listDocuments(store, selection, page);
    const shown = entries.flatMap((entry) => show(sessionId, entry) ?? []);
    return { ...found, data: { items: shown, ...(next === undefined ? {} : { next }) } };
  }

  async *export(sessionId: string): AsyncGenerator<JsonValue, void> {
    const { store, items, exported } = this.parts;
    for await (const entry of eachDocument(store, { ...items, sessionId })) yield* exported(sessionId, entry);
  }
}
