import { type MigrationInterface } from 'typeorm';
import { MYSQL_MIGRATIONS } from '../mysql/mysql-migrations.js';
import { POSTGRES_MIGRATIONS } from '../postgres/postgres-migrations.js';
import { dialectOf } from '../sql/dialects.js';
import { type Migration, migrationClasses } from '../sql/migrations.js';
import { SQLITE_MIGRATIONS } from '../sqlite/sqlite-migrations.js';

const MIGRATIONS: Readonly<Record<string, readonly Migration[]>> = {
  sqlite: SQLITE_MIGRATIONS,
  postgresql: POSTGRES_MIGRATIONS,
  mysql: MYSQL_MIGRATIONS,
  mariadb: MYSQL_MIGRATIONS,
};

/**
 * Returns the migrations of this package for every dialect, oldest first. Table names start with `tablePrefix`. The adapter
 * runs them on SQLite, and elsewhere with `migrationsRun: true`. Otherwise, pass them to TypeORM's CLI (NST-23).
 */
export function sessionsMigrations(tablePrefix = 'agent_'): (new () => MigrationInterface)[] {
  const names = SQLITE_MIGRATIONS.map(({ name }) => name);
  return migrationClasses(names, tablePrefix, (options) => MIGRATIONS[dialectOf(options).system]);
}
