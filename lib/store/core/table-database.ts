/** The tables that {@link adapterOverTables} stores, by name. */
export type TableName =
  | 'session'
  | 'lane'
  | 'turn'
  | 'turn_event'
  | 'step'
  | 'signal'
  | 'checkpoint'
  | 'message'
  | 'document'
  | 'lease'
  | 'tombstone';

/** A row: a flat object. Times are milliseconds since 1970, and JSON is stored as a string. */
export type TableRow = Readonly<Record<string, string | number | null>>;

/** Values of columns, in their order. A string may be empty. */
export type RowKey = readonly (string | number)[];

/** The columns of a table that rows are found by. */
export interface TableKeys {
  /** The columns of the primary key. */
  readonly key: readonly string[];
  /**
   * The columns of each index, by the name of the index. Every index includes the columns of the primary key, so that no two rows have the
   * same values in it. A row with `null` in one of the columns is not in that index. The index `primary` has the columns of
   * the primary key: a store that keeps rows in the order of their keys has it already.
   */
  readonly indexes: Readonly<Record<string, readonly string[]>>;
}

/**
 * The keys and indexes of the tables that {@link adapterOverTables} needs. A later release may add a table, an index or a column. Then the
 * changelog names it, with the value of the column in rows that are stored already.
 */
export const STORE_TABLES: Readonly<Record<TableName, TableKeys>> = {
  session: {
    key: ['id'],
    indexes: {
      activity: ['lastActivityAt', 'createdAt', 'id'],
      user: ['userId', 'lastActivityAt', 'createdAt', 'id'],
      idle: ['state', 'lastActivityAt', 'id'],
      age: ['state', 'createdAt', 'id'],
      changed: ['state', 'stateChangedAt', 'id'],
    },
  },
  lane: { key: ['sessionId'], indexes: { attention: ['attentionAt', 'sessionId'] } },
  turn: {
    key: ['id'],
    indexes: {
      position: ['sessionId', 'position', 'id'],
      open: ['openIn', 'position', 'id'],
      idempotency: ['sessionId', 'idempotencyKey', 'position', 'id'],
      settled: ['settledAt', 'id'],
      events: ['eventsExpireAt', 'id'],
    },
  },
  turn_event: { key: ['turnId', 'lastOffset'], indexes: { primary: ['turnId', 'lastOffset'] } },
  step: { key: ['turnId', 'id'], indexes: { primary: ['turnId', 'id'] } },
  signal: { key: ['turnId', 'name'], indexes: { primary: ['turnId', 'name'] } },
  checkpoint: {
    key: ['orchestrator', 'sessionId', 'turnIndex'],
    indexes: {
      primary: ['orchestrator', 'sessionId', 'turnIndex'],
      session: ['sessionId', 'orchestrator', 'turnIndex'],
    },
  },
  message: { key: ['sessionId', 'position'], indexes: { primary: ['sessionId', 'position'] } },
  document: {
    key: ['sessionId', 'namespace', 'scope', 'key'],
    indexes: {
      primary: ['sessionId', 'namespace', 'scope', 'key'],
      access: ['namespace', 'accessedAt', 'sessionId', 'scope', 'key'],
      expiry: ['expiresAt', 'sessionId', 'namespace', 'scope', 'key'],
    },
  },
  lease: { key: ['name'], indexes: {} },
  tombstone: { key: ['sessionId'], indexes: {} },
};

/**
 * A range of an index. All bounds are exclusive and compare as {@link compareKeys} does, only as far as the bound has
 * values: `after: ['a']` leaves out every row whose next column is `a`.
 */
export interface KeyRange {
  /** The name of an index of the table, from {@link STORE_TABLES}. */
  readonly index: string;
  /** The values of the index's first columns. Empty: the whole index. */
  readonly prefix: RowKey;
  /** The lower bound: the next columns are greater than these values. Default: from the first row. */
  readonly after?: RowKey;
  /** The upper bound: the next columns are less than these values. Default: to the last row. */
  readonly before?: RowKey;
  /** Descending order. Default: ascending. */
  readonly reverse?: boolean;
  /** At most this many rows are read. Default: as many as the caller takes from the iterable. */
  readonly limit?: number;
}

/** The tables inside one transaction, which reads its own writes. The adapter never changes a row in place. */
export interface TableTransaction {
  /** The store's clock when the transaction began: whole milliseconds since 1970. */
  readonly now: number;
  /** Returns the row with this primary key, or `undefined`. */
  get(table: TableName, key: RowKey): TableRow | undefined;
  /** Inserts a row, or replaces the one with the same primary key. */
  put(table: TableName, row: TableRow): void;
  /** Deletes the row with this primary key, if it exists. */
  delete(table: TableName, key: RowKey): void;
  /**
   * Returns the rows of a range in the order of its index. The iterable may read lazily: other rows may be read, but none is written before
   * the iteration ends.
   */
  scan(table: TableName, range: KeyRange): Iterable<TableRow>;
}

/**
 * Tables with transactions. Transactions are serializable: each sees all that was committed before it, as if they ran one after the
 * other, in every process that shares the tables. Both methods reject with the error that `work` throws, and with
 * `StoreUnavailableError` when the backend fails.
 */
export interface TableDatabase {
  /**
   * Runs `work` and commits all that it wrote, or nothing when it throws. `work` is synchronous and may be run again, in a new
   * transaction.
   */
  write<T>(work: (tx: TableTransaction) => T): Promise<T>;
  /** Runs `work`, which writes nothing, on a consistent state of the tables. */
  read<T>(work: (tx: TableTransaction) => T): Promise<T>;
}

/** Returns the primary key of a row. */
export function primaryKey(table: TableName, row: TableRow): RowKey {
  return STORE_TABLES[table].key.map((column) => row[column] as string | number);
}

/** Returns the values of a row in each index that contains it, by the name of the index. */
export function indexKeys(table: TableName, row: TableRow): ReadonlyMap<string, RowKey> {
  const keys = new Map<string, RowKey>();
  for (const [index, columns] of Object.entries(STORE_TABLES[table].indexes)) {
    const values = columns.map((column) => row[column]);
    if (!values.includes(null)) keys.set(index, values as RowKey);
  }
  return keys;
}

/**
 * Compares two keys value by value, as far as the shorter one goes: numbers by size, strings by their UTF-8 bytes.
 * @returns a negative number, 0 or a positive number
 */
export function compareKeys(a: RowKey, b: RowKey): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    const order = compareValues(a[at], b[at]);
    if (order !== 0) return order;
  }
  return 0;
}

/** Compares two values of a column: numbers by size, strings by their UTF-8 bytes. */
export function compareValues(a: string | number, b: string | number): number {
  if (a === b) return 0;
  if (typeof a === 'string' && typeof b === 'string') return compareStrings(a, b);
  return a < b ? -1 : 1;
}

/** Compares different strings by code point, which is the order of their UTF-8 bytes. */
function compareStrings(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at += 1) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left === right) continue;
    // In UTF-16, surrogates sort before the characters from U+E000 on; in UTF-8 after them.
    const isLeftSurrogate = isSurrogate(left);
    return isLeftSurrogate === isSurrogate(right) ? left - right : isLeftSurrogate ? 1 : -1;
  }
  return a.length - b.length;
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff;
