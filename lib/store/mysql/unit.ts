import { Journal } from './memory-table.js';
import { type Query, type Statement } from './statement.js';

/** The lock to take before reading rows that other transactions may change. */
export type Lock =
  | { readonly session: string }
  /** The lane and session of this turn. */
  | { readonly turn: string }
  /** Rows of the table `slot`, which are locks for surfaces. */
  | { readonly slots: readonly number[] };

/**
 * The SQL for a session's id in a query: `?`, or the connection's variable `@session`. An earlier statement of the same
 * round trip sets the variable, so a turn's session can be locked by the turn's id in one round trip.
 */
export interface SessionTerm {
  readonly sql: string;
  readonly values: readonly string[];
  /** Returns the id. `undefined` until an answer contains it. */
  readonly id: () => string | undefined;
}

/** The queries for data that the work needs and that is not loaded. */
export interface Need {
  /** The lock to take before the queries, in a write. */
  readonly lock?: Lock | undefined;
  readonly queries: readonly Query[];
  /** True if taking the lock of the session also loads this data. `queries` are then sent only if the lock is held. */
  readonly bundled?: boolean;
  /** In a read: true if the work will need more data afterwards, so that it begins with a snapshot. */
  readonly more?: boolean;
}

/** Interrupts the work. After the data is loaded, the work runs again from its start. It is no Error, which would record a stack each time. */
export class NotLoaded {
  constructor(readonly need: Need) {}
}

/**
 * The state that the tables of one transaction share: the loaded data, and the changes of the work. Each attempt of a
 * transaction has its own, created in `write-work.ts` or `read-work.ts`.
 *
 * The work is a synchronous function over tables in memory, which contain only the rows loaded so far. If a row is
 * missing, {@link NotLoaded} interrupts the work. Its changes are discarded, the row is loaded, and the work runs again
 * from its start. For example, a claim stops at the lane, later at the checkpoint, and returns once all is loaded. Only
 * then are its changes sent and committed.
 */
export class Unit {
  /** Undoes the changes of the work to rows in memory. It is cleared after loading, so loaded rows remain. */
  readonly journal = new Journal();
  /** The sessions whose lane and record this transaction has locked. */
  readonly locked = new Set<string>();
  /** The ids of turns whose listeners are notified after the commit. */
  readonly changed = new Set<string>();
  /** Statements for rows that may not be loaded, such as settled turns. They run before changes of single rows. */
  readonly bulk: Statement[] = [];
  /** The sessions that the work deletes, with all their rows. */
  readonly removedSessions = new Set<string>();
  /** True if a query has written while loading, such as the DELETE of expired documents. `reset` does not undo it. */
  hasWritten = false;
  /**
   * The loaded data by name, see {@link fact}. A row that was read has a name even if it does not exist. The value is
   * the result of a query, or `undefined` if the query only put rows into a table.
   */
  private readonly known = new Map<string, unknown>();
  /** Microseconds. */
  private time: number | undefined;

  /** @param writes false for a read, which takes no locks */
  constructor(readonly writes: boolean) {}

  /** The store's clock in milliseconds, read after the last lock. */
  get now(): number {
    return Math.floor(this.micros / 1000);
  }

  /** The store's clock in microseconds; see {@link now}. In a write, each round trip ends with the query for it. */
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

  /** Interrupts the work to load the data. @throws NotLoaded always */
  ask(need: Need): never {
    // oxlint-disable-next-line typescript/only-throw-error -- never leaves WorkTables.run
    throw new NotLoaded(need);
  }

  /** Returns the loaded value of a fact. @param need the data to load otherwise @throws NotLoaded */
  recall<T = void>(fact: string, need: () => Need): T {
    if (!this.knows(fact)) this.ask(need());
    return this.known.get(fact) as T;
  }

  knows(fact: string): boolean {
    return this.known.has(fact);
  }

  /** Works like {@link recall}, but returns `undefined` if the fact is not loaded. */
  learned<T>(fact: string): T | undefined {
    return this.known.get(fact) as T | undefined;
  }

  /** Records that a query has loaded a fact. */
  learn(fact: string, value?: unknown): void {
    this.known.set(fact, value);
  }

  /** Discards the changes of the work before it runs again, and keeps the loaded data. */
  reset(): void {
    this.journal.rollBack();
    this.changed.clear();
    this.removedSessions.clear();
    this.bulk.length = 0;
  }

  /** The clause for reading a row that must not change before the commit; empty in a read. */
  get forUpdate(): string {
    return this.writes ? 'FOR UPDATE' : '';
  }

  /** The clause for lists of work that processes share. It locks the rows, and skips those that others have locked. */
  get skipLocked(): string {
    return this.writes ? 'FOR UPDATE SKIP LOCKED' : '';
  }
}

/** Returns the name of loaded data: `fact('open', sessionId)`. Ids, names and numbers contain no control characters. */
export function fact(...parts: (string | number)[]): string {
  return parts.join('\u0000');
}
