import { compareSessions } from '../../ledger/session.cursor.js';
import { LIVE_STATES } from '../../ledger/session.js';
import { iso } from '../core/iso.js';
import { type SessionRow } from '../core/rows.js';
import { type SessionFilter, type SessionTable } from '../core/tables.js';
import { type Journal, MemoryTable, SetIndex } from './memory-table.js';

export class MemorySessions extends MemoryTable<SessionRow, string> implements SessionTable {
  private readonly byUser = new SetIndex<SessionRow>();
  private readonly byState = new SetIndex<SessionRow>();

  constructor(
    journal: Journal,
    private readonly hasOpenTurns: (sessionId: string) => boolean,
  ) {
    super(journal, (key) => (typeof key === 'string' ? key : key.id));
  }

  select(filter: SessionFilter, limit: number): SessionRow[] {
    return this.matching(filter).sort(byActivity).slice(0, limit);
  }

  count(filter: SessionFilter): number {
    return this.matching(filter).length;
  }

  stale(activeBefore: number, limit: number): SessionRow[] {
    return this.byState
      .of('active')
      .filter((row) => row.lastActivityAt < activeBefore)
      .sort((a, b) => a.lastActivityAt - b.lastActivityAt)
      .slice(0, limit);
  }

  ended(activeBefore: number | null, createdBefore: number | null, limit: number): SessionRow[] {
    return LIVE_STATES.flatMap((state) => this.byState.of(state))
      .filter(
        (row) =>
          (createdBefore !== null && row.createdAt < createdBefore) ||
          (activeBefore !== null && row.state !== 'active' && row.lastActivityAt < activeBefore),
      )
      .filter((row) => !this.hasOpenTurns(row.id))
      .slice(0, limit);
  }

  expiredBefore(time: number, limit: number): string[] {
    return this.byState
      .of('expired')
      .filter(({ stateChangedAt }) => stateChangedAt !== null && stateChangedAt < time)
      .slice(0, limit)
      .map(({ id }) => id);
  }

  private matching(filter: SessionFilter): SessionRow[] {
    const { userId, workspaceId, states, surfaceId, activeAfter, activeBefore, after } = filter;
    const candidates = userId === undefined ? [...this.rows.values()] : this.byUser.of(userId);
    return candidates.filter(
      (row) =>
        (workspaceId === undefined || row.workspaceId === workspaceId) &&
        (states === undefined || states.includes(row.state)) &&
        (surfaceId === undefined || (JSON.parse(row.surfaces) as string[]).includes(surfaceId)) &&
        (activeAfter === undefined || row.lastActivityAt > activeAfter) &&
        (activeBefore === undefined || row.lastActivityAt < activeBefore) &&
        (after === undefined || compareSessions(after, toCursor(row)) < 0),
    );
  }

  protected override added(row: SessionRow): void {
    this.byUser.add(row.userId, row);
    this.byState.add(row.state, row);
  }

  protected override removed(row: SessionRow): void {
    this.byUser.remove(row.userId, row);
    this.byState.remove(row.state, row);
  }
}

const toCursor = (row: SessionRow): { lastActivityAt: string; createdAt: string; id: string } => ({
  lastActivityAt: iso(row.lastActivityAt),
  createdAt: iso(row.createdAt),
  id: row.id,
});

const byActivity = (a: SessionRow, b: SessionRow): number => compareSessions(toCursor(a), toCursor(b));
