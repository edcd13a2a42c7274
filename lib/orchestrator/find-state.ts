import { type JsonObject, toJsonObject } from '../common/json.js';
import { compareVersions } from '../turn/version-handoff.js';
import { type ClaimedTurn } from '../ledger/turn.store.js';
import { OrchestratorDriftError } from './orchestrator.errors.js';
import { isExtended, missingIntents } from './orchestrator-signature.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { migrationPath, type StateMigration } from './state-migrations.js';

export interface FoundState {
  readonly state: JsonObject;
  /**
   * True if the last checkpoint was written by a different structure, or by a version without a migration to the
   * present one.
   */
  readonly drifted: boolean;
  /** The migrations from the state's version to the current one (BOT-24). */
  readonly path: readonly StateMigration[];
}

/**
 * Returns the state that a turn starts with, before migration: from the last checkpoint, or the initial state.
 * @throws OrchestratorDriftError, unless the turn adopts the current structure (BOT-23)
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
