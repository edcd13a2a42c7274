import { type DataSourceOptions } from 'typeorm';
import { loadPeer } from '../../common/load-peer.js';
import { sessionsMigrations } from './migrations.js';

/** Brings the schema up to date over a DataSource of its own, with the application's connection options. */
export async function runMigrations(options: DataSourceOptions, tablePrefix: string): Promise<void> {
  const { DataSource } = await loadPeer('typeorm', () => import('typeorm'));
  const dataSource = new DataSource({
    ...options,
    entities: [],
    subscribers: [],
    migrations: sessionsMigrations(tablePrefix),
    migrationsTableName: `${tablePrefix}migrations`,
    migrationsRun: false,
    synchronize: false,
    dropSchema: false,
    logging: false,
  });
  await dataSource.initialize();
  try {
    await dataSource.runMigrations({ transaction: 'each' });
  } finally {
    await dataSource.destroy();
  }
}
