import { type PoolConnection } from 'mysql2';
import { type DataSource, type DataSourceOptions } from 'typeorm';
import { type MysqlDataSourceOptions } from 'typeorm/driver/mysql/MysqlDataSourceOptions.js';
import { loadPeer } from '../../common/load-peer.js';
import { Deadline } from '../../common/deadline.js';
import { connect, withConnectTimeout } from '../sql/open-data-source.js';
import { type SqlPlace } from '../sql/sql-place.js';
import { MysqlConnection } from './mysql-connection.js';
import { MysqlFailure } from './mysql-errors.js';

/**
 * Connections of our own, by the application's connection options. Not the application's: many statements go in one round
 * trip, which its pool does not allow (`multipleStatements`) and should not be made to, and its isolation level and time
 * zone stay its own.
 */
export class MysqlPool {
  private constructor(
    private readonly dataSource: DataSource,
    private readonly place: SqlPlace,
    private readonly operationTimeoutMs: number,
  ) {}

  /** @throws StoreUnavailableError when the server does not answer */
  static async open(options: DataSourceOptions, place: SqlPlace, operationTimeoutMs: number): Promise<MysqlPool> {
    const { DataSource } = await loadPeer('typeorm', () => import('typeorm'));
    const { default: mysql2 } = await loadPeer('mysql2', () => import('mysql2'));
    const given = withConnectTimeout(options, operationTimeoutMs) as MysqlDataSourceOptions;
    const dataSource = new DataSource({
      driver: mysql2,
      ...given,
      // What is given here has the last word in TypeORM. A connection that is reset would lose its settings.
      extra: {
        ...(given.extra as object | undefined),
        multipleStatements: true,
        charset: 'utf8mb4',
        resetOnRelease: false,
      },
      entities: [],
      subscribers: [],
      migrations: [],
      migrationsRun: false,
      synchronize: false,
      dropSchema: false,
      logging: false,
      cache: false,
    });
    await connect(dataSource, operationTimeoutMs);
    return new MysqlPool(dataSource, place, operationTimeoutMs);
  }

  /** For one operation, from now on. */
  deadline(): Deadline {
    return new Deadline(this.operationTimeoutMs);
  }

  /** Lends a connection for as long as the work takes. @throws MysqlFailure when there is none in time */
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
      // One that comes too late goes to whoever is next.
      void connecting.then((connection) => connection.release()).catch(() => {});
      throw new MysqlFailure(error, false);
    }
  }
}

/** What TypeORM's driver has, and its type does not say: the raw connection, of the master where there are replicas. */
interface MysqlDriver {
  obtainMasterConnection(): Promise<PoolConnection>;
}
