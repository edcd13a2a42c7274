import { addAdvice } from '../common/error-trace.js';
import { type JsonObject, toJsonObject } from '../common/json.js';
import { fieldOf } from '../common/thrown.js';
import { type OrchestratorDefinition } from './orchestrator.js';

/** Messages of V8 about changes of frozen objects. */
const CHANGE = /read only property|not extensible|which has only a getter|Cannot delete property/;

/**
 * Adds a cure to a TypeError of a handler, for the log (DAY-02), if the handler may have changed `turn.state`, or if the state
 * lacks keys of the initial state, because earlier code has written it.
 * @param state the state at the start of the turn
 */
export function adviseOnState(error: unknown, definition: OrchestratorDefinition, state: JsonObject): void {
  if (fieldOf(error, 'name') !== 'TypeError') return;
  const message = fieldOf(error, 'message');
  const isChange = typeof message === 'string' && CHANGE.test(message);
  const advice = isChange ? READ_ONLY : missingKeys(definition, state);
  if (advice !== undefined) addAdvice(error as object, advice);
}

const READ_ONLY =
  'A turn and its state are read-only. If the handler changes them, return the change instead: reply(text, { state: { ... } }).';

function missingKeys(definition: OrchestratorDefinition, state: JsonObject): string | undefined {
  const missing = initialKeys(definition).filter((key) => !Object.hasOwn(state, key));
  if (missing.length === 0) return undefined;
  const { name, version } = definition;
  return (
    `The stored state lacks keys of initialState: ${missing.join(', ')}. If earlier code of ${name} has written it, set a ` +
    `higher version than ${version}, and add a migration that sets them.`
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
