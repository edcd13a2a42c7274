import { inspect } from 'node:util';
import { type DataSourceOptions } from 'typeorm';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { sqlMessages } from './sql.messages.js';

/** A rule that refuses a value of an option. */
interface Refusal {
  readonly refuses: (value: unknown) => boolean;
  /** What to do instead. */
  readonly cure: string;
  /** Whether it applies only to connections that the adapter opens. Default: false. */
  readonly unlessOpen?: boolean;
}

/**
 * How the stores treat an option of a DataSource (FIX-67). `honoured`: it has its effect on the store's connections, tables
 * or entities. `irrelevant`: it changes neither where nor how the store's data is stored.
 */
type Rule = 'honoured' | 'irrelevant' | Refusal;

/** TypeORM has one type of options for both. */
type MysqlType = 'mysql' | 'mariadb';
type OptionsOf<Type> = Extract<DataSourceOptions, { readonly type: Type }>;
type CommonKey = keyof OptionsOf<'postgres'> & keyof OptionsOf<MysqlType> & keyof OptionsOf<'better-sqlite3'>;
type Rules<Type> = Readonly<Record<Exclude<keyof OptionsOf<Type>, keyof typeof COMMON>, Rule>>;

/** The options of every dialect. TypeScript reports an option that is missing here. */
const COMMON = {
  type: 'honoured',
  database: 'honoured',
  driver: 'honoured',
  entityPrefix: 'honoured',
  // Compared with the names of the store's tables, see assertEntityNames.
  namingStrategy: 'honoured',
  poolSize: 'honoured',
  extra: 'honoured',
  dropSchema: {
    refuses: Boolean,
    cure: 'It would delete stored sessions at each start. Remove it, or initialize the DataSource before the adapter uses it.',
    unlessOpen: true,
  },
  // The store's tables are created by its own migrations, and its entities are excluded from `synchronize`.
  entities: 'irrelevant',
  subscribers: 'irrelevant',
  migrations: 'irrelevant',
  migrationsRun: 'irrelevant',
  migrationsTableName: 'irrelevant',
  migrationsTransactionMode: 'irrelevant',
  metadataTableName: 'irrelevant',
  synchronize: 'irrelevant',
  // The store sets the level that its statements need.
  isolationLevel: 'irrelevant',
  // The store runs its own statements, never a query of an entity.
  cache: 'irrelevant',
  entitySkipConstructor: 'irrelevant',
  invalidWhereValuesBehavior: 'irrelevant',
  isolateWhereStatements: 'irrelevant',
  relationLoadStrategy: 'irrelevant',
  typename: 'irrelevant',
  logger: 'irrelevant',
  logging: 'irrelevant',
  maxQueryExecutionTime: 'irrelevant',
} as const satisfies Readonly<Record<CommonKey, Rule>>;

const POSTGRES: Rules<'postgres'> = {
  applicationName: 'honoured',
  connectTimeoutMS: 'honoured',
  host: 'honoured',
  nativeDriver: 'honoured',
  password: 'honoured',
  poolErrorHandler: 'honoured',
  port: 'honoured',
  // The store reads and writes on the master.
  replication: 'honoured',
  schema: 'honoured',
  ssl: 'honoured',
  url: 'honoured',
  username: 'honoured',
  extensions: 'irrelevant',
  installExtensions: 'irrelevant',
  logNotifications: 'irrelevant',
  // The store reads answers as text (FIX-66), and stores times as numbers.
  parseInt8: 'irrelevant',
  useUTC: 'irrelevant',
  uuidExtension: 'irrelevant',
};

const MYSQL: Rules<MysqlType> = {
  acquireTimeout: 'honoured',
  connectTimeout: 'honoured',
  debug: 'honoured',
  flags: 'honoured',
  host: 'honoured',
  insecureAuth: 'honoured',
  password: 'honoured',
  port: 'honoured',
  // The store reads and writes on the master.
  replication: 'honoured',
  socketPath: 'honoured',
  ssl: 'honoured',
  trace: 'honoured',
  url: 'honoured',
  username: 'honoured',
  // The store has its own connections, with utf8mb4 and its own reading of values (FIX-66).
  bigNumberStrings: 'irrelevant',
  charset: 'irrelevant',
  dateStrings: 'irrelevant',
  enableQueryTimeout: 'irrelevant',
  legacySpatialSupport: 'irrelevant',
  multipleStatements: 'irrelevant',
  supportBigNumbers: 'irrelevant',
  timezone: 'irrelevant',
};

const SQLITE: Rules<'better-sqlite3'> = {
  fileMustExist: 'honoured',
  key: 'honoured',
  nativeBinding: 'honoured',
  prepareDatabase: 'honoured',
  readonly: {
    refuses: Boolean,
    cure: 'The store writes to the file. Pass { type, database } without readonly.',
  },
  enableWAL: {
    refuses: (value) => value === false,
    cure: 'The store needs the journal mode WAL. Remove the option.',
  },
  statementCacheSize: 'irrelevant',
  // See sqlite.busyTimeoutMs.
  timeout: 'irrelevant',
  verbose: 'irrelevant',
};

const RULES: Readonly<Record<string, Readonly<Record<string, Rule>>>> = {
  postgres: POSTGRES,
  mysql: MYSQL,
  mariadb: MYSQL,
  'better-sqlite3': SQLITE,
};

/**
 * Checks that the store honours every option that changes where or how data is stored (FIX-67).
 * @param isOpen whether the application has opened the DataSource
 * @throws SessionsConfigurationError naming the option, its value and the cure
 */
export function assertHonoured(options: DataSourceOptions, isOpen: boolean): void {
  for (const [option, rule] of Object.entries<Rule>({ ...COMMON, ...RULES[options.type] })) {
    if (typeof rule === 'string' || (isOpen && rule.unlessOpen)) continue;
    const value = (options as unknown as Record<string, unknown>)[option];
    if (!rule.refuses(value)) continue;
    throw new SessionsConfigurationError(sqlMessages.optionNotAllowed(option, rule.cure, inspect(value)));
  }
}
