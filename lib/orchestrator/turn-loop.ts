import { Logger } from '@nestjs/common';
import { type CallSite, showAt } from '../common/call-site.js';
import { traceOf } from '../common/error-trace.js';
import { assertWithin, isPlainObject, type JsonObject, type JsonValue } from '../common/json.js';
import { loggedId } from '../common/log-details.js';
import { type OrchestrationEntry } from '../orchestration/orchestration-entry.js';
import { type TurnOrchestration } from '../orchestration/turn-orchestration.js';
import { AwaitingSignal } from '../turn/turn-runner.js';
import { TurnStoppedError } from '../turn/turn-stopped.error.js';
import { type ModuleJournal, type ModuleWrite } from '../state/module-journal.js';
import { type StepKey, type StoredStep } from '../ledger/turn-step.js';
import { type IntentOutcome, toIntentOutcome } from './intent-outcome.js';
import { wrongResult } from './orchestrator.errors.js';
import { type Evaluation } from './evaluation.js';
import { type EvaluateFunction, type OrchestratorDefinition } from './orchestrator.js';
import { type OrchestratorEventBody } from './orchestrator-events.js';
import { assertKnown, toDecision } from './route-decision.js';
import { type Called, elapsed, partOf, type TurnCalls } from './turn-calls.js';
import { END_TURN, TurnOutcome } from './turn-outcome.js';
import { advance, begin, type TurnProgress } from './turn-progress.js';
import { withStreamed } from './streamed-reply.js';
import { type DecisionReport, type EndedBy, type IntentReport, type IterationReport } from './turn-report.js';
import { type TurnSteps } from './turn-steps.js';

const logger = new Logger('Orchestrator');
const MAX_REPORTED_TEXT = 1000;
/** The intent name for the steps of `evaluate`. Intent names contain no control characters. */
const EVALUATE = '\u007fevaluate';
/** Half of a surrogate pair, which cutting a string can leave. */
const HALF_A_PAIR = /[\uD800-\uDBFF]$/;

/**
 * Side effects of orchestrator code on the turn, besides its result. They are replayed from the store when the code
 * does not run again.
 */
interface Effects {
  /** Tool uses, for the orchestrator's plan. */
  readonly entries: readonly OrchestrationEntry[];
  /** Changes of the session's state modules. */
  readonly writes: readonly ModuleWrite[];
}

/** The stored decision of a route, for later attempts of its iteration (FIX-08). */
interface Decided extends Effects {
  readonly decision: DecisionReport;
}

/** A completed iteration, with all that a later attempt needs to continue after it. */
export interface Iteration extends IterationReport, Effects {
  readonly outcomes: readonly IntentOutcome[];
}

/** The dependencies of an attempt's loop. */
export interface TurnLoopParts {
  readonly definition: OrchestratorDefinition;
  readonly calls: TurnCalls;
  readonly memo: TurnSteps;
  readonly orchestration: TurnOrchestration | null;
  /** The changes of the session's state modules. */
  readonly journal: ModuleJournal;
  readonly tell: (event: OrchestratorEventBody) => void;
  readonly maxReplyBytes: number;
}

/** Runs one attempt of a turn: decide, dispatch, merge and evaluate, once or repeatedly (BOT-04, BOT-05). */
export class TurnLoop {
  private readonly iterations: Iteration[] = [];
  private current: TurnProgress;
  /** The decision of the current iteration. */
  private pending: DecisionReport | null = null;

  /** @param state the orchestrator's state before the turn */
  constructor(
    private readonly parts: TurnLoopParts,
    state: JsonObject,
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

  /** The reports of completed iterations, and of a decision that was not executed. */
  get reports(): readonly IterationReport[] {
    const { iterations } = this;
    const several = iterations.length > 1 || iterations.some(({ intents }) => intents.length > 1);
    const done = iterations.map(({ decision, intents, evaluation, durationMs }): IterationReport => {
      const reported = several ? intents : intents.map(withoutText);
      return evaluation
        ? { decision, intents: reported, evaluation, durationMs }
        : { decision, intents: reported, durationMs };
    });
    return this.pending ? [...done, { decision: this.pending, intents: [] }] : done;
  }

  async run(): Promise<EndedBy | AwaitingSignal> {
    const { definition, memo } = this.parts;
    const stored = storedIterations(definition, memo);
    for (let number = 0; ; number += 1) {
      const iteration = number < stored.length ? stored[number] : await this.iterate(number);
      if (iteration instanceof AwaitingSignal) return iteration;
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

  /** Repeats the effects of code that an earlier attempt ran. */
  private replay({ entries, writes }: Effects): void {
    this.parts.orchestration?.replay(entries);
    this.parts.journal.replay(writes);
  }

  private endOf({ decision, evaluation }: Iteration): EndedBy | null {
    if (decision.intents.length === 0) return 'end';
    if (!this.parts.definition.iterate) return 'dispatch';
    if (this.current.status !== undefined) return 'outcome';
    return evaluation?.satisfied ? 'satisfied' : null;
  }

  private async iterate(number: number): Promise<Iteration | AwaitingSignal> {
    const startedAt = performance.now();
    const effects = this.watch();
    const decision = this.decided(number) ?? (await this.route(number));
    if (decision instanceof AwaitingSignal) return decision;
    this.pending = decision;
    const { source, intents: chosen, reasoning } = decision;
    const why = reasoning === undefined ? {} : { reasoning };
    this.parts.tell({ type: 'routed', iteration: number, source, intents: chosen, ...why });

    const runs = await this.dispatch(number, chosen);
    if (runs instanceof AwaitingSignal) return runs;
    const { evaluate } = this.parts.definition;
    const outcomes = runs.map(({ value }, index) => this.toOutcome(chosen[index], value));
    const evaluation = evaluate && chosen.length > 0 ? await this.evaluate(number, outcomes, evaluate) : undefined;
    if (evaluation instanceof AwaitingSignal) return evaluation;
    const iteration: Iteration = {
      decision,
      intents: runs.map((run, index) => reportOf(chosen[index], run, outcomes[index].text)),
      durationMs: elapsed(startedAt),
      outcomes,
      ...effects(),
    };
    return evaluation ? { ...iteration, evaluation } : iteration;
  }

  /** Validates the result of an intent. An error names the intent, and shows where the outcome was created (DAY-17). */
  private toOutcome(intent: string, value: unknown): IntentOutcome {
    const { definition, maxReplyBytes, memo } = this.parts;
    try {
      const outcome = toIntentOutcome(definition.name, intent, value, this.current.state);
      const { text, data = null, messages = [] } = outcome;
      assertWithin({ text, data }, maxReplyBytes, 'The reply');
      for (const message of messages) assertWithin(asJson(message), maxReplyBytes, 'The message');
      return outcome;
    } catch (error) {
      if (value instanceof TurnOutcome) showAt(error, value as CallSite);
      memo.failPart(partOf({ intent, role: 'intents' }), error);
      throw error;
    }
  }

  /** Returns the decision if the route does not have to be called. */
  private decided(iteration: number): DecisionReport | null {
    const { definition } = this.parts;
    const { initialIntent, routing, intents } = definition;
    if (iteration === 0 && initialIntent !== undefined) return toDecision(definition, 'initial', initialIntent);
    const assigned = this.iterations.at(-1)?.evaluation?.reassignTo;
    if (assigned !== undefined) return toDecision(definition, 'reassigned', assigned);
    return routing === 'single' ? { source: routing, intents: [...intents.keys()] } : null;
  }

  /** Calls the route, unless an earlier attempt has stored its decision. */
  private async route(iteration: number): Promise<DecisionReport | AwaitingSignal> {
    const { definition, memo } = this.parts;
    const key = decisionKey(iteration);
    const stored = memo.find(key) as unknown as Decided | undefined;
    if (stored) {
      assertKnown(definition, stored.decision.intents);
      this.replay(stored);
      return stored.decision;
    }
    const effects = this.watch();
    const place = { iteration, intent: '', role: 'router' } as const;
    const routed = await this.parts.calls.call(place, this.current, (turn) => definition.route(turn));
    if (routed instanceof AwaitingSignal) return routed;
    const decision = this.toDecision(routed.value);
    memo.decide(key, { decision, ...effects() } as unknown as JsonValue);
    return decision;
  }

  private toDecision(value: unknown): DecisionReport {
    const { definition, maxReplyBytes, memo } = this.parts;
    try {
      const decision = toDecision(definition, definition.routing, value);
      assertWithin(asJson(decision), maxReplyBytes, 'The decision');
      return decision;
    } catch (error) {
      memo.failPart(partOf({ intent: '', role: 'router' }), error);
      throw error;
    }
  }

  /** @returns a function that returns the effects since this call */
  private watch(): () => Effects {
    const mark = this.parts.orchestration?.mark() ?? 0;
    const written = this.parts.journal.mark();
    return () => ({
      entries: this.parts.orchestration?.since(mark) ?? [],
      writes: this.parts.journal.since(written),
    });
  }

  /** Runs the intents in parallel and waits for all of them, so that none continues after the turn has failed. */
  private async dispatch(iteration: number, intents: readonly string[]): Promise<Called<unknown>[] | AwaitingSignal> {
    const runs = intents.map((intent) => {
      const place = { iteration, intent, role: 'intents' } as const;
      return this.parts.calls.call<unknown>(place, this.current, async (turn) =>
        withStreamed(turn, await this.parts.definition.intents.get(intent)?.(turn)),
      );
    });
    const done = runs.length === 1 ? [await runs[0]] : await this.allOf(runs, intents);
    // The other intents are done, and their steps are stored. After this signal, the next attempt reaches the next
    // wait.
    const awaiting = done.find((run) => run instanceof AwaitingSignal);
    return awaiting ?? (done as Called<unknown>[]);
  }

  /** Works like `Promise.all`, but waits until all promises are settled, and logs the errors after the first one. */
  private async allOf<T>(runs: readonly Promise<T>[], intents: readonly string[]): Promise<T[]> {
    const { definition, memo } = this.parts;
    const settled = await Promise.allSettled(runs);
    const failed = settled.flatMap((run, index) =>
      run.status === 'rejected' ? [{ intent: intents[index], error: run.reason as unknown }] : [],
    );
    const [first, ...others] = failed;
    if (!first) return settled.flatMap((run) => (run.status === 'fulfilled' ? [run.value] : []));
    for (const { intent, error } of others) {
      // When the attempt is stopped, this is the error of every intent that waits.
      if (TurnStoppedError.isInstance(error)) continue;
      // A single string, because Nest would log a warning's trace as a second entry.
      const where = `of ${definition.name} also failed, in turn ${loggedId(memo.turnId)}.`;
      logger.warn(`Intent ${intent} ${where}\n${traceOf(error)}`);
    }
    throw first.error;
  }

  private async evaluate(
    iteration: number,
    outcomes: readonly IntentOutcome[],
    evaluate: EvaluateFunction<Record<string, unknown>>,
  ): Promise<Evaluation | AwaitingSignal> {
    const progress = advance(this.current, outcomes);
    const place = { iteration, intent: EVALUATE, role: 'evaluate' } as const;
    const called = await this.parts.calls.call(place, progress, (turn) => evaluate(turn, turn.replies));
    if (called instanceof AwaitingSignal) return called;
    try {
      return this.toEvaluation(called.value);
    } catch (error) {
      this.parts.memo.failPart(partOf(place), error);
      throw error;
    }
  }

  private toEvaluation(given: unknown): Evaluation {
    if (given === undefined || typeof given === 'boolean') return { satisfied: given === true };
    const { name } = this.parts.definition;
    if (!isPlainObject(given)) {
      throw wrongResult(
        name,
        'evaluate returned neither a boolean nor { satisfied, reassignTo, feedback }. Return one of them.',
      );
    }
    const { satisfied = false, reassignTo, feedback } = given;
    if (typeof satisfied !== 'boolean') {
      throw wrongResult(name, 'evaluate returned a `satisfied` that is not a boolean. Return true or false.');
    }
    if (feedback !== undefined && typeof feedback !== 'string') {
      throw wrongResult(name, 'evaluate returned a `feedback` that is not a string. Return a string, or omit it.');
    }
    if (reassignTo === END_TURN || (Array.isArray(reassignTo) && reassignTo.length === 0)) {
      throw wrongResult(
        name,
        'evaluate returned no intent in `reassignTo`. To end the turn, return { satisfied: true }. To ask the route, omit `reassignTo`.',
      );
    }
    assertWithin(feedback ?? null, this.parts.maxReplyBytes, 'The feedback');
    const intents =
      reassignTo === undefined ? undefined : toDecision(this.parts.definition, 'reassigned', reassignTo).intents;
    return {
      satisfied,
      ...(intents === undefined ? {} : { reassignTo: intents }),
      ...(feedback === undefined ? {} : { feedback }),
    };
  }
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

/** Returns the iterations that earlier attempts of the turn completed, in order. */
export function storedIterations(definition: OrchestratorDefinition, memo: TurnSteps): readonly Iteration[] {
  const stored: Iteration[] = [];
  if (memo.isEmpty) return stored;
  for (;;) {
    const iteration = memo.find(iterationKey(stored.length, definition));
    if (iteration === undefined) return stored;
    stored.push(iteration as unknown as Iteration);
  }
}

/** Returns false if a route has chosen an intent that the orchestrator does not have: another structure stored it. */
export function knowsDecisions({ intents }: OrchestratorDefinition, steps: readonly StoredStep[]): boolean {
  const decided = steps
    .filter(({ kind }) => kind === 'route')
    .map(({ value }) => (value as unknown as Decided).decision);
  return decided.every((decision) => decision.intents.every((intent) => intents.has(intent)));
}

/** Returns true if the step contains effects of orchestrator code, not a handler's result. */
export function hasEffects({ kind }: StepKey): boolean {
  return kind === 'iteration' || kind === 'route';
}

/**
 * Returns the key of a stored iteration. Its changes to the state depend on the version and structure of the
 * orchestrator, so a different version runs the iteration again, with the results of its steps.
 */
function iterationKey(iteration: number, { version, signature }: OrchestratorDefinition): StepKey {
  return { kind: 'iteration', iteration, intent: '', parent: '', name: version, key: signature };
}

function decisionKey(iteration: number): StepKey {
  return { kind: 'route', iteration, intent: '', parent: '', name: 'decision', key: 0 };
}

/** Converts messages and decisions, which are JSON. */
function asJson(value: object): JsonValue {
  return value as JsonObject;
}
