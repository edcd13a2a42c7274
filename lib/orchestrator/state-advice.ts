import { Logger } from '@nestjs/common';
import { addAdvice } from '../common/error-trace.js';
import { type JsonObject, type JsonValue, toJsonObject } from '../common/json.js';
import { fieldOf } from '../common/thrown.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { orchestratorMessages } from './orchestrator.messages.js';

const logger = new Logger('Orchestrator');

/** The orchestrators whose stored states were found to lack keys. */
const logged = new WeakSet<OrchestratorDefinition>();
/** The initial state of each orchestrator. */
const initialStates = new WeakMap<OrchestratorDefinition, JsonObject>();

/** Messages of V8 about changes of frozen objects. */
const CHANGE = /read only property|not extensible|which has only a getter|Cannot delete property/;

/**
 * Adds a cure to an error of a handler, for the log (DAY-02), if the handler may have changed `turn.state`, or if the state
 * lacks keys of the initial state or has values of another kind, because earlier code has written it.
 * @param state the state at the start of the turn
 * @param saved the version that has written it
 */
export function adviseOnState(
  error: unknown,
  definition: OrchestratorDefinition,
  state: JsonObject,
  saved: string,
): void {
  // `undefined.length`, or a state with `undefined + 1`.
  if (fieldOf(error, 'name') !== 'TypeError' && fieldOf(error, 'found') !== 'NaN') return;
  const message = fieldOf(error, 'message');
  const isChange = typeof message === 'string' && CHANGE.test(message);
  const advice = isChange
    ? orchestratorMessages.readOnlyCure()
    : (missingKeys(definition, state, saved) ?? otherKinds(definition, state, saved));
  if (advice !== undefined) addAdvice(error as object, advice);
}

/**
 * Logs once that a stored state lacks keys of the initial state (DAY-17): a handler that only shows a value shows `undefined`, and nothing
 * fails.
 */
export function logMissingKeys(definition: OrchestratorDefinition, state: JsonObject, saved: string): void {
  if (logged.has(definition)) return;
  const advice = missingKeys(definition, state, saved);
  if (advice === undefined) return;
  logged.add(definition);
  logger.warn(advice);
}

function missingKeys(definition: OrchestratorDefinition, state: JsonObject, saved: string): string | undefined {
  const missing = Object.keys(initialOf(definition)).filter((key) => !Object.hasOwn(state, key));
  if (missing.length === 0) return undefined;
  const { name, version } = definition;
  return orchestratorMessages.stateShapeCure(name, version, saved, 'lacks keys of initialState', missing);
}

/** Keys may have values of several kinds, so this is advice for an error only. */
function otherKinds(definition: OrchestratorDefinition, state: JsonObject, saved: string): string | undefined {
  const initial = initialOf(definition);
  const changed = Object.keys(initial).filter((key) => {
    const [one, other] = [kindOf(initial[key]), kindOf(state[key])];
    return one !== other && one !== 'null' && other !== 'null';
  });
  if (changed.length === 0) return undefined;
  const { name, version } = definition;
  return orchestratorMessages.stateShapeCure(
    name,
    version,
    saved,
    'has keys of another type than initialState',
    changed,
  );
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** Returns no keys if the function of the application throws, whose error must not replace that of the handler. */
function initialOf(definition: OrchestratorDefinition): JsonObject {
  const known = initialStates.get(definition);
  if (known) return known;
  let found: JsonObject = {};
  try {
    found = toJsonObject(definition.initialState(), 'initialState');
  } catch {
    // As if it had none.
  }
  initialStates.set(definition, found);
  return found;
}
