import { type JsonObject, toJsonObject } from '../common/json.js';
import { compareVersions } from '../turn/compare-versions.js';
import { type ClaimedTurn } from '../turn/turn.store.js';
import { OrchestratorDriftError } from './orchestrator.errors.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { migrateState, migrationPath } from './state-migrations.js';

export interface LoadedState {
  readonly state: JsonObject;
  /** Whether the last checkpoint was written by another structure, or by a version from which no migration leads here. */
  readonly drifted: boolean;
  /** The versions that the state went through; empty without a migration. */
  readonly migrated: readonly string[];
}

/**
 * The state that a turn begins with: the last checkpoint's, migrated to the present version (BOT-24), or the first one.
 * @throws OrchestratorDriftError, unless the turn adopts the present structure (BOT-23)
 */
export async function loadState(
  { name, version, signature, migrations, initialState }: OrchestratorDefinition,
  { turn, checkpoint }: Pick<ClaimedTurn, 'turn' | 'checkpoint'>,
): Promise<LoadedState> {
  if (!checkpoint) return { state: toJsonObject(initialState(), 'initialState'), drifted: false, migrated: [] };
  const { state, version: saved } = checkpoint;
  const path = migrationPath(migrations, saved, version);
  if (path && path.length > 0) {
    return { state: await migrateState(path, state), drifted: true, migrated: [saved, ...path.map(({ to }) => to)] };
  }
  const isNewer = compareVersions(saved, version) > 0;
  const lacksMigration = path === null && migrations.length > 0;
  const drifted = checkpoint.signature !== signature || isNewer || lacksMigration;
  if (drifted && !turn.request.force) {
    const drift = { orchestrator: name, savedVersion: saved, currentVersion: version, isNewer, lacksMigration };
    throw new OrchestratorDriftError(checkpoint.signature, signature, turn.sessionId, drift);
  }
  return { state, drifted, migrated: [] };
}
