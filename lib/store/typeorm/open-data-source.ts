import { type DataSource, type DataSourceOptions } from 'typeorm';
import { loadPeer } from '../../common/load-peer.js';

/** A connected DataSource, and how to let go of it: only what was opened here is closed (NST-05). */
export interface OpenDataSource {
  readonly dataSource: DataSource;
  close(): Promise<void>;
}

/** The application's DataSource as it is, or one of our own by its options. */
export async function openDataSource(given: DataSource | DataSourceOptions): Promise<OpenDataSource> {
  const dataSource = isDataSource(given) ? given : await newDataSource(given);
  if (dataSource.isInitialized) return { dataSource, close: async () => {} };
  await dataSource.initialize();
  return { dataSource, close: () => dataSource.destroy() };
}

export function optionsOf(given: DataSource | DataSourceOptions): DataSourceOptions {
  return isDataSource(given) ? given.options : given;
}

function isDataSource(given: DataSource | DataSourceOptions): given is DataSource {
  return 'options' in given && 'createQueryRunner' in given;
}

async function newDataSource(options: DataSourceOptions): Promise<DataSource> {
  const { DataSource } = await loadPeer('typeorm', () => import('typeorm'));
  // The tables are not touched by whatever else the options say.
  return new DataSource({
    ...options,
    entities: [],
    subscribers: [],
    migrations: [],
    synchronize: false,
    dropSchema: false,
  });
}
