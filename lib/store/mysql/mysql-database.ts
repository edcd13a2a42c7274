import { setTimeout as delay } from 'node:timers/promises';
import { type CoreDatabase, type Transaction } from '../core/tables.js';
import { HintEmitter } from '../core/hint-emitter.js';
import { asStoreError, isConflict } from './mysql-errors.js';
import { type MysqlConnection } from './mysql-connection.js';
import { type MysqlPool } from './mysql-pool.js';
import { readOnce } from './read-work.js';
import { TransactionLocks } from './transaction-locks.js';
import { writeOnce } from './write-work.js';

/** Attempts of one operation at most; from the second one on it takes its locks first and in order. */
const MAX_ATTEMPTS = 30;
const RETRY_PAUSE_MS = 5;

/**
 * The transitions of store/core over a remote database. A work runs over the rows that are loaded; when it asks for more, that is
 * loaded inside the transaction, behind the locks that cover it, and the work runs again from its start. What it wrote in
 * the run that completes goes out in one round trip that ends with the commit.
 */
export class MysqlDatabase implements CoreDatabase {
  private readonly hints = new HintEmitter();

  /** @param pool throws while there is none */
  constructor(private readonly pool: () => MysqlPool) {}

  async write<T>(work: (tx: Transaction) => T): Promise<T> {
    const locks = new TransactionLocks();
    const { result, changed } = await this.retrying((connection) => writeOnce(connection, locks, work));
    for (const turnId of changed) this.hints.tell(turnId);
    return result;
  }

  read<T>(work: (tx: Transaction) => T): Promise<T> {
    return this.retrying((connection) => readOnce(connection, work));
  }

  onChanged(listener: (turnId: string) => void): () => void {
    return this.hints.subscribe(listener);
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
