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
import { ScriptOverError } from './testing.errors.js';

/**
 * What a scripted orchestrator does with one turn: a text is the reply; `reply(...)` or `outcome(...)` is the outcome; an
 * error is thrown in every attempt of the turn; a function is called in every attempt, as an intent is.
 */
export type ScriptedAnswer<State = Record<string, unknown>> = IntentResult<State> | Error | IntentFunction<State>;

/** An orchestrator that follows a script. */
export interface ScriptedOrchestrator extends OrchestratorDefinition {
  /** What it was given so far: one input a turn, in order, whatever the number of attempts. */
  readonly inputs: readonly TurnInput[];
}

/**
 * An orchestrator for tests of what is around it: controllers, guards, queues. Give it to
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
 * @param orchestrator a name, or the orchestrator whose place it takes: `@InjectOrchestrator(SupportDesk)` then injects
 * the handle of the script
 * @param script one answer a turn, in the order in which turns begin, over all sessions. A turn too many fails with
 * ScriptOverError
 * @throws InvalidInputError for a script that is no array; SessionsConfigurationError for something that is no
 * orchestrator or has no good name
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
    if (index >= answers.length) throw new ScriptOverError(name, answers.length, turn.input.text);
    const scripted = answers[index];
    // Errors of the runtime itself are none of the test's realm.
    if (scripted instanceof Error || types.isNativeError(scripted)) throw scripted;
    return typeof scripted === 'function' ? scripted(turn) : scripted;
  };

  const definition = defineOrchestrator({ ...shape, name, intents: { answer: answer as IntentFunction<object> } });
  return extendDefinition(definition as unknown as OrchestratorDefinition, { inputs });
}

/** What its state, its versions and its plan look like stays; how it decides does not. */
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
