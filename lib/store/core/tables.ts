import { type SessionCursor } from '../../ledger/session.cursor.js';
import { type SessionState } from '../../ledger/session.js';
import { type StateAddress, type StateQuery, type StateSelection } from '../../ledger/state.store.js';
import { type TurnSelection } from './turn-selection.js';
import {
  type CheckpointRow,
  type DocumentRow,
  type LaneRow,
  type LaneViewRow,
  type LeaseRow,
  type MessageRow,
  type SessionRow,
  type SignalRow,
  type StepRow,
  type StepRowKey,
  type TombstoneRow,
  type TurnEventRow,
  type TurnRow,
} from './rows.js';

/** Rows by primary key. Rows go in and come out as copies. */
export interface Table<Row, Key> {
  get(key: Key): Row | undefined;
  insert(row: Row): void;
  update(key: Key, patch: Partial<Row>): void;
  delete(key: Key): void;
}

export interface SessionFilter {
  readonly userId?: string;
  /** `null`: of no workspace. */
  readonly workspaceId?: string | null;
  readonly states?: readonly SessionState[];
  readonly surfaceId?: string;
  readonly activeAfter?: number;
  readonly activeBefore?: number;
  readonly after?: SessionCursor;
}

export interface SessionTable extends Table<SessionRow, string> {
  /** In the order of `find`. */
  select(filter: SessionFilter, limit: number): SessionRow[];
  count(filter: SessionFilter): number;
  /** Active ones whose last activity is before `activeBefore`, the longest idle first. */
  stale(activeBefore: number, limit: number): SessionRow[];
  /**
   * Suspended and created ones whose last activity is before `activeBefore`, and live ones created before
   * `createdBefore`, unless they have open turns; `null` leaves a condition out.
   */
  ended(activeBefore: number | null, createdBefore: number | null, limit: number): SessionRow[];
  /** Ids of those that expired before this time. */
  expiredBefore(time: number, limit: number): string[];
}

export interface LaneTable extends Table<LaneRow, string> {
  /** Lanes with `attentionAt` up to now, the most overdue first. */
  due(now: number, limit: number): LaneRow[];
  /** Lanes that are due, and offered ones with `attentionAt` up to `until`; those that needed attention first come first. */
  dueOrOffered(now: number, until: number, limit: number): LaneRow[];
}

export interface TurnTable extends Table<TurnRow, string> {
  /** The first open turn of a lane. */
  head(sessionId: string): TurnRow | undefined;
  /** Open turns of a lane, in order. */
  open(sessionId: string): TurnRow[];
  byIdempotencyKey(sessionId: string, key: string): TurnRow | undefined;
  select(selection: TurnSelection, limit: number): TurnRow[];
}

export interface CheckpointTable extends Table<
  CheckpointRow,
  Pick<CheckpointRow, 'orchestrator' | 'sessionId' | 'turnIndex'>
> {
  latest(orchestrator: string, sessionId: string): CheckpointRow | undefined;
  /** The index of the latest one. */
  lastIndex(orchestrator: string, sessionId: string): number | undefined;
  /** Indices below `before`, the latest first. */
  select(orchestrator: string, sessionId: string, before: number, limit: number): CheckpointRow[];
  sessions(orchestrator: string, prefix: string, after: string, limit: number): string[];
  /** Those that have some in a session. */
  orchestrators(sessionId: string): string[];
  /** Removes indices below `before`. */
  deleteBefore(orchestrator: string, sessionId: string, before: number): number;
}

export interface MessageTable extends Table<MessageRow, Pick<MessageRow, 'sessionId' | 'position'>> {
  lastPosition(sessionId: string): number;
  /** In order, from the position after `after`. */
  select(sessionId: string, after: number, limit: number): MessageRow[];
  /** Sessions that have some, by id, after this one. */
  sessions(after: string, limit: number): string[];
  /** Removes all of a session. @returns how many went */
  clear(sessionId: string): number;
}

export interface StepTable extends Table<StepRow, StepRowKey> {
  ofTurn(turnId: string): StepRow[];
}

export interface SignalTable extends Table<SignalRow, Pick<SignalRow, 'turnId' | 'name'>> {
  ofTurn(turnId: string): SignalRow[];
}

export interface TurnEventTable extends Table<TurnEventRow, Pick<TurnEventRow, 'turnId' | 'lastOffset'>> {
  /** The newest row of a turn. */
  last(turnId: string): TurnEventRow | undefined;
  /** In order: those that hold events after an offset, no more than what `limit` events need. */
  select(turnId: string, after: number, limit: number): TurnEventRow[];
}

export interface DocumentTable extends Table<DocumentRow, StateAddress> {
  /** These will be asked for: a table that must ask a server for them does so along with what it is asked for before. */
  expect(addresses: readonly StateAddress[]): void;
  /** Of one session, in the order of the addresses. */
  getAll(addresses: readonly StateAddress[]): (DocumentRow | undefined)[];
  /** Live ones by scope and key. */
  select(query: StateQuery, now: number): DocumentRow[];
  /** Live ones. */
  count(selection: StateSelection, now: number): number;
  /** Those in which a session has some. */
  namespaces(sessionId: string): string[];
  /** Removes all of a session in a namespace. @returns how many live ones went */
  clear(sessionId: string, namespace: string, now: number): number;
  /** Removes at most `limit` documents that expired up to now. */
  deleteExpired(now: number, limit: number): number;
  /** Removes at most `limit` live ones of a namespace, the longest idle first, and none of the `keep` last accessed. */
  deleteIdle(namespace: string, keep: number, now: number, limit: number): number;
}

/** The tables as they are seen inside one atomic operation. */
export interface Transaction {
  /** The store's clock, in milliseconds. */
  readonly now: number;
  /** The version after this one of a document; after 0: one that is higher than any that a document of the store has had. */
  nextVersion(before: number): number;
  readonly sessions: SessionTable;
  readonly lanes: LaneTable;
  readonly turns: TurnTable;
  readonly steps: StepTable;
  readonly signals: SignalTable;
  readonly events: TurnEventTable;
  readonly checkpoints: CheckpointTable;
  readonly messages: MessageTable;
  readonly documents: DocumentTable;
  readonly leases: Table<LeaseRow, string>;
  readonly tombstones: Table<TombstoneRow, string>;
  /** Of a lane that may not be there. */
  viewLane(sessionId: string): LaneViewRow;
  /** Lanes that have open turns, by session id, from the one after `after`. */
  viewOpenLanes(after: string, limit: number): LaneViewRow[];
  /** Removes all rows of a session in every table, except its tombstone. */
  deleteSession(sessionId: string): void;
  /**
   * Removes at most `limit` turns that settled before a time, the oldest first, with their steps, signals and events.
   * @returns how many went
   */
  deleteTurns(settledBefore: number, limit: number): number;
  /** Removes the events of at most `limit` turns that have been over for longer than these stay. @returns of how many */
  deleteExpiredEvents(limit: number): number;
  /** Hints, once committed, that a turn changed. */
  changed(turnId: string): void;
}

/**
 * A database inside this process. Its transactions run synchronously, one at a time, so what they decide from what they
 * read still holds when they write.
 */
export interface CoreDatabase {
  /** All of the work's writes are committed together or, when it throws, none. */
  write<T>(work: (tx: Transaction) => T): Promise<T>;
  /** As write, for work that only reads. */
  read<T>(work: (tx: Transaction) => T): Promise<T>;
  /** @returns ends the subscription */
  onChanged(listener: (turnId: string) => void): () => void;
}
