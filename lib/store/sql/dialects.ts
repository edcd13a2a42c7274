import { type DataSourceOptions } from 'typeorm';
import { serverPlace } from '../../common/server-place.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { sqlMessages } from './sql.messages.js';

/** The differences between the databases that TypeORM supports. */
export interface Dialect {
  readonly title: string;
  /** OpenTelemetry's `db.system.name`. */
  readonly system: string;
  /** The default port of the server. */
  readonly port?: number;
  readonly quote: '"' | '`';
  /** The package that connects to the database. */
  readonly driver: string;
}

const SQLITE: Dialect = { title: 'SQLite', system: 'sqlite', quote: '"', driver: 'better-sqlite3' };
const POSTGRES: Dialect = {
  title: 'PostgreSQL',
  system: 'postgresql',
  port: 5432,
  quote: '"',
  driver: 'pg',
};
const MYSQL: Dialect = { title: 'MySQL', system: 'mysql', port: 3306, quote: '`', driver: 'mysql2' };

const DIALECTS = {
  'better-sqlite3': SQLITE,
  postgres: POSTGRES,
  mysql: MYSQL,
  mariadb: { ...MYSQL, title: 'MariaDB', system: 'mariadb' },
} as const satisfies { [Type in DataSourceOptions['type']]?: Dialect };

/** @throws SessionsConfigurationError for an unsupported database */
export function dialectOf({ type }: Pick<DataSourceOptions, 'type'>): Dialect {
  // Object.hasOwn, because the type is user input.
  if (Object.hasOwn(DIALECTS, type)) return DIALECTS[type as keyof typeof DIALECTS];
  throw new SessionsConfigurationError(sqlMessages.unknownType(Object.keys(DIALECTS), type));
}

/** Returns the server for the log: `PostgreSQL at db:5432/app`. */
export function serverLabel({ title, port = 0 }: Dialect, connection: DataSourceOptions): string {
  const place = serverPlace(connection, port);
  return place === undefined ? title : `${title} at ${place}`;
}
