import { type Transaction } from '../core/tables.js';
import { type MysqlConnection } from './mysql-connection.js';
import { ask, statement } from './statement.js';
import { type Need, Unit } from './unit.js';
import { WorkTables } from './work-tables.js';

/** Makes all reads of the next transaction use one snapshot. */
const SNAPSHOT = [
  statement('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ'),
  statement('START TRANSACTION READ ONLY'),
];
const COMMIT = statement('COMMIT');

/** Runs work that only reads: one query without a transaction, or several in one snapshot. */
export async function readOnce<T>(connection: MysqlConnection, work: (tx: Transaction) => T): Promise<T> {
  const tables = new WorkTables(new Unit(false));
  const first = tables.run(work);
  if ('result' in first) return first.result;
  if (first.need.more) return readSnapshot(connection, work);
  await load(connection, tables, first.need);
  const second = tables.run(work);
  return 'result' in second ? second.result : readSnapshot(connection, work);
}

async function readSnapshot<T>(connection: MysqlConnection, work: (tx: Transaction) => T): Promise<T> {
  const tables = new WorkTables(new Unit(false));
  let begun = false;
  try {
    for (;;) {
      const outcome = tables.run(work);
      if ('result' in outcome) {
        await connection.run([COMMIT]);
        return outcome.result;
      }
      await load(connection, tables, outcome.need, begun ? [] : SNAPSHOT);
      begun = true;
    }
  } catch (error) {
    if (begun) await connection.rollBack();
    throw error;
  }
}

async function load(
  connection: MysqlConnection,
  { unit }: WorkTables,
  { queries }: Need,
  before: typeof SNAPSHOT = [],
): Promise<void> {
  await ask(connection, [...before, ...queries]);
  unit.journal.clear();
}
