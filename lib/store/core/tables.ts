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

/** Rows by primary key. A row that is in a table is never changed in place: `update` replaces it. */
export interface Table<Row, Key> {
  get(key: Key): Row | undefined;
  insert(row: Row): void;
  update(key: Key, patch: Partial<Row>): void;
  delete(key: Key): void;
}

export interface SessionFilter {
  readonly userId?: string;
  /** `null` selects sessions without a workspace. */
  readonly workspaceId?: string | null;
  readonly states?: readonly SessionState[];
  readonly surfaceId?: string;
  readonly activeAfter?: number;
  readonly activeBefore?: number;
  readonly after?: SessionCursor;
}

/** The limit of a selection of all rows. */
export const ALL = Number.MAX_SAFE_INTEGER;

export interface SessionTable extends Table<SessionRow, string> {
  /** Returns sessions in the order of `find`. @param limit the size of a page, or {@link ALL} */
  select(filter: SessionFilter, limit: number): SessionRow[];
  count(filter: SessionFilter): number;
  /** Returns active sessions whose last activity is before `activeBefore`, the longest idle first. */
  stale(activeBefore: number, limit: number): SessionRow[];
  /**
   * Returns sessions without open turns to expire: suspended and created sessions with their last activity before
   * `activeBefore`, and live sessions created before `createdBefore`. `null` disables a condition.
   */
  ended(activeBefore: number | null, createdBefore: number | null, limit: number): SessionRow[];
  /** Returns the ids of sessions that expired before this time. */
  expiredBefore(time: number, limit: number): string[];
}

export interface LaneTable extends Table<LaneRow, string> {
  /** Returns lanes with `attentionAt` up to now, the most overdue first. */
  due(now: number, limit: number): LaneRow[];
  /** Returns due lanes, and offered lanes with `attentionAt` up to `until`, in the order in which they became due. */
  dueOrOffered(now: number, until: number, limit: number): LaneRow[];
}

export interface TurnTable extends Table<TurnRow, string> {
  /** Returns the first open turn of a lane. */
  head(sessionId: string): TurnRow | undefined;
  /** Returns the open turns of a lane, in order. */
  open(sessionId: string): TurnRow[];
  byIdempotencyKey(sessionId: string, key: string): TurnRow | undefined;
  select(selection: TurnSelection, limit: number): TurnRow[];
}

export interface CheckpointTable extends Table<
  CheckpointRow,
  Pick<CheckpointRow, 'orchestrator' | 'sessionId' | 'turnIndex'>
> {
  latest(orchestrator: string, sessionId: string): CheckpointRow | undefined;
  /** Returns the index of the latest checkpoint. */
  lastIndex(orchestrator: string, sessionId: string): number | undefined;
  /** Returns checkpoints with indices below `before`, the latest first. */
  select(orchestrator: string, sessionId: string, before: number, limit: number): CheckpointRow[];
  sessions(orchestrator: string, prefix: string, after: string, limit: number): string[];
  /** Returns the orchestrators with checkpoints in a session. */
  orchestrators(sessionId: string): string[];
  /** Removes checkpoints with indices below `before`. */
  deleteBefore(orchestrator: string, sessionId: string, before: number): number;
}

export interface MessageTable extends Table<MessageRow, Pick<MessageRow, 'sessionId' | 'position'>> {
  lastPosition(sessionId: string): number;
  /** Returns messages in order, from the position after `after`. */
  select(sessionId: string, after: number, limit: number): MessageRow[];
  /** Returns the ids of sessions with messages, in order, after this id. */
  sessions(after: string, limit: number): string[];
  /** Removes all messages of a session. @returns the number of removed messages */
  clear(sessionId: string): number;
}

export interface StepTable extends Table<StepRow, StepRowKey> {
  ofTurn(turnId: string): StepRow[];
}

export interface SignalTable extends Table<SignalRow, Pick<SignalRow, 'turnId' | 'name'>> {
  ofTurn(turnId: string): SignalRow[];
}

export interface TurnEventTable extends Table<TurnEventRow, Pick<TurnEventRow, 'turnId' | 'lastOffset'>> {
  /** Returns the newest row of a turn, without its events, which may be large. */
  last(turnId: string): Pick<TurnEventRow, 'lastOffset' | 'fence' | 'batch'> | undefined;
  /** Returns, in order, the rows with events after an offset, and no more than `limit` events need. */
  select(turnId: string, after: number, limit: number): TurnEventRow[];
}

export interface DocumentTable extends Table<DocumentRow, StateAddress> {
  /** Announces documents that will be read, so that a remote table can load them together with an earlier read. */
  expect(addresses: readonly StateAddress[]): void;
  /** Returns documents of one session, in the order of the addresses. */
  getAll(addresses: readonly StateAddress[]): (DocumentRow | undefined)[];
  /** Returns live documents by scope and key. */
  select(query: StateQuery, now: number): DocumentRow[];
  /** Counts live documents. */
  count(selection: StateSelection, now: number): number;
  /** Returns the namespaces in which a session has documents. */
  namespaces(sessionId: string): string[];
  /** Removes all documents of a session in a namespace. @returns the number of removed live documents */
  clear(sessionId: string, namespace: string, now: number): number;
  /** Removes at most `limit` documents that expired up to now. */
  deleteExpired(now: number, limit: number): number;
  /** Removes at most `limit` live documents of a namespace, the longest idle first. Keeps the `keep` last accessed. */
  deleteIdle(namespace: string, keep: number, now: number, limit: number): number;
}

/** The tables inside one atomic operation. */
export interface Transaction {
  /** The store's clock, in milliseconds. */
  readonly now: number;
  /** Returns the version after `before`. After 0, returns a version higher than any document of the store has had. */
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
  /** Returns the view of a lane, which need not exist. */
  viewLane(sessionId: string): LaneViewRow;
  /** Returns lanes with open turns by session id, starting after `after`. */
  viewOpenLanes(after: string, limit: number): LaneViewRow[];
  /** Removes all rows of a session in every table, except its tombstone. */
  deleteSession(sessionId: string): void;
  /**
   * Removes at most `limit` turns that settled before a time, the oldest first, with their steps, signals and events.
   * @returns the number of removed turns
   */
  deleteTurns(settledBefore: number, limit: number): number;
  /** Removes the expired events of at most `limit` ended turns. @returns the number of turns */
  deleteExpiredEvents(limit: number): number;
  /** Notifies listeners after the commit that a turn changed. */
  changed(turnId: string): void;
}

/**
 * A database for synchronous work, whose reads are still current when it writes. Inside this process, one transaction runs at a
 * time. A remote database locks what the work reads, and runs the work again when it needs more rows.
 */
export interface CoreDatabase {
  /** Commits all writes of the work together, or none if it throws. */
  write<T>(work: (tx: Transaction) => T): Promise<T>;
  /** Runs work that only reads. */
  read<T>(work: (tx: Transaction) => T): Promise<T>;
  /** @returns a function that ends the subscription */
  onChanged(listener: (turnId: string) => void): () => void;
}
