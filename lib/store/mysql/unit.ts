import { Journal } from '../core/memory-table.js';
import { type Query, type Statement } from './statement.js';

/** What must be locked before rows are read that others may be about to change. */
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

/** What a work asked for and that is not loaded yet. */
export interface Need {
  readonly lock?: Lock | undefined;
  readonly queries: readonly Query[];
  /** Comes with the lock of a session. */
  readonly bundled?: boolean;
  /** In a read: more will be asked for, which must be of the same moment. */
  readonly more?: boolean;
}

/** Thrown out of a work, which runs again from its start once this is loaded. */
export class NotLoaded extends Error {
  constructor(readonly need: Need) {
    super('This is not loaded yet.');
  }
}

/** What is known of the database inside one transaction, and what a work has changed in it so far. */
export class Unit {
  readonly journal = new Journal();
  /** Sessions whose lane and record this transaction has locked. */
  readonly locked = new Set<string>();
  /** Hints of the work so far. */
  readonly changed = new Set<string>();
  /** Writes that are not of a row by its key. */
  readonly bulk: Statement[] = [];
  readonly removedSessions = new Set<string>();
  /** A statement that was run while loading has written. */
  hasWritten = false;
  private readonly known = new Map<string, unknown>();
  private time: number | undefined;

  constructor(readonly writes: boolean) {}

  /** The store's clock, read after what was locked last. */
  get now(): number {
    return Math.floor(this.micros / 1000);
  }

  /** As {@link now}, in microseconds. */
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

  /** What was learned of a fact. @throws NotLoaded while nothing was */
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

  /** Undoes what the work has done; what is loaded stays. */
  reset(): void {
    this.journal.rollBack();
    this.changed.clear();
    this.removedSessions.clear();
    this.bulk.length = 0;
  }

  /** What reads a row says when it must not change before the commit. */
  get forUpdate(): string {
    return this.writes ? 'FOR UPDATE' : '';
  }

  /** As forUpdate, for a list of which others may work on another part. */
  get skipLocked(): string {
    return this.writes ? 'FOR UPDATE SKIP LOCKED' : '';
  }
}

/** The name of what is known: parts are ids, names and numbers, which hold no control characters. */
export function fact(...parts: (string | number)[]): string {
  return parts.join('\u0000');
}
