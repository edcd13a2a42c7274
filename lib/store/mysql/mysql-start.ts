import { probeStatements, tableNames } from '../sql/probe.js';
import { settingError } from '../sql/start-checks.js';
import { MYSQL_MIGRATIONS } from './mysql-migrations.js';
import { type MysqlPool } from './mysql-pool.js';
import { mysqlMessages } from './mysql.messages.js';
import { places, statement } from './statement.js';

/**
 * Checks the privileges on all tables, in one round trip.
 * @throws MysqlFailure, which names the first missing one
 */
export async function probeMysql(pool: MysqlPool): Promise<void> {
  const statements = ['START TRANSACTION', ...probeStatements(MYSQL_MIGRATIONS, 'INSERT IGNORE')];
  await pool.use(pool.deadline(), async (connection) => {
    try {
      await connection.run(statements.map((sql) => statement(sql)));
    } finally {
      await connection.rollBack();
    }
  });
}

/**
 * Checks the settings of the server, in one round trip (FIX-65).
 * @param maxValueBytes the size of the largest value, if it is known
 * @throws SessionsConfigurationError for a setting that would reject or change values
 */
export async function checkMysqlSettings(pool: MysqlPool, prefix: string, maxValueBytes: number): Promise<void> {
  const tables = tableNames(MYSQL_MIGRATIONS).map((name) => prefix + name);
  const [settings, columns] = await pool.use(pool.deadline(), (connection) =>
    connection.run([
      statement(
        'SELECT @@max_allowed_packet AS packet, @@character_set_client AS character_set_client, ' +
          '@@character_set_connection AS character_set_connection',
      ),
      statement(
        'SELECT table_name AS table_name, column_name AS column_name, character_set_name AS charset ' +
          'FROM information_schema.columns WHERE table_schema = DATABASE() ' +
          `AND table_name IN (${places(tables)}) AND character_set_name NOT IN ('utf8mb4', 'binary') LIMIT 1`,
        ...tables,
      ),
    ]),
  );
  const { packet, ...charsets } = settings.rows[0];
  for (const [name, value] of Object.entries(charsets)) {
    if (value !== 'utf8mb4') throw settingError(name, String(value), mysqlMessages.connectionCharsetCure());
  }
  if (columns.rows.length > 0) {
    const [{ table_name: table, column_name: column, charset }] = columns.rows;
    const name = `The character set of ${String(table)}.${String(column)}`;
    throw settingError(name, String(charset), mysqlMessages.columnCharsetCure());
  }
  const needed = 2 * maxValueBytes;
  if (Number(packet) >= needed) return;
  throw settingError('max_allowed_packet', String(packet), mysqlMessages.maxPacketCure(needed));
}
