import { type PoolConnection } from 'mysql2';
import { type DataSource, type DataSourceOptions } from 'typeorm';
import { Deadline } from '../../common/deadline.js';
import { newDataSource } from '../sql/new-data-source.js';
import { connect, withConnectTimeout } from '../sql/open-data-source.js';
import { ownOptions } from '../sql/own-options.js';
import { type SqlPlace } from '../sql/sql-place.js';
import { MysqlConnection } from './mysql-connection.js';
import { MysqlFailure } from './mysql-errors.js';

type MysqlOptions = Extract<DataSourceOptions, { readonly type: 'mysql' | 'mariadb' }>;

/**
 * A separate pool with the application's connection options. The store sends many statements per round trip, and should not
 * enable `multipleStatements` in the application's pool or change its isolation level and time zone.
 */
export class MysqlPool {
  private constructor(
    private readonly dataSource: DataSource,
    private readonly place: SqlPlace,
    private readonly operationTimeoutMs: number,
  ) {}

  /** @throws StoreUnavailableError if the server does not answer */
  static async open(options: DataSourceOptions, place: SqlPlace, operationTimeoutMs: number): Promise<MysqlPool> {
    const own = ownOptions(withConnectTimeout(options, operationTimeoutMs)) as MysqlOptions;
    const dataSource = await newDataSource({
      ...own,
      // A connection reset would lose the session settings.
      extra: { ...(own.extra as object), multipleStatements: true, charset: 'utf8mb4', resetOnRelease: false },
      logging: false,
    });
    await connect(dataSource, operationTimeoutMs);
    return new MysqlPool(dataSource, place, operationTimeoutMs);
  }

  /** Returns the deadline of an operation that starts now. */
  deadline(): Deadline {
    return new Deadline(this.operationTimeoutMs);
  }

  /** Runs work with a connection. @throws MysqlFailure if no connection is available in time */
  async use<T>(deadline: Deadline, work: (connection: MysqlConnection) => Promise<T>): Promise<T> {
    const connection = new MysqlConnection(await this.obtain(deadline), this.place, deadline);
    try {
      return await work(connection);
    } finally {
      connection.release();
    }
  }

  close(): Promise<void> {
    return this.dataSource.destroy();
  }

  private async obtain(deadline: Deadline): Promise<PoolConnection> {
    const driver = this.dataSource.driver as unknown as MysqlDriver;
    const connecting = driver.obtainMasterConnection();
    try {
      return await deadline.wait(connecting);
    } catch (error) {
      // Releases a connection that arrives too late.
      void connecting.then((connection) => connection.release()).catch(() => {});
      throw new MysqlFailure(error, false);
    }
  }
}

/** The raw connection of TypeORM's driver, missing in its type: the master's connection if there are replicas. */
interface MysqlDriver {
  obtainMasterConnection(): Promise<PoolConnection>;
}
