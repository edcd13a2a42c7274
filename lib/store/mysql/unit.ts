import { Journal } from './memory-table.js';
import { type Query, type Statement } from './statement.js';

/** The lock to take before reading rows that other transactions may change. */
export type Lock =
  | { readonly session: string }
  /** The lane and session of this turn. */
  | { readonly turn: string }
  /** Rows of the table of slots. */
  | { readonly slots: readonly number[] };

/** A session in SQL: a place for its id, or a variable of the connection while only the connection knows it. */
export interface SessionTerm {
  readonly sql: string;
  readonly values: readonly string[];
  /** The id, once it is known. */
  readonly id: () => string | undefined;
}

/** Data that the work needs and that is not loaded yet. */
export interface Need {
  readonly lock?: Lock | undefined;
  readonly queries: readonly Query[];
  /** Whether it is loaded together with the lock of a session. */
  readonly bundled?: boolean;
  /** In a read: whether more data will be needed from the same snapshot. */
  readonly more?: boolean;
}

/** Thrown to interrupt the work, which runs again from its start after the data is loaded. */
export class NotLoaded extends Error {
  constructor(readonly need: Need) {
    super('This is not loaded yet.');
  }
}

/** The data loaded in one transaction, and the changes of the work so far. */
export class Unit {
  readonly journal = new Journal();
  /** The sessions whose lane and record this transaction has locked. */
  readonly locked = new Set<string>();
  /** The notifications of the work so far. */
  readonly changed = new Set<string>();
  /** Writes that do not address a row by its key. */
  readonly bulk: Statement[] = [];
  readonly removedSessions = new Set<string>();
  /** Whether a statement that ran during loading has written. */
  hasWritten = false;
  private readonly known = new Map<string, unknown>();
  private time: number | undefined;

  constructor(readonly writes: boolean) {}

  /** The store's clock, read after the last lock. */
  get now(): number {
    return Math.floor(this.micros / 1000);
  }

  /** The store's clock in microseconds; see {@link now}. */
  get micros(): number {
    return this.time ?? this.ask({ queries: this.writes ? [] : [this.clock()] });
  }

  clock(): Query {
    return {
      sql: 'SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED) AS micros',
      values: [],
      take: ({ rows: [row] }) => {
        this.time = row.micros as number;
      },
    };
  }

  ask(need: Need): never {
    throw new NotLoaded(need);
  }

  /** Returns the value of a fact. @throws NotLoaded if it is not loaded */
  recall<T = void>(fact: string, need: () => Need): T {
    if (!this.knows(fact)) this.ask(need());
    return this.known.get(fact) as T;
  }

  knows(fact: string): boolean {
    return this.known.has(fact);
  }

  learned<T>(fact: string): T | undefined {
    return this.known.get(fact) as T | undefined;
  }

  learn(fact: string, value?: unknown): void {
    this.known.set(fact, value);
  }

  /** Discards the changes of the work, and keeps the loaded data. */
  reset(): void {
    this.journal.rollBack();
    this.changed.clear();
    this.removedSessions.clear();
    this.bulk.length = 0;
  }

  /** The clause for reading a row that must not change before the commit. */
  get forUpdate(): string {
    return this.writes ? 'FOR UPDATE' : '';
  }

  /** Works like forUpdate, for a list whose other parts other transactions may process. */
  get skipLocked(): string {
    return this.writes ? 'FOR UPDATE SKIP LOCKED' : '';
  }
}

/** The name of a loaded part. Ids, names and numbers contain no control characters. */
export function fact(...parts: (string | number)[]): string {
  return parts.join('\u0000');
}
