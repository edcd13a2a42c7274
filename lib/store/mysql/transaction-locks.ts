import { ALL_LANES } from '../core/lane.js';
import { type Query, statement } from './statement.js';
import { type Lock, type SessionTerm } from './unit.js';
import { type WorkTables } from './work-tables.js';

const NOW = 'CAST(UNIX_TIMESTAMP(SYSDATE(3)) * 1000 AS SIGNED)';

/**
 * The locks of a transaction: slots first, then the lane of a session, then its record. A missing lane is created, because a
 * missing row cannot be locked under READ COMMITTED. Otherwise, writes for a session without a record (an external session, or
 * one about to be created) could run concurrently with an erase that they do not see. If neither a session nor a turn needs the
 * lane, the transaction removes it again.
 */
export class TransactionLocks {
  /** The slots of earlier attempts. They are locked first and in order, so that a deadlock does not repeat. */
  readonly slots = new Set<number>();
  readonly sessions = new Set<string>();

  /** Returns the first queries of an attempt. */
  first(tables: WorkTables): Query[] {
    return [
      ...(this.slots.size > 0 ? this.lock(tables, { slots: [...this.slots] }) : []),
      ...[...this.sessions].sort().flatMap((session) => this.lock(tables, { session })),
    ];
  }

  lock(tables: WorkTables, lock: Lock): Query[] {
    if ('slots' in lock) return this.lockSlots(lock.slots);
    if ('turn' in lock) return this.lockTurn(tables, lock.turn);
    return this.lockSession(tables, lock.session);
  }

  private lockSlots(slots: readonly number[]): Query[] {
    const sorted = [...new Set(slots)].sort((a, b) => a - b);
    for (const slot of sorted) this.slots.add(slot);
    const rows = sorted.map(() => '(?)').join(', ');
    return [statement(`INSERT INTO {slot} (id) VALUES ${rows} ON DUPLICATE KEY UPDATE id = id`, ...sorted)];
  }

  private lockSession(tables: WorkTables, id: string): Query[] {
    if (tables.unit.locked.has(id)) return [];
    this.sessions.add(id);
    const made = statement(
      `INSERT INTO {lane} (session_id, next_position, depth, fence, offers) VALUES (?, 1, 0, ${NOW}, 0)
       ON DUPLICATE KEY UPDATE session_id = session_id`,
      id,
    );
    const session: SessionTerm = { sql: '?', values: [id], id: () => id };
    return [made, ...this.bundle(tables, session), ...tables.turns.arrived(id)];
  }

  /** Locks a turn whose session id is not loaded. Every turn has a lane. */
  private lockTurn(tables: WorkTables, turnId: string): Query[] {
    let found: string | undefined;
    const session: SessionTerm = { sql: '@session', values: [], id: () => found };
    return [
      statement('SET @session = (SELECT session_id FROM {turn} WHERE id = ?)', turnId),
      ...this.bundle(tables, session, (id) => (found = id)),
    ];
  }

  /** Locks a session, and loads the data that most work needs. */
  private bundle(tables: WorkTables, session: SessionTerm, known: (id: string) => void = () => {}): Query[] {
    const { lanes, sessions, tombstones, turns, messages, unit } = tables;
    const lane = lanes.bySession(session, 'FOR UPDATE', (row) => {
      if (!row) return;
      known(row.sessionId);
      this.sessions.add(row.sessionId);
      unit.locked.add(row.sessionId);
    });
    return [
      lane,
      // Read after the lock, to see every earlier change.
      lanes.byKey(ALL_LANES),
      sessions.bySession(session, 'FOR UPDATE'),
      tombstones.bySession(session, ''),
      turns.firstOpen(session),
      messages.last(session),
    ];
  }
}
