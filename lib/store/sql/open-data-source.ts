import { type DataSource, type DataSourceOptions } from 'typeorm';
import { guardPool, type PgPool } from '../../common/pg-clients.js';
import { serverPlace } from '../../common/server-place.js';
import { SessionsConfigurationError, StoreUnavailableError } from '../../common/sessions.error.js';
import { Deadline, DeadlineError } from '../../common/deadline.js';
import { dialectOf } from './dialects.js';
import { newDataSource } from './new-data-source.js';
import { ownOptions } from './own-options.js';
import { sqlMessages } from './sql.messages.js';

/** A connected DataSource. Closing it affects only a DataSource that was opened here (NST-05). */
export interface OpenDataSource {
  readonly dataSource: DataSource;
  close(): Promise<void>;
}

/**
 * Returns the application's DataSource unchanged, or opens a new one from the options.
 * @throws StoreUnavailableError if the server has not answered after `timeoutMs`; SessionsConfigurationError if it rejects the connection
 */
export async function openDataSource(
  given: DataSource | DataSourceOptions,
  timeoutMs: number,
): Promise<OpenDataSource> {
  if (isDataSource(given) && given.isInitialized) {
    guardConnections(given);
    return { dataSource: given, close: async () => {} };
  }
  const ours = await newDataSource(ownOptions(withConnectTimeout(optionsOf(given), timeoutMs)));
  await connect(ours, timeoutMs);
  if (!isDataSource(given)) return { dataSource: ours, close: () => ours.destroy() };
  // The server answers. Initializing the application's DataSource has no timeout, because it may run long migrations.
  await ours.destroy();
  await given.initialize();
  guardConnections(given);
  return { dataSource: given, close: () => given.destroy() };
}

/** Answers to a connection with a wrong user, password or database. A retry gets the same answer (FIX-61). */
const REFUSALS: ReadonlySet<unknown> = new Set([
  // PostgreSQL: invalid authorization, invalid password, unknown database, no privilege to connect
  ...['28000', '28P01', '3D000', '42501'],
  ...['ER_ACCESS_DENIED_ERROR', 'ER_ACCESS_DENIED_NO_PASSWORD_ERROR', 'ER_DBACCESS_DENIED_ERROR'],
  ...['ER_BAD_DB_ERROR', 'ER_HOST_NOT_PRIVILEGED'],
]);

/**
 * Connects. A connection that opens too late is closed.
 * @throws StoreUnavailableError if the server does not answer
 * @throws SessionsConfigurationError if it rejects the user, the password or the database
 */
export async function connect(dataSource: DataSource, timeoutMs: number): Promise<void> {
  const connecting = dataSource.initialize();
  try {
    await new Deadline(timeoutMs).wait(connecting);
    guardConnections(dataSource);
  } catch (cause) {
    void connecting.then(() => dataSource.destroy()).catch(() => {});
    const { title, port = 0 } = dialectOf(dataSource.options);
    const place = serverPlace(dataSource.options, port);
    const server = place === undefined ? '' : ` at ${place}`;
    const { code, message } = cause as { readonly code?: unknown; readonly message: string };
    if (REFUSALS.has(code)) {
      throw new SessionsConfigurationError(sqlMessages.connectionRejected(title, server, String(code), message), {
        cause,
      });
    }
    const why = cause instanceof DeadlineError ? `: ${message}` : typeof code === 'string' ? ` (${code}).` : '.';
    throw new StoreUnavailableError(sqlMessages.notOpened(title, server, why), { cause, maybeApplied: false });
  }
}

/** Prevents a process crash if PostgreSQL disconnects just after TypeORM has connected. */
function guardConnections({ driver, options }: DataSource): void {
  if (options.type === 'postgres') guardPool((driver as unknown as { readonly master: PgPool }).master);
}

/** Adds a connect timeout, unless the application set one. Otherwise an unanswered connection would stay open forever. */
export function withConnectTimeout(options: DataSourceOptions, timeoutMs: number): DataSourceOptions {
  if (options.type === 'postgres') return { ...options, connectTimeoutMS: options.connectTimeoutMS ?? timeoutMs };
  if (options.type !== 'mysql' && options.type !== 'mariadb') return options;
  return { ...options, connectTimeout: options.connectTimeout ?? timeoutMs };
}

export function optionsOf(given: DataSource | DataSourceOptions): DataSourceOptions {
  return isDataSource(given) ? given.options : given;
}

export function isDataSource(given: DataSource | DataSourceOptions): given is DataSource {
  return 'options' in given && 'createQueryRunner' in given;
}
