import { type LeaseRow, type TombstoneRow } from '../core/rows.js';
import { type Transaction } from '../core/tables.js';
import { MemoryTable } from './memory-table.js';
import { LoadedCheckpoints } from './loaded-checkpoints.js';
import { LoadedDocuments } from './loaded-documents.js';
import { LoadedLanes } from './loaded-lanes.js';
import { LoadedMessages } from './loaded-messages.js';
import { LoadedSessions } from './loaded-sessions.js';
import { LoadedTable } from './loaded-table.js';
import { LoadedTurnEvents } from './loaded-turn-events.js';
import { LoadedSignals, LoadedSteps, LoadedTurns } from './loaded-turns.js';
import { places, type Query, statement, type Statement } from './statement.js';
import { SQL } from './tables-sql.js';
import { NotLoaded, type Need, type Unit } from './unit.js';

/** The tables of one transaction, as the work uses them. */
export class WorkTables {
  readonly turns: LoadedTurns;
  readonly sessions: LoadedSessions;
  readonly lanes: LoadedLanes;
  readonly steps: LoadedSteps;
  readonly signals: LoadedSignals;
  readonly events: LoadedTurnEvents;
  readonly checkpoints: LoadedCheckpoints;
  readonly messages: LoadedMessages;
  readonly documents: LoadedDocuments;
  readonly leases: LoadedTable<LeaseRow, string>;
  readonly tombstones: LoadedTable<TombstoneRow, string>;

  constructor(readonly unit: Unit) {
    this.turns = new LoadedTurns(unit);
    this.sessions = new LoadedSessions(unit, (ids) => this.turns.openOf(ids));
    this.lanes = new LoadedLanes(unit);
    this.steps = new LoadedSteps(unit, this.turns);
    this.signals = new LoadedSignals(unit, this.turns);
    this.events = new LoadedTurnEvents(unit, this.turns);
    this.checkpoints = new LoadedCheckpoints(unit, (sessionId) => this.stepsOfNext(sessionId));
    this.messages = new LoadedMessages(unit, () => this.documents.expected());
    this.documents = new LoadedDocuments(unit);
    const leases = new MemoryTable<LeaseRow, string>(unit.journal, (key) => (typeof key === 'string' ? key : key.name));
    this.leases = new LoadedTable(unit, SQL.lease, leases, { rowLock: true });
    const tombstones = new MemoryTable<TombstoneRow, string>(unit.journal, (key) =>
      typeof key === 'string' ? key : key.sessionId,
    );
    this.tombstones = new LoadedTable(unit, SQL.tombstone, tombstones, {
      lockOf: (session) => ({ session }),
      bundled: true,
    });
  }

  /** Runs the work on the loaded data. @returns its result, or the data that it still needs */
  run<T>(work: (tx: Transaction) => T): { need: Need } | { result: T } {
    this.reset();
    try {
      return { result: work(this.transaction()) };
    } catch (error) {
      if (!(error instanceof NotLoaded)) throw error;
      this.reset();
      return { need: error.need };
    }
  }

  /** Returns the writes of the work, in an order in which no two rows ever have the same key. */
  changes(): Statement[] {
    const changes = this.all().map((table) => table.changes());
    return [
      ...this.removals(),
      ...this.unit.bulk,
      ...changes.flatMap(({ deletes }) => deletes),
      ...changes.flatMap(({ updates }) => updates),
      ...changes.flatMap(({ inserts }) => inserts),
    ];
  }

  /** Returns the removal of lanes that were created only for their lock. A transaction that waits for one creates it again. */
  unusedLanes(): Statement[] {
    const ids = [...this.unit.locked].filter((id) => this.lanes.isUnused(id) && !this.sessions.get(id));
    if (ids.length === 0) return [];
    return [statement(`DELETE FROM {lane} WHERE session_id IN (${places(ids)})`, ...ids)];
  }

  private reset(): void {
    this.unit.reset();
    for (const table of this.all()) table.reset();
  }

  private all(): Pick<LoadedTable<object, unknown>, 'changes' | 'reset'>[] {
    const { sessions, lanes, turns, steps, signals, events, checkpoints, messages, documents, leases, tombstones } =
      this;
    return [sessions, lanes, turns, steps, signals, events, checkpoints, messages, documents, leases, tombstones];
  }

  private transaction(): Transaction {
    const { unit } = this;
    const { sessions, lanes, turns, steps, signals, events, checkpoints, messages, documents, leases, tombstones } =
      this;
    return {
      get now() {
        return unit.now;
      },
      nextVersion: (before) => (before > 0 ? before + 1 : unit.micros),
      sessions,
      lanes,
      turns,
      steps,
      signals,
      events,
      checkpoints,
      messages,
      documents,
      leases,
      tombstones,
      viewLane: (sessionId) => lanes.view(sessionId),
      viewOpenLanes: (after, limit) => lanes.viewOpen(after, limit),
      deleteSession: (sessionId) => this.deleteSession(sessionId),
      deleteTurns: (settledBefore, limit) => this.turns.deleteSettled(settledBefore, limit),
      deleteExpiredEvents: (limit) => this.turns.deleteExpiredEvents(unit.now, limit),
      changed: (turnId) => unit.changed.add(turnId),
    };
  }

  /** Preloads the steps of the next turn, because work that reads a checkpoint usually claims that turn. */
  private stepsOfNext(sessionId: string): Query[] {
    const next = this.turns.next(sessionId);
    return this.unit.writes && next ? [this.steps.ofTurns([next.id])] : [];
  }

  private deleteSession(sessionId: string): void {
    this.unit.removedSessions.add(sessionId);
    for (const table of [this.sessions, this.lanes, this.turns, this.checkpoints, this.messages, this.documents]) {
      table.removed(sessionId);
    }
  }

  /** Deletes all rows of sessions that the work removed, loaded or not. */
  private removals(): Statement[] {
    const ids = [...this.unit.removedSessions];
    if (ids.length === 0) return [];
    const list = places(ids);
    const ofTurns = (table: string): Statement =>
      statement(
        `DELETE {${table}} FROM {${table}} JOIN {turn} ON {turn}.id = {${table}}.turn_id WHERE {turn}.session_id IN (${list})`,
        ...ids,
      );
    const ofSessions = (table: string, column = 'session_id'): Statement =>
      statement(`DELETE FROM {${table}} WHERE ${column} IN (${list})`, ...ids);
    return [
      ofTurns('step'),
      ofTurns('signal'),
      ofTurns('turn_event'),
      ...['turn', 'checkpoint', 'message', 'document', 'session_surface', 'lane'].map((table) => ofSessions(table)),
      ofSessions('session', 'id'),
    ];
  }
}
