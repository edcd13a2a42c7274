import { compareSessions } from '../../ledger/session.cursor.js';
import { type SessionRow } from '../core/rows.js';
import { compareSessionRows, cursorOf } from '../core/session-order.js';
import { type SessionFilter } from '../core/tables.js';
import { type Journal, MemoryTable } from './memory-table.js';

export class MemorySessions extends MemoryTable<SessionRow, string> {
  constructor(journal: Journal) {
    super(journal, (key) => (typeof key === 'string' ? key : key.id));
  }

  select(filter: SessionFilter, limit: number): SessionRow[] {
    return this.matching(filter).sort(compareSessionRows).slice(0, limit);
  }

  private matching(filter: SessionFilter): SessionRow[] {
    const { userId, workspaceId, states, surfaceId, activeAfter, activeBefore, after } = filter;
    return [...this.rows.values()].filter(
      (row) =>
        (userId === undefined || row.userId === userId) &&
        (workspaceId === undefined || row.workspaceId === workspaceId) &&
        (states === undefined || states.includes(row.state)) &&
        (surfaceId === undefined || (JSON.parse(row.surfaces) as string[]).includes(surfaceId)) &&
        (activeAfter === undefined || row.lastActivityAt > activeAfter) &&
        (activeBefore === undefined || row.lastActivityAt < activeBefore) &&
        (after === undefined || compareSessions(after, cursorOf(row)) < 0),
    );
  }
}
