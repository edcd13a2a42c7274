import { type DataSourceOptions } from 'typeorm';
import { SessionsConfigurationError } from '../../common/sessions.error.js';

/** What the databases that TypeORM reaches do not have in common. */
export interface Dialect {
  readonly title: string;
  /** OpenTelemetry's `db.system.name`. */
  readonly system: string;
  /** The port of a server that names none. */
  readonly port?: number;
  readonly quote: '"' | '`';
}

const SQLITE: Dialect = { title: 'SQLite', system: 'sqlite', quote: '"' };
const POSTGRES: Dialect = {
  title: 'PostgreSQL',
  system: 'postgresql',
  port: 5432,
  quote: '"',
};
const MYSQL: Dialect = { title: 'MySQL', system: 'mysql', port: 3306, quote: '`' };

const DIALECTS = {
  'better-sqlite3': SQLITE,
  postgres: POSTGRES,
  mysql: MYSQL,
  mariadb: { ...MYSQL, title: 'MariaDB', system: 'mariadb' },
} as const satisfies { [Type in DataSourceOptions['type']]?: Dialect };

/** @throws SessionsConfigurationError for a database that there is no store for */
export function dialectOf({ type }: Pick<DataSourceOptions, 'type'>): Dialect {
  // Object.hasOwn: the type is what somebody wrote.
  if (Object.hasOwn(DIALECTS, type)) return DIALECTS[type as keyof typeof DIALECTS];
  throw new SessionsConfigurationError(
    `typeormAdapter: dataSource.type is ${JSON.stringify(type)}; it must be one of ${Object.keys(DIALECTS).join(', ')}.`,
  );
}
