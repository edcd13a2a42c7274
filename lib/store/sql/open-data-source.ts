import { type DataSource, type DataSourceOptions } from 'typeorm';
import { guardPool, type PgPool } from '../../common/pg-clients.js';
import { loadPeer } from '../../common/load-peer.js';
import { serverPlace } from '../../common/server-place.js';
import { StoreUnavailableError } from '../../common/sessions.error.js';
import { Deadline } from '../../common/deadline.js';
import { dialectOf } from './dialects.js';

/** A connected DataSource, and how to let go of it: only what was opened here is closed (NST-05). */
export interface OpenDataSource {
  readonly dataSource: DataSource;
  close(): Promise<void>;
}

/**
 * The application's DataSource as it is, or one of our own by its options.
 * @throws StoreUnavailableError when the server has not answered after `timeoutMs`
 */
export async function openDataSource(
  given: DataSource | DataSourceOptions,
  timeoutMs: number,
): Promise<OpenDataSource> {
  if (isDataSource(given) && given.isInitialized) {
    guardConnections(given);
    return { dataSource: given, close: async () => {} };
  }
  const ours = await newDataSource(withConnectTimeout(optionsOf(given), timeoutMs));
  await connect(ours, timeoutMs);
  if (!isDataSource(given)) return { dataSource: ours, close: () => ours.destroy() };
  // The server answers. The application's DataSource may have migrations of its own to run, which take their time.
  await ours.destroy();
  await given.initialize();
  guardConnections(given);
  return { dataSource: given, close: () => given.destroy() };
}

/** Connects; what answers too late is closed again. @throws StoreUnavailableError */
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
    // It may have answered, with a refusal.
    throw new StoreUnavailableError(`The ${title} store${server} could not be opened.`, { cause, maybeApplied: false });
  }
}

/** A PostgreSQL that goes away just after TypeORM has connected must not end the process. */
function guardConnections({ driver, options }: DataSource): void {
  if (options.type === 'postgres') guardPool((driver as unknown as { readonly master: PgPool }).master);
}

/** For connections of our own, unless the application says how long: one that is never answered would stay for ever. */
export function withConnectTimeout(options: DataSourceOptions, timeoutMs: number): DataSourceOptions {
  if (options.type === 'postgres') return { ...options, connectTimeoutMS: options.connectTimeoutMS ?? timeoutMs };
  if (options.type !== 'mysql' && options.type !== 'mariadb') return options;
  return { ...options, connectTimeout: options.connectTimeout ?? timeoutMs };
}

export function optionsOf(given: DataSource | DataSourceOptions): DataSourceOptions {
  return isDataSource(given) ? given.options : given;
}

function isDataSource(given: DataSource | DataSourceOptions): given is DataSource {
  return 'options' in given && 'createQueryRunner' in given;
}

async function newDataSource(options: DataSourceOptions): Promise<DataSource> {
  const { DataSource } = await loadPeer('typeorm', () => import('typeorm'));
  // The tables are not touched by whatever else the options say.
  return new DataSource({
    ...options,
    entities: [],
    subscribers: [],
    migrations: [],
    synchronize: false,
    dropSchema: false,
  });
}
