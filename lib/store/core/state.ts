import { type JsonValue } from '../../common/json.js';
import {
  type StateAccess,
  type StateAddress,
  type StateAppend,
  type StateCleared,
  type StateDocument,
  type StateEntry,
  type StateQuery,
  type StateReset,
  type StateSelection,
  type StateStore,
  type StateWriteOptions,
} from '../../ledger/state.store.js';
import { accessed, appendToDocument, liveDocument, putDocument } from './documents.js';
import { assertMayWrite } from './lane.js';
import { readableList, readAll } from './corrupt-records.js';
import { resetState } from './reset-state.js';
import { toDocument } from './row-mapping.js';
import { type CoreDatabase } from './tables.js';

/** Implements state documents on the tables of a store. */
export class CoreState implements StateStore {
  constructor(private readonly db: CoreDatabase) {}

  get(address: StateAddress, access?: StateAccess): Promise<StateDocument | null> {
    if (!access) {
      return this.db.read((tx) => {
        const row = liveDocument(tx, address);
        return row ? toDocument(row) : null;
      });
    }
    return this.db.write((tx) => {
      const row = liveDocument(tx, address);
      if (!row) return null;
      const changes = accessed(tx, access);
      tx.documents.update(address, changes);
      return toDocument({ ...row, ...changes });
    });
  }

  set(address: StateAddress, value: JsonValue, options: StateWriteOptions = {}): Promise<StateDocument | null> {
    return this.db.write((tx) => {
      assertMayWrite(tx, address.sessionId, options);
      const { ifVersion } = options;
      const before = liveDocument(tx, address);
      const version = before?.version ?? 0;
      if (ifVersion !== undefined && ifVersion !== version) return null;
      return putDocument(tx, address, {
        value: JSON.stringify(value),
        batches: '[]',
        version: tx.nextVersion(version),
        createdAt: before?.createdAt ?? tx.now,
        ...accessed(tx, options),
      });
    });
  }

  append(address: StateAddress, append: StateAppend): Promise<StateDocument | null> {
    return this.db.write((tx) => {
      assertMayWrite(tx, address.sessionId, append);
      return appendToDocument(tx, address, append);
    });
  }

  delete(address: StateAddress): Promise<boolean> {
    return this.db.write((tx) => {
      const found = liveDocument(tx, address) !== undefined;
      tx.documents.delete(address);
      return found;
    });
  }

  list(query: StateQuery): Promise<StateEntry[]> {
    return readableList(query.limit, (limit) =>
      this.db.read((tx) =>
        readAll(tx.documents.select({ ...query, limit }, tx.now), (row) => ({
          scope: row.scope,
          key: row.key,
          document: toDocument(row),
        })),
      ),
    );
  }

  count(selection: StateSelection): Promise<number> {
    return this.db.read((tx) => tx.documents.count(selection, tx.now));
  }

  namespaces(sessionId: string): Promise<string[]> {
    return this.db.read((tx) => tx.documents.namespaces(sessionId));
  }

  reset(reset: StateReset): Promise<StateCleared | null> {
    return this.db.write((tx) => resetState(tx, reset));
  }

  deleteExpired(limit: number): Promise<number> {
    return this.db.write((tx) => tx.documents.deleteExpired(tx.now, limit));
  }

  evictIdle(namespace: string, keep: number, limit: number): Promise<number> {
    return this.db.write((tx) => tx.documents.deleteIdle(namespace, keep, tx.now, limit));
  }
}
