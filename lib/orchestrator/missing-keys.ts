import { addAdvice } from '../common/error-trace.js';
import { type JsonObject, toJsonObject } from '../common/json.js';
import { fieldOf } from '../common/thrown.js';
import { type OrchestratorDefinition } from './orchestrator.js';

/**
 * Adds to a TypeError of a handler, for the log, which keys of the initial state are missing: earlier code may have written the
 * state (DAY-02).
 * @param state the state at the start of the turn
 */
export function adviseOnMissingKeys(error: unknown, definition: OrchestratorDefinition, state: JsonObject): void {
  if (fieldOf(error, 'name') !== 'TypeError') return;
  const missing = initialKeys(definition).filter((key) => !Object.hasOwn(state, key));
  if (missing.length === 0) return;
  const { name, version } = definition;
  addAdvice(
    error as object,
    `The stored state lacks keys of initialState: ${missing.join(', ')}. If earlier code of ${name} has written it, set a ` +
      `higher version than ${version}, and add a migration that sets them.`,
  );
}

/** Returns no keys if the function of the application throws, whose error must not replace that of the handler. */
function initialKeys({ initialState }: OrchestratorDefinition): string[] {
  try {
    return Object.keys(toJsonObject(initialState(), 'initialState'));
  } catch {
    return [];
  }
}
