import { assertWithin, isPlainObject, type JsonObject, type JsonValue } from '../common/json.js';
import { type OrchestrationEntry } from '../orchestration/orchestration-entry.js';
import { type TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { Parked } from '../turn/turn-runner.js';
import { type ModuleJournal, type ModuleWrite } from '../state/module-journal.js';
import { type StepKey } from '../ledger/turn-step.js';
import { type IntentOutcome, toIntentOutcome } from './intent-outcome.js';
import { OrchestratorResultError } from './orchestrator.errors.js';
import { type Evaluation } from './evaluation.js';
import { type EvaluateFunction, type OrchestratorDefinition } from './orchestrator.js';
import { type OrchestratorEventBody } from './orchestrator-events.js';
import { assertKnown, toDecision } from './route-decision.js';
import { type Called, elapsed, type TurnCalls } from './turn-calls.js';
import { advance, begin, type TurnProgress } from './turn-progress.js';
import { type DecisionReport, type EndedBy, type IntentReport, type IterationReport } from './turn-report.js';
import { type TurnSteps } from './turn-steps.js';

const MAX_REPORTED_TEXT = 1000;
/** Where `evaluate` has its steps: no intent has a name with a control character. */
const EVALUATE = '\u007fevaluate';
/** What the cut may leave of a surrogate pair. */
const HALF_A_PAIR = /[\uD800-\uDBFF]$/;

/** What code of the orchestrator did to the turn besides its result: repeated from the store where the code does not run again. */
interface Effects {
  /** Uses of tools, for the orchestrator's plan. */
  readonly entries: readonly OrchestrationEntry[];
  /** Changes of the session's state modules. */
  readonly writes: readonly ModuleWrite[];
}

/** The stored decision of a route, for later attempts of its iteration (FIX-08). */
interface Decided extends Effects {
  readonly decision: DecisionReport;
}

/** An iteration that is over: all that a later attempt needs to continue after it. */
export interface Iteration extends IterationReport, Effects {
  readonly outcomes: readonly IntentOutcome[];
}

/** One attempt at a turn: decide, dispatch, merge and evaluate, once or until it is done (BOT-04, BOT-05). */
export class TurnLoop {
  private readonly iterations: Iteration[] = [];
  private current: TurnProgress;
  /** Of the iteration that is under way. */
  private pending: DecisionReport | null = null;

  constructor(
    private readonly definition: OrchestratorDefinition,
    private readonly calls: TurnCalls,
    private readonly memo: TurnSteps,
    private readonly orchestration: TurnOrchestration | null,
    private readonly modules: ModuleJournal,
    private readonly tell: (event: OrchestratorEventBody) => void,
    state: JsonObject,
    private readonly maxReplyBytes: number,
  ) {
    this.current = begin(state);
  }

  get progress(): TurnProgress {
    return this.current;
  }

  /** The intents of the last dispatch. */
  get lastRoute(): readonly string[] {
    return this.iterations.map(({ decision }) => decision.intents).findLast(({ length }) => length > 0) ?? [];
  }

  /** Of what is over so far, and of a decision that was not carried out. */
  get reports(): readonly IterationReport[] {
    const { iterations } = this;
    const several = iterations.length > 1 || iterations.some(({ intents }) => intents.length > 1);
    const done = iterations.map(({ decision, intents, evaluation, durationMs }): IterationReport => {
      const told = several ? intents : intents.map(withoutText);
      return evaluation ? { decision, intents: told, evaluation, durationMs } : { decision, intents: told, durationMs };
    });
    return this.pending ? [...done, { decision: this.pending, intents: [] }] : done;
  }

  async run(): Promise<EndedBy | Parked> {
    const { definition, memo } = this;
    const stored = storedIterations(definition, memo);
    for (let number = 0; ; number += 1) {
      const iteration = number < stored.length ? stored[number] : await this.iterate(number);
      if (iteration instanceof Parked) return iteration;
      if (number < stored.length) this.replay(iteration);
      this.iterations.push(iteration);
      this.pending = null;
      memo.forgetDecision();
      this.current = advance(this.current, iteration.outcomes, iteration.evaluation);
      const endedBy = this.endOf(iteration);
      if (endedBy) return endedBy;
      if (number + 1 === definition.maxIterations) return 'max-iterations';
      if (number < stored.length) continue;
      await memo.save(iterationKey(number, definition), iteration as unknown as JsonValue);
    }
  }

  /** Repeats what code did that an earlier attempt ran. */
  private replay({ entries, writes }: Effects): void {
    this.orchestration?.replay(entries);
    this.modules.replay(writes);
  }

  private endOf({ decision, evaluation }: Iteration): EndedBy | null {
    if (decision.intents.length === 0) return 'end';
    if (!this.definition.iterate) return 'dispatch';
    if (this.current.status !== undefined) return 'outcome';
    return evaluation?.satisfied ? 'satisfied' : null;
  }

  private async iterate(number: number): Promise<Iteration | Parked> {
    const startedAt = performance.now();
    const effects = this.watch();
    const decision = this.decided(number) ?? (await this.route(number));
    if (decision instanceof Parked) return decision;
    this.pending = decision;
    const { source, intents: chosen, reasoning } = decision;
    const why = reasoning === undefined ? {} : { reasoning };
    this.tell({ type: 'routed', iteration: number, source, intents: chosen, ...why });

    const runs = await this.dispatch(number, chosen);
    if (runs instanceof Parked) return runs;
    const { name, evaluate } = this.definition;
    const outcomes = runs.map(({ value }, index) => toIntentOutcome(name, chosen[index], value));
    for (const { text, data = null, messages = [] } of outcomes) {
      assertWithin({ text, data }, this.maxReplyBytes, 'The reply');
      for (const message of messages) assertWithin(asJson(message), this.maxReplyBytes, 'The message');
    }
    const evaluation = evaluate && chosen.length > 0 ? await this.evaluate(number, outcomes, evaluate) : undefined;
    if (evaluation instanceof Parked) return evaluation;
    const iteration: Iteration = {
      decision,
      intents: runs.map((run, index) => reportOf(chosen[index], run, outcomes[index].text)),
      durationMs: elapsed(startedAt),
      outcomes,
      ...effects(),
    };
    return evaluation ? { ...iteration, evaluation } : iteration;
  }

  /** Where the iteration goes without asking the route. */
  private decided(iteration: number): DecisionReport | null {
    const { definition } = this;
    const { initialIntent, routing, intents } = definition;
    if (iteration === 0 && initialIntent !== undefined) return toDecision(definition, 'initial', initialIntent);
    const assigned = this.iterations.at(-1)?.evaluation?.reassignTo;
    if (assigned !== undefined) return toDecision(definition, 'reassigned', assigned);
    return routing === 'single' ? { source: routing, intents: [...intents.keys()] } : null;
  }

  /** Asks the route, unless an earlier attempt has begun to act on its answer. */
  private async route(iteration: number): Promise<DecisionReport | Parked> {
    const { definition, memo } = this;
    const key = decisionKey(iteration);
    const stored = memo.find(key) as unknown as Decided | undefined;
    if (stored) {
      assertKnown(definition, stored.decision.intents);
      this.replay(stored);
      return stored.decision;
    }
    const effects = this.watch();
    const place = { iteration, intent: '', role: 'router' } as const;
    const routed = await this.calls.call(place, this.current, (turn) => definition.route(turn));
    if (routed instanceof Parked) return routed;
    const decision = toDecision(definition, definition.routing, routed.value);
    assertWithin(asJson(decision), this.maxReplyBytes, 'The decision');
    memo.decide(key, { decision, ...effects() } as unknown as JsonValue);
    return decision;
  }

  /** @returns gives what has been done since */
  private watch(): () => Effects {
    const mark = this.orchestration?.mark() ?? 0;
    const written = this.modules.mark();
    return () => ({
      entries: this.orchestration?.since(mark) ?? [],
      writes: this.modules.since(written),
    });
  }

  /** Runs the intents in parallel and waits for all of them: none goes on behind a turn that has failed. */
  private async dispatch(iteration: number, intents: readonly string[]): Promise<Called<unknown>[] | Parked> {
    const runs = intents.map((intent) => {
      const place = { iteration, intent, role: 'intents' } as const;
      return this.calls.call<unknown>(place, this.current, (turn) => this.definition.intents.get(intent)?.(turn));
    });
    const done = runs.length === 1 ? [await runs[0]] : await allOf(runs);
    // The others are done, and what they stored is remembered; when this signal is there, the next wait follows.
    const parked = done.find((run) => run instanceof Parked);
    return parked ?? (done as Called<unknown>[]);
  }

  private async evaluate(
    iteration: number,
    outcomes: readonly IntentOutcome[],
    evaluate: EvaluateFunction<Record<string, unknown>>,
  ): Promise<Evaluation | Parked> {
    const progress = advance(this.current, outcomes);
    const place = { iteration, intent: EVALUATE, role: 'evaluate' } as const;
    const called = await this.calls.call(place, progress, (turn) => evaluate(turn, turn.replies));
    return called instanceof Parked ? called : this.toEvaluation(called.value);
  }

  private toEvaluation(given: unknown): Evaluation {
    if (given === undefined || typeof given === 'boolean') return { satisfied: given === true };
    const { name } = this.definition;
    const wrong = (problem: string): OrchestratorResultError =>
      new OrchestratorResultError(name, `evaluate returned ${problem}`);
    if (!isPlainObject(given)) throw wrong('neither a boolean nor { satisfied, reassignTo, feedback }.');
    const { satisfied = false, reassignTo, feedback } = given;
    if (typeof satisfied !== 'boolean') throw wrong('a satisfied that is no boolean.');
    if (feedback !== undefined && typeof feedback !== 'string') throw wrong('a feedback that is no text.');
    assertWithin(feedback ?? null, this.maxReplyBytes, 'The feedback');
    const intents =
      reassignTo === undefined ? undefined : toDecision(this.definition, 'reassigned', reassignTo).intents;
    return {
      satisfied,
      ...(intents === undefined ? {} : { reassignTo: intents }),
      ...(feedback === undefined ? {} : { feedback }),
    };
  }
}

/** As `Promise.all`, once all of them are over. */
async function allOf<T>(runs: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(runs);
  const failed = settled.find((run) => run.status === 'rejected');
  if (failed) throw failed.reason;
  return settled.flatMap((run) => (run.status === 'fulfilled' ? [run.value] : []));
}

function reportOf(intent: string, { durationMs, usage }: Called<unknown>, text: string | null): IntentReport {
  return {
    intent,
    durationMs,
    ...(text === null ? {} : { text: text.slice(0, MAX_REPORTED_TEXT).replace(HALF_A_PAIR, '') }),
    ...(usage ? { usage } : {}),
  };
}

function withoutText({ intent, durationMs, usage }: IntentReport): IntentReport {
  return usage ? { intent, durationMs, usage } : { intent, durationMs };
}

/** Those that earlier attempts of the turn completed, in order. */
export function storedIterations(definition: OrchestratorDefinition, memo: TurnSteps): readonly Iteration[] {
  const stored: Iteration[] = [];
  if (memo.isEmpty) return stored;
  for (;;) {
    const iteration = memo.find(iterationKey(stored.length, definition));
    if (iteration === undefined) return stored;
    stored.push(iteration as unknown as Iteration);
  }
}

/** Whether the step holds what code of the orchestrator did, and not what a handler stored. */
export function hasEffects({ kind }: StepKey): boolean {
  return kind === 'iteration' || kind === 'route';
}

/**
 * What an iteration did to the state has the shape that its orchestrator gave it: another version or structure of the
 * orchestrator runs the iteration again, with the results of its steps.
 */
function iterationKey(iteration: number, { version, signature }: OrchestratorDefinition): StepKey {
  return { kind: 'iteration', iteration, intent: '', parent: '', name: version, key: signature };
}

function decisionKey(iteration: number): StepKey {
  return { kind: 'route', iteration, intent: '', parent: '', name: 'decision', key: 0 };
}

/** Messages and decisions are JSON. */
function asJson(value: object): JsonValue {
  return value as JsonObject;
}
