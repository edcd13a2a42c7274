import { type JsonValue } from '../../common/json.js';
import {
  type StateAddress,
  type StateDocument,
  type StateStore,
  type StateWriteOptions,
} from '../../state/state.store.js';
import { assertNotErased } from './lane.js';
import { iso } from './row-mapping.js';
import { type DocumentRow } from './rows.js';
import { type EmbeddedDatabase, type Transaction } from './tables.js';

/** State documents of an embedded store. */
export class EmbeddedState implements StateStore {
  constructor(private readonly db: EmbeddedDatabase) {}

  get(address: StateAddress): Promise<StateDocument | null> {
    return this.db.read((tx) => {
      const row = live(tx, address);
      return row ? toDocument(row) : null;
    });
  }

  set(address: StateAddress, value: JsonValue, options: StateWriteOptions = {}): Promise<StateDocument | null> {
    return this.db.write((tx) => {
      assertNotErased(tx, address.sessionId);
      const { ifVersion, ttlMs } = options;
      const before = live(tx, address);
      const version = before?.version ?? 0;
      if (ifVersion !== undefined && ifVersion !== version) return null;
      const changes = {
        value: JSON.stringify(value),
        version: version + 1,
        expiresAt: ttlMs === undefined ? null : tx.now + ttlMs,
      };
      // One that has expired still takes up the key.
      if (tx.documents.get(address)) tx.documents.update(address, changes);
      else tx.documents.insert({ ...pick(address), ...changes });
      return toDocument(changes);
    });
  }

  extend(address: StateAddress, ttlMs: number): Promise<boolean> {
    return this.db.write((tx) => {
      const found = live(tx, address) !== undefined;
      if (found) tx.documents.update(address, { expiresAt: tx.now + ttlMs });
      return found;
    });
  }

  delete(address: StateAddress): Promise<boolean> {
    return this.db.write((tx) => {
      const found = live(tx, address) !== undefined;
      tx.documents.delete(address);
      return found;
    });
  }

  deleteExpired(limit: number): Promise<number> {
    return this.db.write((tx) => tx.documents.deleteExpired(tx.now, limit));
  }
}

function live(tx: Transaction, address: StateAddress): DocumentRow | undefined {
  const row = tx.documents.get(address);
  return row && (row.expiresAt === null || row.expiresAt > tx.now) ? row : undefined;
}

function toDocument({
  value,
  version,
  expiresAt,
}: Pick<DocumentRow, 'value' | 'version' | 'expiresAt'>): StateDocument {
  return {
    value: JSON.parse(value) as JsonValue,
    version,
    ...(expiresAt === null ? {} : { expiresAt: iso(expiresAt) }),
  };
}

function pick({ namespace, scope, sessionId, key }: StateAddress): StateAddress {
  return { namespace, scope, sessionId, key };
}
