import { addAdvice } from '../common/error-trace.js';
import { type JsonObject, toJsonObject } from '../common/json.js';
import { fieldOf } from '../common/thrown.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { orchestratorMessages } from './orchestrator.messages.js';

/** Messages of V8 about changes of frozen objects. */
const CHANGE = /read only property|not extensible|which has only a getter|Cannot delete property/;

/**
 * Adds a cure to an error of a handler, for the log (DAY-02), if the handler may have changed `turn.state`, or if the state
 * lacks keys of the initial state, because earlier code has written it.
 * @param state the state at the start of the turn
 */
export function adviseOnState(error: unknown, definition: OrchestratorDefinition, state: JsonObject): void {
  // `undefined.length`, or a state with `undefined + 1`.
  if (fieldOf(error, 'name') !== 'TypeError' && fieldOf(error, 'found') !== 'NaN') return;
  const message = fieldOf(error, 'message');
  const isChange = typeof message === 'string' && CHANGE.test(message);
  const advice = isChange ? orchestratorMessages.readOnlyCure() : missingKeys(definition, state);
  if (advice !== undefined) addAdvice(error as object, advice);
}

function missingKeys(definition: OrchestratorDefinition, state: JsonObject): string | undefined {
  const missing = initialKeys(definition).filter((key) => !Object.hasOwn(state, key));
  if (missing.length === 0) return undefined;
  return orchestratorMessages.missingKeysCure(definition.name, definition.version, missing);
}

/** Returns no keys if the function of the application throws, whose error must not replace that of the handler. */
function initialKeys({ initialState }: OrchestratorDefinition): string[] {
  try {
    return Object.keys(toJsonObject(initialState(), 'initialState'));
  } catch {
    return [];
  }
}
