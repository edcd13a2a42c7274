import { SessionsConfigurationError } from '../common/sessions.error.js';
import { isName } from '../common/ids.js';
import { isPlainObject, type JsonObject, toJsonObject } from '../common/json.js';

/** Migrates a state from one version to a later one (BOT-24). */
export interface StateMigration {
  readonly from: string;
  readonly to: string;
  /** Must be deterministic: it runs again when the turn is retried. */
  readonly migrate: (state: JsonObject) => object | Promise<object>;
}

/** @throws SessionsConfigurationError if the list does not lead from each `from` to the current version */
export function checkMigrations(orchestrator: string, version: string, given: unknown): readonly StateMigration[] {
  const fail = (problem: string): never => {
    throw new SessionsConfigurationError(`Orchestrator ${orchestrator}: migrations ${problem}`);
  };
  if (!Array.isArray(given)) return fail('must be a list of { from, to, migrate }.');
  const migrations = given as StateMigration[];
  migrations.forEach((migration: unknown, index) => {
    const { from, to, migrate } = isPlainObject(migration) ? migration : {};
    if (!isName(from) || !isName(to) || typeof migrate !== 'function') {
      fail(`item ${index} must be { from, to, migrate }: two versions and a function.`);
    }
  });
  const sources = migrations.map(({ from }) => from);
  const twice = sources.find((from, index) => sources.indexOf(from) !== index);
  if (twice !== undefined) fail(`must have one per source version. Duplicate: ${twice}.`);
  for (const from of sources) {
    if (migrationPath(migrations, from, version) === null)
      fail(`must lead from version ${from} to version ${version}.`);
  }
  return migrations;
}

/** @returns the migrations to apply in order, or `null` if they do not lead to the target version */
export function migrationPath(
  migrations: readonly StateMigration[],
  from: string,
  to: string,
): readonly StateMigration[] | null {
  const path: StateMigration[] = [];
  let version = from;
  while (version !== to) {
    const step = migrations.find((migration) => migration.from === version);
    if (!step || path.includes(step)) return null;
    path.push(step);
    version = step.to;
  }
  return path;
}

export async function migrateState(path: readonly StateMigration[], state: JsonObject): Promise<JsonObject> {
  let migrated = state;
  for (const { from, to, migrate } of path) {
    migrated = toJsonObject(await migrate(migrated), `The state migrated from ${from} to ${to}`);
  }
  return migrated;
}
