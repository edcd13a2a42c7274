import { type DataSourceOptions } from 'typeorm';

/**
 * The settings with which mysql2 reads and writes values for TypeORM and this package, whatever the application's are
 * (FIX-66). TypeORM applies `extra` last.
 */
const MYSQL_VALUES = {
  typeCast: true,
  rowsAsArray: false,
  nestTables: false,
  namedPlaceholders: false,
  queryFormat: undefined,
  stringifyObjects: true,
  supportBigNumbers: true,
  bigNumberStrings: true,
  decimalNumbers: false,
  dateStrings: false,
  jsonStrings: false,
};

/** Returns the options of a DataSource that this package opens: the application's connection, without its tables. */
export function ownOptions(options: DataSourceOptions): DataSourceOptions {
  const isMysql = options.type === 'mysql' || options.type === 'mariadb';
  return {
    ...options,
    ...(isMysql ? { extra: { ...(options.extra as object | undefined), ...MYSQL_VALUES } } : {}),
    entities: [],
    subscribers: [],
    migrations: [],
    migrationsRun: false,
    synchronize: false,
    dropSchema: false,
    cache: false,
  };
}
