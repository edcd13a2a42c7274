import { createHash } from 'node:crypto';
import { type SessionRow } from '../core/rows.js';
import { type SessionFilter, type SessionTable } from '../core/tables.js';
import { MemorySessions } from './memory-sessions.js';
import { LoadedTable, type TableChanges } from './loaded-table.js';
import { selectCount, selectHolders, selectSessions } from './session-queries.js';
import { places, type Query, statement, type Statement } from './statement.js';
import { filtersInOrder } from '../sql/session-conditions.js';
import { surfaceChanges, surfacesOf } from '../sql/surface-changes.js';
import { SQL } from './tables-sql.js';
import { fact, type Need, type Unit } from './unit.js';

/** The number of locks for surfaces. Larger than the number of users who change a surface at the same moment. */
const SLOTS = 4096;

export class LoadedSessions extends LoadedTable<SessionRow, string> implements SessionTable {
  constructor(
    unit: Unit,
    private readonly openTurnsOf: (sessionIds: readonly string[]) => readonly Query[],
    protected override readonly rows = new MemorySessions(unit.journal),
  ) {
    super(unit, SQL.session, rows, { lockOf: (session) => ({ session }), bundled: true, rowLock: true });
  }

  select(filter: SessionFilter, limit: number): SessionRow[] {
    this.unit.recall(nameOf(filter, limit), () =>
      this.unit.writes ? this.locked(filter, limit) : { queries: this.selected(filter, limit) },
    );
    // Includes the changes of this work.
    return this.rows.select(filter, limit);
  }

  count(filter: SessionFilter): number {
    const name = fact('count', JSON.stringify(filter));
    const take: Query['take'] = ({ rows: [row] }) => this.unit.learn(name, row.total);
    return this.unit.recall<number>(name, () => ({ queries: [{ ...selectCount(filter), take }] }));
  }

  stale(activeBefore: number, limit: number): SessionRow[] {
    return this.listed('stale', () => [
      SQL.session.select(
        `WHERE state = 'active' AND last_activity_at < ? ORDER BY last_activity_at LIMIT ? ${this.unit.skipLocked}`,
        activeBefore,
        limit,
      ),
    ]);
  }

  ended(activeBefore: number | null, createdBefore: number | null, limit: number): SessionRow[] {
    if (activeBefore === null && createdBefore === null) return [];
    const endedBy = (condition: string, before: number | null): Statement[] =>
      before === null ? [] : [this.withLane(`${condition} AND depth = 0 LIMIT ?`, before, limit)];
    const rows = this.listed('ended', () => [
      ...endedBy("state IN ('created', 'suspended') AND last_activity_at < ?", activeBefore),
      ...endedBy('live_since < ?', createdBefore),
    ]);
    return rows.slice(0, limit);
  }

  expiredBefore(time: number, limit: number): string[] {
    const rows = this.listed(
      'expired',
      () => [this.withLane('expired_since < ? ORDER BY expired_since LIMIT ?', time, limit)],
      (ids) => {
        for (const id of ids) this.unit.locked.add(id);
        return this.openTurnsOf(ids);
      },
    );
    return rows.map(({ id }) => id);
  }

  override changes(): TableChanges {
    const changes = super.changes();
    const surfaces = this.changedRows().flatMap(([before, after]) => surfaceStatements(before, after));
    return { ...changes, deletes: [...changes.deletes, ...surfaces] };
  }

  removed(sessionId: string): void {
    const row = this.rows.get(sessionId);
    if (row) this.drop([row]);
  }

  private selected(filter: SessionFilter, limit: number): Query[] {
    const take: Query['take'] = ({ rows }) => {
      this.put(rows as unknown as SessionRow[]);
      this.unit.learn(nameOf(filter, limit));
    };
    return filtersInOrder(filter).map((each) => ({ ...selectSessions(each, limit), take }));
  }

  /** Reads the sessions of a slot. While the slot is locked, no session can join it, and each of its sessions is locked, too. */
  private locked(filter: SessionFilter, limit: number): Need {
    const surfaces = [...new Set([filter.surfaceId, ...this.surfacesOfNew()])];
    const filters = filter.surfaceId === undefined ? [filter] : surfaces.map((surfaceId) => ({ ...filter, surfaceId }));
    const take: Query['take'] = ({ rows }) => {
      for (const each of filters) this.unit.learn(nameOf(each, limit));
      const ids = new Set((rows as unknown as SessionRow[]).map(({ id }) => id));
      return this.lockAll([...ids].filter((id) => !this.rows.get(id)));
    };
    const surfaceIds = filters.flatMap(({ surfaceId }) => surfaceId ?? []);
    return {
      lock: { slots: filters.map(slotOf) },
      queries: [{ ...selectHolders(filter, surfaceIds), take }],
    };
  }

  /** Returns the surfaces of sessions that this work creates. Their slots are locked together, in order. */
  private surfacesOfNew(): string[] {
    return this.changedRows().flatMap(([before, after]) => (before || !after ? [] : surfacesOf(after)));
  }

  private lockAll(ids: readonly string[]): Query[] {
    if (ids.length === 0) return [];
    const lock = SQL.session.select(`WHERE id IN (${places(ids)}) ORDER BY id FOR UPDATE`, ...ids);
    return [{ ...lock, take: ({ rows }) => this.put(rows as unknown as SessionRow[]) }];
  }

  /**
   * Selects and locks sessions with their lanes, the session first. Every session has a lane. An outer join would accept a
   * session whose lane is locked, because SKIP LOCKED makes that lane look absent.
   */
  private withLane(rest: string, ...values: number[]): Statement {
    const join = 'STRAIGHT_JOIN {lane} ON {lane}.session_id = {session}.id';
    return SQL.session.select(`${join} WHERE ${rest} ${this.unit.skipLocked}`, ...values);
  }

  /** Runs queries once per transaction: the rows that they found are locked, so a repeat would find the same. */
  private listed(
    name: string,
    queries: () => Statement[],
    andThen: (ids: readonly string[]) => readonly Query[] = () => [],
  ): SessionRow[] {
    const found = this.unit.recall<Set<string>>(name, () => {
      const ids = new Set<string>();
      const take: Query['take'] = ({ rows }) => {
        const sessions = rows as unknown as SessionRow[];
        this.put(sessions);
        for (const { id } of sessions) ids.add(id);
        this.unit.learn(name, ids);
        return andThen(sessions.map(({ id }) => id));
      };
      return { queries: queries().map((query) => ({ ...query, take })) };
    });
    return [...found].flatMap((id) => this.rows.get(id) ?? []);
  }
}

/** The lock that concurrent changes of the same user, workspace and surface share. */
function slotOf({ userId, workspaceId, surfaceId }: SessionFilter): number {
  const slot = createHash('sha256')
    .update(JSON.stringify([userId, workspaceId, surfaceId]))
    .digest();
  return slot.readUInt32BE() % SLOTS;
}

function surfaceStatements(before: SessionRow | undefined, after: SessionRow | undefined): Statement[] {
  const { detached, attached } = surfaceChanges(before, after);
  const remove = `DELETE FROM {session_surface} WHERE surface_id IN (${places(detached)}) AND user_id = ? AND session_id = ?`;
  const add = `INSERT INTO {session_surface} (surface_id, user_id, session_id) VALUES ${attached.map(() => '(?, ?, ?)').join(', ')}`;
  return [
    ...(before && detached.length > 0
      ? [statement(remove, ...detached.map(([id]) => id), before.userId, before.id)]
      : []),
    ...(attached.length > 0 ? [statement(add, ...attached.flat())] : []),
  ];
}

/** A time in the filter follows the clock, which is read again after each load: the sessions that were loaded include those of later times. */
function nameOf({ activeAfter, ...filter }: SessionFilter, limit: number): string {
  return fact(activeAfter === undefined ? 'sessions' : 'recent sessions', JSON.stringify(filter), limit);
}
