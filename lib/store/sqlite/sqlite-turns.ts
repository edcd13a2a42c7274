import {
  type LaneRow,
  type LaneViewRow,
  type SignalRow,
  type StepRow,
  type StepRowKey,
  type TurnEventRow,
  type TurnRow,
} from '../core/rows.js';
import {
  type LaneTable,
  type SignalTable,
  type StepTable,
  type TurnEventTable,
  type TurnTable,
} from '../core/tables.js';
import { BEFORE_OTHERS } from '../core/lane.js';
import { type TurnSelection } from '../core/turn-selection.js';
import { positionsOf } from '../sql/turn-positions.js';
import { viewLane, viewOpenLanes } from '../sql/lane-views.js';
import { type SqliteConnection, SqliteTable } from './sqlite-table.js';

const IS_OPEN = 'settled_at IS NULL';
const VIEW_LANE = viewLane(IS_OPEN);
const VIEW_OPEN_LANES = viewOpenLanes(IS_OPEN);

export class SqliteLanes extends SqliteTable<LaneRow, string> implements LaneTable {
  constructor(connection: SqliteConnection) {
    super(connection, 'lane');
  }

  due(now: number, limit: number): LaneRow[] {
    return this.all(
      `SELECT ${this.columns} FROM {lane} WHERE attention_at IS NOT NULL AND attention_at <= ? ORDER BY attention_at LIMIT ?`,
      now,
      limit,
    );
  }

  dueOrOffered(now: number, until: number, limit: number): LaneRow[] {
    return this.all(
      `SELECT ${this.columns} FROM {lane}
       WHERE attention_at IS NOT NULL AND attention_at <= IIF(offers > 0, ?, ?) AND attention_at <= ?
       ORDER BY IIF(offers > 0, first_attention_at, attention_at) LIMIT ?`,
      until,
      now,
      until,
      limit,
    );
  }

  view(sessionId: string): LaneViewRow {
    return this.connection.statement(VIEW_LANE).get(sessionId) as LaneViewRow;
  }

  /** Returns lanes with open turns, by session id. */
  viewOpen(after: string, limit: number): LaneViewRow[] {
    return this.connection.statement(VIEW_OPEN_LANES).all(after, limit) as LaneViewRow[];
  }

  /**
   * Ends the leases of a stopped worker, and withdraws the offers of lanes to it. The lanes that it ran are due first, because
   * they waited longer than the others.
   */
  lapseAll(now: number): void {
    this.run(
      `UPDATE {lane} SET
         lease_until = IIF(running_turn IS NULL, NULL, ?),
         attention_at = IIF(running_turn IS NULL, first_attention_at, ?),
         offers = 0
       WHERE attention_at IS NOT NULL AND (running_turn IS NOT NULL OR offers > 0)`,
      now,
      BEFORE_OTHERS,
    );
  }
}

export class SqliteTurns extends SqliteTable<TurnRow, string> implements TurnTable {
  private readonly firstOpen = `SELECT ${this.columns} FROM {turn} WHERE session_id = ? AND settled_at IS NULL
    ORDER BY position LIMIT 1`;

  constructor(connection: SqliteConnection) {
    super(connection, 'turn');
  }

  head(sessionId: string): TurnRow | undefined {
    return this.one(this.firstOpen, sessionId);
  }

  open(sessionId: string): TurnRow[] {
    return this.all(
      `SELECT ${this.columns} FROM {turn} WHERE session_id = ? AND settled_at IS NULL ORDER BY position`,
      sessionId,
    );
  }

  byIdempotencyKey(sessionId: string, key: string): TurnRow | undefined {
    return this.one(
      `SELECT ${this.columns} FROM {turn} WHERE session_id = ? AND idempotency_key = ? AND idempotency_key IS NOT NULL`,
      sessionId,
      key,
    );
  }

  select(selection: TurnSelection, limit: number): TurnRow[] {
    const { sessionId, statuses, after } = selection;
    const { condition, order } = positionsOf(selection, '?');
    const filter = statuses === null ? '' : `AND status IN (${statuses.map(() => '?').join(', ')})`;
    const open = selection.isOpen ? 'AND settled_at IS NULL' : '';
    return this.all(
      `SELECT ${this.columns} FROM {turn} WHERE session_id = ? AND ${condition} ${filter} ${open} ${order} LIMIT ?`,
      sessionId,
      after,
      ...(statuses ?? []),
      limit,
    );
  }
}

export class SqliteSteps extends SqliteTable<StepRow, StepRowKey> implements StepTable {
  constructor(connection: SqliteConnection) {
    super(connection, 'step');
  }

  ofTurn(turnId: string): StepRow[] {
    return this.all(`SELECT ${this.columns} FROM {step} WHERE turn_id = ?`, turnId);
  }
}

export class SqliteSignals extends SqliteTable<SignalRow, Pick<SignalRow, 'turnId' | 'name'>> implements SignalTable {
  constructor(connection: SqliteConnection) {
    super(connection, 'signal');
  }

  ofTurn(turnId: string): SignalRow[] {
    return this.all(`SELECT ${this.columns} FROM {signal} WHERE turn_id = ?`, turnId);
  }
}

export class SqliteTurnEvents
  extends SqliteTable<TurnEventRow, Pick<TurnEventRow, 'turnId' | 'lastOffset'>>
  implements TurnEventTable
{
  constructor(connection: SqliteConnection) {
    super(connection, 'turn_event');
  }

  last(turnId: string): ReturnType<TurnEventTable['last']> {
    return this.one(
      `SELECT last_offset AS "lastOffset", fence, batch FROM {turn_event} WHERE turn_id = ?
       ORDER BY last_offset DESC LIMIT 1`,
      turnId,
    );
  }

  select(turnId: string, after: number, limit: number): TurnEventRow[] {
    return this.all(
      `SELECT ${this.columns} FROM {turn_event} WHERE turn_id = ? AND last_offset > ? AND last_offset <=
         COALESCE((SELECT MIN(last_offset) FROM {turn_event} WHERE turn_id = ? AND last_offset >= ?), ?)
       ORDER BY last_offset`,
      turnId,
      after,
      turnId,
      after + limit,
      Number.MAX_SAFE_INTEGER,
    );
  }
}
