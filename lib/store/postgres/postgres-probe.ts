import { StoreUnavailableError } from '../../common/sessions.error.js';
import { functionNames, probeStatements } from '../sql/probe.js';
import { type PostgresDatabase } from './postgres-database.js';
import { POSTGRES_MIGRATIONS } from './postgres-migrations.js';
import { postgresMessages } from './postgres.messages.js';

/**
 * Checks the privileges on all tables and functions, in two round trips.
 * @throws StoreUnavailableError with the reason `deployment`, which names the first missing one
 */
export async function probePostgres(db: PostgresDatabase): Promise<void> {
  await db.tryOut(probeStatements(POSTGRES_MIGRATIONS));
  const { prefix, schema = null } = db.place;
  const missing = await db.query<{ name: string }>(
    `SELECT name FROM unnest($1::text[]) AS name
     WHERE NOT EXISTS (
       SELECT FROM pg_catalog.pg_proc p
       WHERE p.proname = name AND has_function_privilege(p.oid, 'EXECUTE')
         AND CASE WHEN $2::text IS NULL THEN pg_function_is_visible(p.oid)
                  ELSE p.pronamespace = to_regnamespace(quote_ident($2)) END
     ) LIMIT 1`,
    [functionNames(POSTGRES_MIGRATIONS).map((name) => prefix + name), schema],
  );
  if (missing.length === 0) return;
  throw new StoreUnavailableError(postgresMessages.missingFunction(missing[0].name), {
    maybeApplied: false,
    reason: 'deployment',
  });
}
