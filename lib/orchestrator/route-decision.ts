import { inspect } from 'node:util';
import { isPlainObject, toJson } from '../common/json.js';
import { noIntent, unknownIntent, wrongResult } from './orchestrator.errors.js';
import { type OrchestratorDefinition } from './orchestrator.js';
import { END_TURN } from './turn-outcome.js';
import { type DecisionReport, type DecisionSource } from './turn-report.js';

/** The maximum number of intents in one route. More are likely a mistake. */
const MAX_FAN_OUT = 16;

type Shape = Pick<OrchestratorDefinition, 'name' | 'intents'>;

/** The chooser of an intent. A `model` that chose an unknown intent may choose another one when it is called again (FIX-08). */
type Chooser = 'code' | 'model';

/**
 * Validates a route's result, with its intents as a list without duplicates; empty for END_TURN.
 * @throws HandlerError, StateSerializationError
 */
export function toDecision(orchestrator: Shape, source: DecisionSource, given: unknown): DecisionReport {
  if (!isPlainObject(given)) return { source, intents: toIntents(orchestrator, given, chooserOf(source, {})) };
  const { intents, reasoning, raw } = given;
  if (reasoning !== undefined && typeof reasoning !== 'string') {
    throw wrongResult(orchestrator.name, "a decision's reasoning must be a string.");
  }
  return {
    source,
    intents: toIntents(orchestrator, intents, chooserOf(source, given)),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(raw === undefined ? {} : { raw: toJson(raw, 'decision.raw') }),
  };
}

/** Routers usually call a model. Code has no reasons and no raw answer to report. */
function chooserOf(source: DecisionSource, { reasoning, raw }: Readonly<Record<string, unknown>>): Chooser {
  return source === 'router' || reasoning !== undefined || raw !== undefined ? 'model' : 'code';
}

function toIntents({ name, intents: known }: Shape, choice: unknown, chooser: Chooser): string[] {
  if (choice === END_TURN) return [];
  const chosen: unknown[] = Array.isArray(choice) ? choice : [choice];
  const intents = [...new Set(chosen)];
  if (intents.length === 0) throw noIntent(name);
  if (intents.length > MAX_FAN_OUT) {
    throw wrongResult(name, `the route chose ${intents.length} intents; at most ${MAX_FAN_OUT} are allowed.`);
  }
  assertKnown({ name, intents: known }, intents, chooser);
  return intents as string[];
}

/** @throws HandlerError (`UNKNOWN_INTENT`) */
export function assertKnown(
  { name, intents: known }: Shape,
  intents: readonly unknown[],
  chooser: Chooser = 'code',
): void {
  const unknown = intents.find((intent) => typeof intent !== 'string' || !known.has(intent));
  if (unknown !== undefined || intents.includes(undefined)) {
    const shown = typeof unknown === 'string' ? unknown : inspect(unknown, { depth: 0 });
    throw unknownIntent(name, shown, [...known.keys()], chooser);
  }
}
