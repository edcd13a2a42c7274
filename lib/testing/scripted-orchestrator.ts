import { types } from 'node:util';
import { InvalidInputError } from '../common/sessions.error.js';
import { defineOrchestrator, extendDefinition } from '../orchestrator/define-orchestrator.js';
import { type OrchestratorRef, orchestratorName } from '../orchestration/orchestrator-ref.js';
import { orchestratorOptions } from '../orchestrator/orchestrator.decorators.js';
import {
  type IntentFunction,
  type IntentResult,
  type OrchestratorDefinition,
  type OrchestratorOptions,
} from '../orchestrator/orchestrator.js';
import { type TurnContext } from '../orchestrator/turn-context.js';
import { type TurnInput } from '../ledger/turn.js';
import { scriptOver } from './testing.errors.js';

/**
 * The answer of a scripted orchestrator to one turn. A string is the reply; `reply(...)` or `turnOutcome(...)` is the
 * outcome. An error is thrown in every attempt; a function is called in every attempt, like an intent.
 */
export type ScriptedAnswer<State = Record<string, unknown>> = IntentResult<State> | Error | IntentFunction<State>;

/** An orchestrator that answers from a script. */
export interface ScriptedOrchestrator extends OrchestratorDefinition {
  /** The inputs so far, in order: one per turn, for any number of attempts. */
  readonly inputs: readonly TurnInput[];
}

/**
 * Creates an orchestrator for tests of the surrounding code: controllers, guards, queues. Pass it to
 * `SessionsTestingModule.create({ orchestrators })` or to `SessionsModule.forFeature`.
 *
 * ```ts
 * const desk = scriptedOrchestrator(SupportDesk, [
 *   'Order 7 is shipped.',
 *   reply('Bye.', { status: 'completed' }),
 *   new Error('The model is down.'),
 *   ({ input }) => `You said: ${input.text}`,
 * ]);
 * ```
 * @param orchestrator a name, or the orchestrator that it replaces: `@InjectOrchestrator(SupportDesk)` then injects
 * the handle of the script
 * @param script one answer per turn, in the order in which turns begin, across all sessions. Further turns fail with
 * HandlerError (`SCRIPT_OVER`)
 * @throws InvalidInputError if the script is not an array; SessionsConfigurationError if `orchestrator` is not an
 * orchestrator or has an invalid name
 */
export function scriptedOrchestrator<State = Record<string, unknown>>(
  orchestrator: string | OrchestratorRef,
  script: readonly ScriptedAnswer<State>[],
): ScriptedOrchestrator {
  if (!Array.isArray(script)) throw new InvalidInputError('script', 'must be an array of answers, one for each turn.');
  const { name, ...shape } = shapeOf(orchestrator);
  const answers: readonly ScriptedAnswer<State>[] = [...(script as readonly ScriptedAnswer<State>[])];
  const turns: string[] = [];
  const inputs: TurnInput[] = [];

  const answer = (turn: TurnContext<State>): ReturnType<IntentFunction<State>> => {
    if (!turns.includes(turn.id)) {
      turns.push(turn.id);
      inputs.push(turn.input);
    }
    const index = turns.indexOf(turn.id);
    if (index >= answers.length) throw scriptOver(name, answers.length, turn.input.text);
    const scripted = answers[index];
    // Errors of the runtime belong to another realm than the test, so instanceof does not match them.
    if (scripted instanceof Error || types.isNativeError(scripted)) throw scripted;
    return typeof scripted === 'function' ? scripted(turn) : scripted;
  };

  const intents = { answer: answer as IntentFunction<object> };
  const definition = defineOrchestrator<object>({ ...shape, name, intents });
  return extendDefinition(definition as unknown as OrchestratorDefinition, { inputs });
}

/** Keeps the options for state, versions and plans, and replaces the decisions. */
function shapeOf(orchestrator: string | OrchestratorRef): OrchestratorOptions<object> {
  if (typeof orchestrator === 'string') return { name: orchestrator };
  const name = orchestratorName(orchestrator);
  const { version, initialState, steps, onViolation, tokenBudget } = optionsOf(orchestrator);
  return { name, version, initialState, steps, onViolation, tokenBudget };
}

function optionsOf(orchestrator: OrchestratorRef): Partial<OrchestratorOptions<object>> {
  if (typeof orchestrator === 'function') return orchestratorOptions(orchestrator) ?? {};
  const definition: Partial<OrchestratorDefinition> = orchestrator;
  return { ...definition, ...definition.plan };
}
