import { isTerminal, type TurnStatus } from '../../../turn/turn.js';
import {
  type LaneRow,
  type LaneViewRow,
  type SignalRow,
  type StepRow,
  type TurnEventRow,
  type TurnRow,
} from '../../embedded/rows.js';
import {
  type LaneTable,
  type SignalTable,
  type StepTable,
  type TurnEventTable,
  type TurnTable,
} from '../../embedded/tables.js';
import { viewLane, viewOpenLanes } from '../lane-views.js';
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

  view(sessionId: string): LaneViewRow {
    return this.connection.statement(VIEW_LANE).get(sessionId) as LaneViewRow;
  }

  /** Lanes that have open turns, by session id. */
  viewOpen(after: string, limit: number): LaneViewRow[] {
    return this.connection.statement(VIEW_OPEN_LANES).all(after, limit) as LaneViewRow[];
  }

  /** Ends the leases of a worker that is known to be gone; what was rung in its process must be rung again. */
  lapseAll(now: number): void {
    this.run(
      `UPDATE {lane} SET lease_until = IIF(running_turn IS NULL, NULL, ?), attention_at = ?, offers = 0
       WHERE attention_at IS NOT NULL AND (running_turn IS NOT NULL OR offers > 0)`,
      now,
      now,
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

  select(sessionId: string, statuses: readonly TurnStatus[] | null, after: number, limit: number): TurnRow[] {
    const filter = statuses === null ? '' : `AND status IN (${statuses.map(() => '?').join(', ')})`;
    // Lets the index of open turns answer, which costs nothing of the lane's history.
    const open = statuses === null || statuses.some(isTerminal) ? '' : 'AND settled_at IS NULL';
    return this.all(
      `SELECT ${this.columns} FROM {turn} WHERE session_id = ? AND position > ? ${filter} ${open} ORDER BY position LIMIT ?`,
      sessionId,
      after,
      ...(statuses ?? []),
      limit,
    );
  }
}

export class SqliteSteps extends SqliteTable<StepRow, Omit<StepRow, 'value'>> implements StepTable {
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

  last(turnId: string): TurnEventRow | undefined {
    return this.one(
      `SELECT ${this.columns} FROM {turn_event} WHERE turn_id = ? ORDER BY last_offset DESC LIMIT 1`,
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
