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
    return new DataSource(options);
  } catch (error) {
    if ((error as Error).name === 'DriverPackageNotInstalledError') throw missingPeer(dialectOf(options).driver, error);
    throw error;
  }
}
