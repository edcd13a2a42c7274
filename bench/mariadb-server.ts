import mysql from 'mysql2/promise';
import { mariadb } from '../test/support/services/mariadb.js';
import { startPrivateService } from '../test/support/services/services.js';
import { type StoreServer } from './store-server.js';

/** A private server. */
export async function openMariadbServer(): Promise<StoreServer> {
  const { url, stop } = await startPrivateService(mariadb);
  const connection = await mysql.createConnection(url);
  const [rows] = await connection.query('SELECT VERSION() AS version');
  await connection.end();
  const [{ version }] = rows as { version: string }[];
  return {
    version: `MariaDB ${version.split('-')[0]}, innodb_flush_log_at_trx_commit = 0`,
    address: url,
    close: stop,
  };
}
