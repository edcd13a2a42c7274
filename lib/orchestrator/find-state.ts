import { type JsonObject, toJsonObject } from '../common/json.js';
import { compareVersions } from '../turn/compare-versions.js';
import { type ClaimedTurn } from '../ledger/turn.store.js';
import { OrchestratorDriftError } from './orchestrator.errors.js';
import { isExtended, missingIntents } from './orchestrator-signature.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { migrationPath, type StateMigration } from './state-migrations.js';

export interface FoundState {
  readonly state: JsonObject;
  /** Whether the last checkpoint was written by another structure, or by a version from which no migration leads here. */
  readonly drifted: boolean;
  /** What leads from the state's version to the present one (BOT-24). */
  readonly path: readonly StateMigration[];
}

/**
 * The state that a turn begins with, before it is migrated: the last checkpoint's, or the first one.
 * @throws OrchestratorDriftError, unless the turn adopts the present structure (BOT-23)
 */
export function findState(
  definition: OrchestratorDefinition,
  { turn, checkpoint }: Pick<ClaimedTurn, 'turn' | 'checkpoint'>,
): FoundState {
  const { name, version, signature, migrations, initialState } = definition;
  if (!checkpoint) return { state: toJsonObject(initialState(), 'initialState'), drifted: false, path: [] };
  const { state, version: saved } = checkpoint;
  const path = migrationPath(migrations, saved, version);
  if (path && path.length > 0) return { state, drifted: true, path };
  const isNewer = compareVersions(saved, version) > 0;
  const lacksMigration = path === null && migrations.length > 0;
  const drifted = !isExtended(definition, checkpoint) || isNewer || lacksMigration;
  if (drifted && !turn.request.force) {
    const missing = missingIntents(definition, checkpoint);
    const drift = {
      orchestrator: name,
      savedVersion: saved,
      currentVersion: version,
      isNewer,
      lacksMigration,
      missing,
    };
    throw new OrchestratorDriftError(checkpoint.signature, signature, turn.sessionId, drift);
  }
  return { state, drifted, path: [] };
}
