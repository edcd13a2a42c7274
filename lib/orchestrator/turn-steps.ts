import { setImmediate as nextTask } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { checkInput } from '../common/check-input.js';
import { type CallSite, callSite, showAt } from '../common/call-site.js';
import { checkSchema, plainFields } from '../common/check-schema.js';
import { type JsonValue, toJson } from '../common/json.js';
import { assertName } from '../common/ids.js';
import { loggedId } from '../common/log-details.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { fieldOf } from '../common/thrown.js';
import { stepSpan, waitSpan } from '../telemetry/call-spans.js';
import { WAIT_OUTCOME } from '../telemetry/attributes.js';
import { type SpanOptions } from '../telemetry/telemetry.js';
import { attemptMessages } from '../turn/attempt.messages.js';
import { type AttemptHandle } from '../turn/turn-runner.js';
import { TurnTimeoutError } from '../ledger/turn.errors.js';
import { stepIdOf, type StepKey, stepText, type StoredStep, type WaitResult } from '../ledger/turn-step.js';
import { type TurnWait } from '../ledger/turn.store.js';
import { StepOptions, WaitOptions } from './call-options.js';
import { CallContexts, type EnclosingCall } from './enclosing-call.js';
import { type StepPlace } from './step-scopes.js';
import { type StepInfo, type WaitForOptions } from './turn-context.js';
import { type UsagePlace } from './usage-tally.js';

const logger = new Logger('TurnHandler');

/** How many causes of an error are searched for the step that threw them. */
const MAX_CAUSES = 5;

/** The function of a step. */
type StepWork<T> = (info: StepInfo) => Promise<T> | T;

/**
 * The stored steps of a turn in one attempt: from earlier attempts, and from this one as it adds them (BOT-30). All
 * calls of `turn.step`, `turn.tools.use` and `turn.waitFor` come here. The first call of `turn.step('charge', work)`
 * runs `work` and stores its result. In the next attempt, the same call returns the stored result.
 *
 * `OrchestratorTurn` creates one for each attempt, from the steps that came with the claim. It also keeps a route's
 * decision until an effect depends on it, and knows what runs now, for the log.
 *
 * The keys of `ended` and `waits` are places: an iteration and an intent as a string, such as `0 refund`.
 */
export class TurnSteps {
  /** The results by {@link stepText}: from earlier attempts, and from this one if it can need them again. */
  private readonly stored: Map<string, StoredStep>;
  /** Finds the handler, step or tool call that the running code belongs to. */
  private readonly contexts = new CallContexts();
  /** The steps that run now, by {@link stepText}. A call with the same key awaits the running step. */
  private readonly running = new Map<string, Promise<StoredStep>>();
  /** The places where a step or tool call has succeeded: `replay` if the result of any of them was already stored. */
  private readonly ended = new Map<string, 'step' | 'replay'>();
  /** The names of the steps that handlers have called without a key in this attempt, after their place. */
  private readonly unkeyed = new Set<string>();
  /** The places where this attempt has stored a step of a handler without a key. */
  private readonly added = new Set<string>();
  /** The steps of handlers that earlier attempts have stored and this one has not called, by {@link stepText}. */
  private readonly unused = new Map<string, StoredStep>();
  /** The number of stored waits that this attempt has not reached, by place. */
  private readonly waits = new Map<string, number>();
  /** The signals for which this attempt has called `waitFor` without a stored result. Several can be open at once. */
  private readonly openWaits = new Set<string>();
  /**
   * The parts that run now, for the log, in the order of their start: functions of the orchestrator by name, such as
   * `intent refund`, and steps and tool calls by {@link stepText}.
   */
  private readonly activeParts = new Map<string, string>();
  /** The step or tool that threw an error, by error. The innermost one is recorded first, and kept. */
  private readonly thrownIn = new Map<unknown, string>();
  /** The decision of a route, until {@link saveDecision} begins to store it. */
  private decision: StoredStep | null = null;
  /**
   * The write of the decision; `null` before it begins and after it has succeeded. A failed write is kept, so that each
   * effect that depends on the decision fails.
   */
  private deciding: Promise<unknown> | null = null;

  constructor(
    readonly turnId: string,
    steps: readonly StoredStep[],
    private readonly handle: AttemptHandle,
  ) {
    this.stored = new Map(steps.map((step) => [stepText(step), step]));
    for (const step of steps) {
      if (step.kind === 'wait') this.countWait(step, 1);
      // Steps inside others are not called if the outer one is stored.
      if (step.kind === 'step' && step.parent === '') this.unused.set(stepText(step), step);
    }
  }

  /** Runs a handler. Steps that it calls belong to it. Steps that a step's work calls belong to that step. */
  enter<T>(handler: () => T): T {
    return this.contexts.enter(handler);
  }

  /**
   * Runs a step of a handler, see `TurnContext.step`. Throws if the call is rejected; {@link hand} makes this a
   * rejection.
   * @param site the handler's call
   */
  run<T>(
    place: StepPlace,
    name: string,
    work: StepWork<T>,
    options: StepOptions | undefined,
    site: CallSite,
  ): Promise<T> {
    assertName(name, 'step name');
    return this.runIn(this.contexts.parentOf(stepCall(name)), place, name, work, options, site);
  }

  /**
   * Determines the key of a step, and runs it. Without a `key` option, the key is the number of earlier steps with this
   * name in the same place and the same enclosing call.
   * @param parent the handler, step or tool call that calls the step
   */
  private async runIn<T>(
    parent: EnclosingCall,
    place: StepPlace,
    name: string,
    work: StepWork<T>,
    options: StepOptions | undefined,
    site: CallSite,
  ): Promise<T> {
    const key = options === undefined ? undefined : checkInput(StepOptions, options, 'step options').key;
    const { iteration, intent } = place;
    const calls = key === undefined ? parent.scopes.begin(place, name) : undefined;
    const number = (calls?.count ?? 0) - 1;
    const step: StepKey = { kind: 'step', iteration, intent, parent: parent.id, name, key: key ?? number };
    if (key === undefined && parent.id === '') this.unkeyed.add(`${placeName(place)} ${name}`);
    try {
      if (parent.id !== '') {
        // A limiter starts its next task while the call before it is about to return: wait until it has (FIX-82).
        await nextTask();
        parent.assertOpen(stepCall(name));
      }
      return await this.runAt<T>(step, stepSpan(name), work, site);
    } finally {
      if (calls) calls.running -= 1;
    }
  }

  /**
   * Returns the stored result of a step. Otherwise, runs the work and stores its result. Concurrent calls with the same
   * key share one run.
   * @param span describes the work, if it runs
   * @param site the handler's call, for errors about the result
   */
  async runAt<T>(key: StepKey, span: SpanOptions, work: StepWork<T>, site: CallSite): Promise<T> {
    const text = stepText(key);
    const place = placeOf(key);
    let run: Promise<StoredStep> | undefined;
    try {
      this.handle.assertOpen();
      const stored = this.stored.get(text);
      const known = stored ?? this.running.get(text);
      // Await even a stored result, so that steps that overlap when they run also overlap when they are replayed.
      if (known) {
        const { value } = await known;
        if (stored) this.ended.set(place, 'replay');
        this.unused.delete(text);
        return structuredClone(value ?? null) as T;
      }
      run = this.handle.telemetry.span(span, () => this.runOnce(key, text, work, site));
      this.running.set(text, run);
      this.activeParts.set(text, span.name);
      const saved = await run;
      if (key.kind === 'step' && key.parent === '' && typeof key.key === 'number') this.added.add(place);
      if (!this.ended.has(place)) this.ended.set(place, 'step');
      // Keep results that this attempt can need again: those with a key, and those in an enclosing call that fails and
      // is repeated.
      const isKept = typeof key.key === 'string' || key.parent !== '';
      if (isKept) this.stored.set(text, saved);
      // Each call gets its own copy, which the handler may change (FIX-91).
      return (isKept ? structuredClone(saved.value) : saved.value) as T;
    } catch (error) {
      if (!this.thrownIn.has(error)) this.thrownIn.set(error, labelOf(span.name));
      throw error;
    } finally {
      if (run) {
        this.running.delete(text);
        this.activeParts.delete(text);
      }
    }
  }

  /**
   * Returns the place where a function of the orchestrator counts tokens now (FIX-15): `0 refund` before its first
   * step, then `0 refund after steps`. The tokens may repeat tokens of an earlier attempt after a replayed step, and
   * before a wait whose result is stored. A tool call counts as a step of every intent, because all intents can use the
   * same tool.
   */
  usagePlace(place: StepPlace): Pick<UsagePlace, 'name' | 'repeats'> {
    const name = placeName(place);
    const ended = [this.ended.get(name), this.ended.get(TOOLS)].filter((each) => each !== undefined);
    if (ended.length > 0) return { name: `${name} after steps`, repeats: ended.includes('replay') };
    return { name, repeats: (this.waits.get(name) ?? 0) > 0 };
  }

  /**
   * Wraps a promise for the handler: a rejection that the handler does not await is logged.
   * @param begin an error that it throws rejects the promise
   * @param name the call's first argument, for the log
   */
  hand<T>(call: string, begin: () => Promise<T>, name?: unknown): Promise<T> {
    const called = typeof name === 'string' ? `${call}(${JSON.stringify(name.slice(0, 100))})` : call;
    return this.handle.hand(called, begun(begin));
  }

  /** @param part a function of the orchestrator, for the log: `intent refund` */
  beginPart(part: string): void {
    this.activeParts.set(part, part);
  }

  endPart(part: string): void {
    this.activeParts.delete(part);
  }

  /**
   * Warns of steps that a function has called in an earlier attempt but not in this one, after it has ended: a step with
   * another name in each attempt repeats its effect.
   * @param hasFailed whether it threw. It may not have reached these steps then, unless it has stored others meanwhile.
   */
  warnOfUnused(place: StepPlace, hasFailed: boolean): void {
    const at = placeName(place);
    for (const step of this.unused.values()) {
      if (placeName(step) !== at) continue;
      const { name } = step;
      const hasKey = typeof step.key === 'string';
      const isFewer = !hasKey && this.unkeyed.has(`${at} ${name}`);
      if (hasFailed && (hasKey || isFewer || !this.added.has(at))) continue;
      const shown = name.slice(0, 100);
      const turnId = loggedId(this.turnId);
      if (isFewer) logger.warn(attemptMessages.fewerSteps(shown, turnId));
      else logger.warn(attemptMessages.unusedStep(shown, turnId));
    }
  }

  /** Returns what runs now, for the log: `intent refund, step load order`; `undefined` if nothing does. */
  get runningParts(): string | undefined {
    return this.activeParts.size === 0 ? undefined : [...new Set(this.activeParts.values())].map(labelOf).join(', ');
  }

  /** Records where an error was thrown, for the log: `intent refund, step load order`. */
  failPart(part: string, error: unknown): void {
    const step = this.stepOf(error);
    this.handle.thrownIn(step === undefined ? part : `${part}, ${step}`, error);
  }

  /** Returns the step that threw the error or one of its causes. */
  private stepOf(error: unknown, depth = 0): string | undefined {
    if (error === undefined || error === null || depth > MAX_CAUSES) return undefined;
    return this.thrownIn.get(error) ?? this.stepOf(fieldOf(error, 'cause'), depth + 1);
  }

  /** True if no result is stored, as when the first attempt begins. */
  get isEmpty(): boolean {
    return this.stored.size === 0;
  }

  /** Returns true if a call of the step would be replayed. */
  isStored(key: StepKey): boolean {
    return this.stored.has(stepText(key));
  }

  /** Returns the value that an earlier attempt has stored, or a result that this attempt keeps. */
  find(key: StepKey): JsonValue | undefined {
    return this.stored.get(stepText(key))?.value;
  }

  /** Stores a value for later attempts of the turn, such as a completed iteration. */
  async save(key: StepKey, value: JsonValue): Promise<void> {
    this.handle.assertOpen();
    await this.handle.saveStep({ ...key, value });
  }

  /**
   * Keeps a decision, which {@link saveDecision} stores before the first effect that depends on it (FIX-81). A turn
   * without effects needs no write for it.
   */
  decide(key: StepKey, value: JsonValue): void {
    this.decision = { ...key, value };
    this.deciding = null;
  }

  /** Drops a decision that is not stored yet. Its iteration has ended, and is stored or settled with it. */
  forgetDecision(): void {
    this.decision = null;
  }

  /**
   * Stores the decision of the route. Call it before every effect: a step, an event, a wait or another turn (FIX-08,
   * FIX-81). Calls during the write get the same promise. @returns `null` if there is nothing to wait for
   */
  saveDecision(): Promise<unknown> | null {
    const { decision } = this;
    if (!decision) return this.deciding;
    this.decision = null;
    // The async function makes an error for a too large decision a rejection, as for one that the store rejects.
    const saving = (async () => this.handle.saveStep(decision))();
    const isOver = (): void => {
      if (this.deciding === saving) this.deciding = null;
    };
    saving.then(isOver, () => undefined);
    this.deciding = saving;
    return saving;
  }

  /** @throws TurnStoppedError, or the reason of the signal, once the attempt is over (DAY-17) */
  assertOpen(): void {
    this.handle.assertOpen();
  }

  /**
   * Rejects calls inside a step, because they would be skipped when a later attempt replays the step.
   * @param instead the advice in the message
   * @throws InvalidInputError when the current code runs in a step of this attempt; HandlerError (`STEP_CONTEXT`)
   */
  assertOutside(call: string, instead: string): void {
    if (this.contexts.enclosing(call).id === '') return;
    throw new InvalidInputError(call, `must not be called inside a step: ${instead}.`);
  }

  /**
   * Returns the stored result of a wait, see `TurnContext.waitFor`. If none is stored, it waits until the running steps
   * are stored, then ends the attempt. After the signal, the next attempt calls it again and finds the result.
   * @param suspend ends the attempt with this wait; its promise never settles
   */
  async waitFor<T>(
    place: StepPlace,
    name: string,
    options: WaitForOptions<T>,
    suspend: (wait: TurnWait) => Promise<never>,
    site: CallSite,
  ): Promise<T> {
    assertName(name, 'signal name');
    const { timeoutMs } = checkInput(WaitOptions, options, 'waitFor');
    const { schema } = options;
    this.assertOutside('waitFor', 'the step would not be stored before the wait ends');
    this.handle.assertOpen();
    const number = this.contexts.enclosing('waitFor').scopes.nextWait(place, name);
    const step: StepKey = { kind: 'wait', ...place, parent: '', name, key: number };
    const known = this.stored.get(stepText(step));
    if (!known) {
      this.openWaits.add(name);
      await this.traceWait(name, 'awaiting-signal', () => this.untilStored());
      const others = [...this.openWaits].filter((other) => other !== name);
      return suspend({ signal: name, step, others, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    }
    this.countWait(step, -1);
    const result = known.value as WaitResult;
    await this.traceWait(name, result.received ? 'received' : 'timed-out');
    const payload = result.received ? result.payload : await this.timedOut(step, options, site);
    return schema ? checkSchema(schema, payload, `signal ${name}`) : (payload as T);
  }

  private countWait(step: StepKey, change: number): void {
    const place = placeName(step);
    this.waits.set(place, (this.waits.get(place) ?? 0) + change);
  }

  /** Runs `onTimeout` once: its outcome is a stored step (FIX-12). */
  private async timedOut<T>(wait: StepKey, options: WaitForOptions<T>, site: CallSite): Promise<unknown> {
    const { onTimeout, schema, timeoutMs = 0 } = options;
    if (!onTimeout) throw new TurnTimeoutError(this.turnId, timeoutMs, wait.name);
    const work = async (): Promise<unknown> => {
      const outcome = await onTimeout();
      // JSON has no classes: store a plain object, which is validated like a payload.
      return schema && outcome instanceof schema ? plainFields(schema, outcome) : outcome;
    };
    return this.runAt({ ...wait, kind: 'timeout' }, stepSpan(`${wait.name} timed out`), work, site);
  }

  /** True if the current code runs in a step of this attempt. */
  get isInside(): boolean {
    return this.contexts.isInside;
  }

  /**
   * Records a span for a call of `waitFor`. It does not measure the wait, because no attempt runs during the wait.
   * @param work runs in the span. Default: none
   */
  private traceWait(name: string, outcome: string, work: () => Promise<void> = async () => {}): Promise<void> {
    return this.handle.telemetry.span(waitSpan(name), (span) => {
      span.set({ [WAIT_OUTCOME]: outcome });
      return work();
    });
  }

  /** Runs the work and stores its result. Stores the decision and checks the lease first, as the work has effects. */
  private async runOnce(
    key: StepKey,
    text: string,
    work: (info: StepInfo) => unknown,
    site: CallSite,
  ): Promise<StoredStep> {
    const deciding = this.saveDecision();
    if (deciding) await deciding.then(() => this.handle.signal.throwIfAborted());
    const leased = this.handle.ensureLease();
    if (leased) await leased;
    const id = stepIdOf(text);
    const call = this.contexts.begin(key.kind, id, key.name);
    const result = await call.run(() => work(this.infoOf(key, id, call)));
    try {
      // A step without a result is stored as null, so that it does not run again and every attempt sees the same value.
      const value = result === undefined ? null : toJson(result, `The result of step ${JSON.stringify(key.name)}`);
      // Properties are named, because V8 creates a new hidden class each time that a literal spreads an object and adds
      // to it.
      const { kind, iteration, intent, parent, name } = key;
      return await this.handle.saveStep({ kind, iteration, intent, parent, name, key: key.key, value });
    } catch (error) {
      showAt(error, site);
      throw error;
    }
  }

  /** Returns the argument of a step's work. Its `step` calls belong to that step in any async context (FIX-82). */
  private infoOf(place: StepPlace, id: string, call: EnclosingCall): StepInfo {
    const step: StepInfo['step'] = (name, work, options) => {
      const site = callSite(step);
      return this.hand(
        'info.step',
        () => {
          assertName(name, 'step name');
          call.assertOpen(stepCall(name));
          return this.runIn(call, place, name, work, options, site);
        },
        name,
      );
    };
    const { signal, maxStepBytes: maxBytes } = this.handle;
    return { key: `${this.turnId}:${id}`, signal, maxBytes, step };
  }

  /** Waits until steps that run beside a wait are stored, so that the next attempt does not repeat them. */
  private async untilStored(): Promise<void> {
    do {
      await Promise.allSettled(this.running.values());
      // Code after a step may begin another one.
      await nextTask();
    } while (this.running.size > 0);
    await this.saveDecision();
    this.handle.signal.throwIfAborted();
  }
}

/** Calls the function. An error that it throws rejects the promise. */
function begun<T>(begin: () => Promise<T>): Promise<T> {
  try {
    return begin();
  } catch (error) {
    const reason = error as Error;
    return Promise.reject(reason);
  }
}

/** The place of all tool calls: they belong to the turn, not to an intent. */
const TOOLS = 'tools';

function stepCall(name: string): string {
  return `Step ${JSON.stringify(name)}`;
}

/** Returns the name of a span in the log: `tool search` for `execute_tool search`. */
function labelOf(span: string): string {
  return span.replace(/^execute_tool /, 'tool ');
}

/** Returns the key of a step or tool call in `ended`. */
function placeOf(key: StepKey): string {
  return key.kind === 'tool' ? TOOLS : placeName(key);
}

/** Returns the place of a step or function, such as `0 refund`. */
function placeName({ iteration, intent }: StepPlace): string {
  return `${iteration} ${intent}`;
}
