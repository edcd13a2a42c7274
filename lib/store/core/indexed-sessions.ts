import { compareSessions } from '../../ledger/session.cursor.js';
import { LIVE_STATES } from '../../ledger/session.js';
import { IndexedTable, take } from './indexed-table.js';
import { type SessionRow } from './rows.js';
import { cursorOf } from './session-order.js';
import { compareKeys, type RowKey, type TableTransaction } from './table-database.js';
import { type SessionFilter, type SessionTable } from './tables.js';

export class IndexedSessions extends IndexedTable<SessionRow, string> implements SessionTable {
  constructor(tx: TableTransaction) {
    super(tx, 'session');
  }

  select(filter: SessionFilter, limit: number): SessionRow[] {
    return take(this.matching(filter), limit);
  }

  count(filter: SessionFilter): number {
    let count = 0;
    for (const _row of this.matching(filter)) count += 1;
    return count;
  }

  stale(activeBefore: number, limit: number): SessionRow[] {
    return take(this.scan('idle', ['active'], { before: [activeBefore], limit }), limit);
  }

  ended(activeBefore: number | null, createdBefore: number | null, limit: number): SessionRow[] {
    const rows = new Map<string, SessionRow>();
    for (const row of this.pastLifetime(activeBefore, createdBefore)) {
      if (rows.size >= limit) break;
      if (!this.hasOpenTurns(row.id)) rows.set(row.id, row);
    }
    return [...rows.values()];
  }

  expiredBefore(time: number, limit: number): string[] {
    return take(this.scan('changed', ['expired'], { before: [time], limit }), limit).map(({ id }) => id);
  }

  private hasOpenTurns(sessionId: string): boolean {
    const lane = this.tx.get('lane', [sessionId]);
    return lane !== undefined && lane.depth !== 0;
  }

  private *pastLifetime(activeBefore: number | null, createdBefore: number | null): Generator<SessionRow> {
    for (const state of LIVE_STATES) {
      if (activeBefore !== null && state !== 'active') yield* this.scan('idle', [state], { before: [activeBefore] });
      if (createdBefore !== null) yield* this.scan('age', [state], { before: [createdBefore] });
    }
  }

  private *matching(filter: SessionFilter): Generator<SessionRow> {
    const { userId, workspaceId, states, surfaceId, activeAfter, activeBefore, after } = filter;
    const bounds: RowKey[] = [];
    if (activeBefore !== undefined) bounds.push([activeBefore]);
    if (after) bounds.push([Date.parse(after.lastActivityAt), Date.parse(after.createdAt) + 1]);
    const newest = this.scan(userId === undefined ? 'activity' : 'user', userId === undefined ? [] : [userId], {
      reverse: true,
      before: bounds.sort(compareKeys)[0],
      ...(activeAfter === undefined ? {} : { after: [activeAfter] }),
    });
    for (const row of ascendingIds(newest)) {
      if (
        (workspaceId === undefined || row.workspaceId === workspaceId) &&
        (states === undefined || states.includes(row.state)) &&
        (surfaceId === undefined || (JSON.parse(row.surfaces) as string[]).includes(surfaceId)) &&
        (after === undefined || compareSessions(after, cursorOf(row)) < 0)
      ) {
        yield row;
      }
    }
  }
}

/** Yields the rows of a descending range. Rows with the same times come in ascending order of their ids. */
function* ascendingIds(rows: Iterable<SessionRow>): Generator<SessionRow> {
  let equal: SessionRow[] = [];
  for (const row of rows) {
    if (equal.length > 0 && (equal[0].lastActivityAt !== row.lastActivityAt || equal[0].createdAt !== row.createdAt)) {
      yield* equal.reverse();
      equal = [];
    }
    equal.push(row);
  }
  yield* equal.reverse();
}
