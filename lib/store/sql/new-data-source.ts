import { type DataSource, type DataSourceOptions } from 'typeorm';
import { loadPeer, missingPeer } from '../../common/load-peer.js';
import { dialectOf } from './dialects.js';

/**
 * Creates a DataSource, which loads its driver.
 * @throws SessionsConfigurationError with the command to install TypeORM or the driver, if it is missing (DAY-04)
 */
export async function newDataSource(options: DataSourceOptions): Promise<DataSource> {
  const { DataSource } = await loadPeer('typeorm', () => import('typeorm'));
  try {
    return new DataSource(await withDriver(options));
  } catch (error) {
    if ((error as Error).name === 'DriverPackageNotInstalledError') throw missingPeer(dialectOf(options).driver, error);
    throw error;
  }
}

/** Sets the driver, because TypeORM 0.3 prefers the package `mysql` if it is installed (DAY-07). */
async function withDriver(options: DataSourceOptions): Promise<DataSourceOptions> {
  if ((options.type !== 'mysql' && options.type !== 'mariadb') || options.driver) return options;
  const { default: driver } = await loadPeer('mysql2', () => import('mysql2'));
  return { ...options, driver };
}
