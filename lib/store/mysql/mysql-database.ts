import { setTimeout as delay } from 'node:timers/promises';
import { type CoreDatabase, type Transaction } from '../core/tables.js';
import { TurnChangeEmitter } from '../core/turn-change-emitter.js';
import { asStoreError, isConflict } from './mysql-errors.js';
import { type MysqlConnection } from './mysql-connection.js';
import { type MysqlPool } from './mysql-pool.js';
import { readOnce } from './read-work.js';
import { TransactionLocks } from './transaction-locks.js';
import { writeOnce } from './write-work.js';

/** The maximum number of attempts per operation. From the second attempt, locks are taken first and in order. */
const MAX_ATTEMPTS = 30;
const RETRY_PAUSE_MS = 5;

/**
 * Runs the transitions of store/core on a remote database. Work runs on the loaded rows. If it needs more rows, the transaction
 * takes their locks and loads them, and the work runs again from its start. The writes of the completed run are sent in one
 * round trip that ends with the commit.
 */
export class MysqlDatabase implements CoreDatabase {
  private readonly changes = new TurnChangeEmitter();

  /** @param pool returns the pool. Throws if it does not exist */
  constructor(private readonly pool: () => MysqlPool) {}

  async write<T>(work: (tx: Transaction) => T): Promise<T> {
    const locks = new TransactionLocks();
    const { result, changed } = await this.retrying((connection) => writeOnce(connection, locks, work));
    for (const turnId of changed) this.changes.emit(turnId);
    return result;
  }

  read<T>(work: (tx: Transaction) => T): Promise<T> {
    return this.retrying((connection) => readOnce(connection, work));
  }

  onChanged(listener: (turnId: string) => void): () => void {
    return this.changes.subscribe(listener);
  }

  private async retrying<T>(work: (connection: MysqlConnection) => Promise<T>): Promise<T> {
    const deadline = this.pool().deadline();
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.pool().use(deadline, work);
      } catch (error) {
        if (!isConflict(error) || attempt >= MAX_ATTEMPTS || deadline.isOver) throw asStoreError(error);
        await delay(RETRY_PAUSE_MS * attempt * Math.random());
      }
    }
  }
}
