import { firstVersion } from './first-version.js';
import { TurnChangeEmitter } from './turn-change-emitter.js';
import { IndexedCheckpoints, IndexedDocuments, IndexedMessages } from './indexed-contents.js';
import { IndexedSessions } from './indexed-sessions.js';
import { IndexedLanes, IndexedSignals, IndexedSteps, IndexedTurnEvents, IndexedTurns } from './indexed-turns.js';
import { IndexedTable } from './indexed-table.js';
import { type LeaseRow, type TombstoneRow, type TurnRow } from './rows.js';
import { type TableDatabase, type TableTransaction } from './table-database.js';
import { type CoreDatabase, type Transaction } from './tables.js';

/** A database for the transitions, on tables with indexes. */
export class IndexedDatabase implements CoreDatabase {
  private readonly changes = new TurnChangeEmitter();

  constructor(private readonly tables: TableDatabase) {}

  async write<T>(work: (tx: Transaction) => T): Promise<T> {
    let changed = new Set<string>();
    const result = await this.tables.write((tx) => {
      // An earlier run of this work was not committed.
      changed = new Set();
      return work(transaction(tx, changed));
    });
    for (const turnId of changed) this.changes.emit(turnId);
    return result;
  }

  read<T>(work: (tx: Transaction) => T): Promise<T> {
    return this.tables.read((tx) => work(transaction(tx, new Set())));
  }

  onChanged(listener: (turnId: string) => void): () => void {
    return this.changes.subscribe(listener);
  }
}

function transaction(tx: TableTransaction, changed: Set<string>): Transaction {
  const { now } = tx;
  const sessions = new IndexedSessions(tx);
  const lanes = new IndexedLanes(tx);
  const turns = new IndexedTurns(tx);
  const steps = new IndexedSteps(tx);
  const signals = new IndexedSignals(tx);
  const events = new IndexedTurnEvents(tx);
  const checkpoints = new IndexedCheckpoints(tx);
  const messages = new IndexedMessages(tx);
  const documents = new IndexedDocuments(tx);
  const leases = new IndexedTable<LeaseRow, string>(tx, 'lease');
  const tombstones = new IndexedTable<TombstoneRow, string>(tx, 'tombstone');

  const deleteTurns = (rows: readonly TurnRow[]): number => {
    for (const { id } of rows) {
      steps.deleteAll(steps.ofTurn(id));
      signals.deleteAll(signals.ofTurn(id));
      events.deleteAll(events.ofTurn(id));
      turns.delete(id);
    }
    return rows.length;
  };
  const deleteEvents = (rows: readonly TurnRow[]): number => {
    for (const { id } of rows) {
      events.deleteAll(events.ofTurn(id));
      turns.update(id, { eventTtl: null });
    }
    return rows.length;
  };

  return {
    now,
    nextVersion: (before) => (before > 0 ? before + 1 : firstVersion(leases, now)),
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
    viewLane: (sessionId) => turns.viewLane(sessionId),
    viewOpenLanes: (after, limit) => turns.viewOpenLanes(after, limit),
    deleteSession: (sessionId) => {
      deleteTurns(turns.ofSession(sessionId));
      checkpoints.deleteAll(checkpoints.all('session', [sessionId]));
      messages.clear(sessionId);
      documents.deleteAll(documents.all('primary', [sessionId]));
      lanes.delete(sessionId);
      sessions.delete(sessionId);
    },
    deleteTurns: (settledBefore, limit) => deleteTurns(turns.settledBefore(settledBefore, limit)),
    deleteExpiredEvents: (limit) => deleteEvents(turns.withExpiredEvents(now, limit)),
    changed: (turnId) => changed.add(turnId),
  };
}
