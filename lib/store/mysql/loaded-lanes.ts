import { ALL_LANES } from '../core/lane.js';
import { type LaneRow, type LaneViewRow } from '../core/rows.js';
import { type LaneTable } from '../core/tables.js';
import { viewLane, viewOpenLanes } from '../sql/lane-views.js';
import { LoadedTable } from './loaded-table.js';
import { MemoryTable } from './memory-table.js';
import { type Query, statement, type Statement } from './statement.js';
import { SQL } from './tables-sql.js';
import { fact, type Lock, type Unit } from './unit.js';

const IS_OPEN = 'is_open = 1';
const VIEW_LANE = viewLane(IS_OPEN);
const VIEW_OPEN_LANES = viewOpenLanes(IS_OPEN);

export class LoadedLanes extends LoadedTable<LaneRow, string> implements LaneTable {
  constructor(
    unit: Unit,
    protected override readonly rows = new MemoryTable<LaneRow, string>(unit.journal, (key) =>
      typeof key === 'string' ? key : key.sessionId,
    ),
  ) {
    // The row of all lanes is read without a lock, because every operation would wait for it.
    const lockOf = (session: string): Lock | undefined => (session === ALL_LANES ? undefined : { session });
    super(unit, SQL.lane, rows, { lockOf, bundled: true });
  }

  due(now: number, limit: number): LaneRow[] {
    const where = `WHERE attention_at <= ? ORDER BY attention_at LIMIT ? ${this.unit.skipLocked}`;
    return this.found('due', SQL.lane.select(where, now, limit));
  }

  dueOrOffered(now: number, until: number, limit: number): LaneRow[] {
    const where = `WHERE attention_at <= ? AND attention_at <= IF(offers > 0, ?, ?)
      ORDER BY IF(offers > 0, first_attention_at, attention_at) LIMIT ? ${this.unit.skipLocked}`;
    return this.found('due or offered', SQL.lane.select(where, until, until, now, limit));
  }

  private found(name: string, query: Statement): LaneRow[] {
    const found = this.unit.recall<string[]>(name, () => {
      const take: Query['take'] = ({ rows }) => {
        const lanes = rows as unknown as LaneRow[];
        this.put(lanes);
        this.unit.learn(
          name,
          lanes.map(({ sessionId }) => sessionId),
        );
      };
      return { queries: [{ ...query, take }] };
    });
    return found.flatMap((sessionId) => this.rows.get(sessionId) ?? []);
  }

  view(sessionId: string): LaneViewRow {
    return this.viewed(fact('view', sessionId), statement(VIEW_LANE, sessionId))[0];
  }

  /** Returns lanes with open turns, by session id. */
  viewOpen(after: string, limit: number): LaneViewRow[] {
    return this.viewed(fact('views', after, limit), statement(VIEW_OPEN_LANES, after, limit));
  }

  /** A caller that reads several lanes reads the mode of all lanes next. */
  private viewed(name: string, views: Statement): LaneViewRow[] {
    return this.unit.recall<LaneViewRow[]>(name, () => {
      const take: Query['take'] = ({ rows }) => this.unit.learn(name, rows);
      return { queries: [{ ...views, take }, this.byKey(ALL_LANES)] };
    });
  }

  /** Returns whether a loaded lane has had no turn and has no mode. Only a session needs it then. */
  isUnused(sessionId: string): boolean {
    const lane = this.rows.get(sessionId);
    return lane?.nextPosition === 1 && lane.mode === null;
  }

  removed(sessionId: string): void {
    const row = this.rows.get(sessionId);
    if (row) this.drop([row]);
  }
}
