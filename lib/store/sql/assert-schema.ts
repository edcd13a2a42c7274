import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { type Migration } from './migrations.js';
import { type SqlPlace } from './sql-place.js';

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
    throw new SessionsConfigurationError(
      `The tables of the ${title} store (${place.name('session')} and others) are at migration ${version}, and this version ` +
        `of nestjs-agent-sessions needs ${needed}. Run the migrations before the application: ` +
        'npx typeorm migration:run -d FILE, see docs/stores/migrations.md; or set migrationsRun: true.',
    );
  }
  if (usableFrom > needed) {
    throw new SessionsConfigurationError(
      `The tables of the ${title} store are at migration ${version}, which is too new for this version of ` +
        `nestjs-agent-sessions: it knows ${needed}, and they can be used from ${usableFrom} on. Install a newer version.`,
    );
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
