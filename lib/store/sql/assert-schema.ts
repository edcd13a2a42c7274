import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type Migration } from './migrations.js';
import { type SqlPlace } from './sql-place.js';
import { sqlMessages } from './sql.messages.js';

export interface StoredVersion {
  /** Drivers return 64-bit integers as strings. */
  readonly version: number | string;
  readonly usable_from: number | string;
}

/** The codes of PostgreSQL and MySQL for a missing table. */
const NO_TABLE = new Set<unknown>(['42P01', 'ER_NO_SUCH_TABLE']);

/**
 * Checks that the migrations have run, and that the schema is not too new for this version of the package (NST-23).
 * @throws SessionsConfigurationError with instructions
 */
export async function assertSchema(
  query: (sql: string) => Promise<StoredVersion[]>,
  place: SqlPlace,
  { length: needed }: readonly Migration[],
): Promise<void> {
  const { title } = place.dialect;
  const { version, usableFrom } = await storedVersion(query, place);
  if (version < needed) {
    throw new SessionsConfigurationError(sqlMessages.migrationsPending(title, place.name('session'), version, needed));
  }
  if (usableFrom > needed) {
    throw new SessionsConfigurationError(sqlMessages.schemaTooNew(title, version, needed, usableFrom));
  }
}

/** Returns the names of pending migrations, oldest first (NST-20). */
export async function pendingMigrations(
  query: (sql: string) => Promise<StoredVersion[]>,
  place: SqlPlace,
  migrations: readonly Migration[],
): Promise<readonly string[]> {
  const { version } = await storedVersion(query, place);
  return migrations.slice(version).map(({ name }) => name);
}

async function storedVersion(
  query: (sql: string) => Promise<StoredVersion[]>,
  place: SqlPlace,
): Promise<{ version: number; usableFrom: number }> {
  try {
    const [row] = await query(place.fill('SELECT version, usable_from FROM {schema} ORDER BY version DESC LIMIT 1'));
    return { version: Number(row?.version ?? 0), usableFrom: Number(row?.usable_from ?? 0) };
  } catch (error) {
    if (isMissingTable(error)) return { version: 0, usableFrom: 0 };
    throw error;
  }
}

function isMissingTable(error: unknown): boolean {
  const { code, driverError, cause } = error as { code?: unknown; driverError?: { code?: unknown }; cause?: unknown };
  return NO_TABLE.has(driverError?.code ?? code) || (cause !== undefined && isMissingTable(cause));
}
