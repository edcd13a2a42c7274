import { type Transaction } from '../core/tables.js';
import { type MysqlConnection } from './mysql-connection.js';
import { ask, type Query, statement } from './statement.js';
import { type TransactionLocks } from './transaction-locks.js';
import { type Need, Unit } from './unit.js';
import { WorkTables } from './work-tables.js';

const BEGIN = statement('START TRANSACTION');

/** Runs one attempt of the work in one transaction. @throws MysqlFailure, or the error of the work; then nothing is written */
export async function writeOnce<T>(
  connection: MysqlConnection,
  locks: TransactionLocks,
  work: (tx: Transaction) => T,
): Promise<{ result: T; changed: ReadonlySet<string> }> {
  const tables = new WorkTables(new Unit(true));
  const { unit } = tables;
  let begun = false;
  try {
    for (;;) {
      const outcome = tables.run(work);
      if ('result' in outcome) {
        const changes = tables.changes();
        // Without changes, a lane that was created only for its lock is rolled back.
        if (changes.length > 0 || unit.hasWritten) await connection.commit([...changes, ...tables.unusedLanes()]);
        else if (begun) await connection.rollBack();
        return { result: outcome.result, changed: unit.changed };
      }
      const queries = load(tables, locks, outcome.need);
      // Otherwise, the work would request the same data forever.
      if (begun && queries.length === 0) throw new Error('Nothing loads what the work asks for.');
      const trip = begun ? queries : [BEGIN, ...locks.first(tables), ...queries];
      // The first trip may fail after it has begun the transaction.
      begun = true;
      await ask(connection, trip, [unit.clock()]);
      unit.journal.clear();
    }
  } catch (error) {
    if (begun) await connection.rollBack();
    throw error;
  }
}

function load(tables: WorkTables, locks: TransactionLocks, { lock, queries, bundled }: Need): readonly Query[] {
  if (!lock) return queries;
  const locking = locks.lock(tables, lock);
  return bundled && locking.length > 0 ? locking : [...locking, ...queries];
}
