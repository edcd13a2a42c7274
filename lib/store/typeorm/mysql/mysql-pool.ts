import { type PoolConnection } from 'mysql2';
import { type DataSource, type DataSourceOptions } from 'typeorm';
import { type MysqlDataSourceOptions } from 'typeorm/driver/mysql/MysqlDataSourceOptions.js';
import { loadPeer } from '../../../common/load-peer.js';
import { type SqlPlace } from '../sql-place.js';
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
  ) {}

  /** @throws MysqlFailure when the server does not answer */
  static async open(options: DataSourceOptions, place: SqlPlace): Promise<MysqlPool> {
    const { DataSource } = await loadPeer('typeorm', () => import('typeorm'));
    const { default: mysql2 } = await loadPeer('mysql2', () => import('mysql2'));
    const given = options as MysqlDataSourceOptions;
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
    try {
      await dataSource.initialize();
    } catch (error) {
      throw new MysqlFailure(error);
    }
    return new MysqlPool(dataSource, place);
  }

  /** Lends a connection for as long as the work takes. */
  async use<T>(work: (connection: MysqlConnection) => Promise<T>): Promise<T> {
    const connection = new MysqlConnection(await this.obtain(), this.place);
    try {
      return await work(connection);
    } finally {
      connection.release();
    }
  }

  close(): Promise<void> {
    return this.dataSource.destroy();
  }

  private async obtain(): Promise<PoolConnection> {
    const { driver } = this.dataSource;
    try {
      return (await (driver as unknown as MysqlDriver).obtainMasterConnection()) as PoolConnection;
    } catch (error) {
      throw new MysqlFailure(error);
    }
  }
}

/** What TypeORM's driver has, and its type does not say: the raw connection, of the master where there are replicas. */
interface MysqlDriver {
  obtainMasterConnection(): Promise<unknown>;
}
