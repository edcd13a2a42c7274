import { setImmediate as nextTask } from 'node:timers/promises';
import { checkInput } from '../common/check-input.js';
import { type CallSite, callSite, showAt } from '../common/call-site.js';
import { checkSchema, plainFields } from '../common/check-schema.js';
import { type JsonValue, toJson } from '../common/json.js';
import { assertName } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { fieldOf } from '../common/thrown.js';
import { stepSpan, waitSpan } from '../telemetry/call-spans.js';
import { WAIT_OUTCOME } from '../telemetry/attributes.js';
import { type SpanOptions } from '../telemetry/telemetry.js';
import { type AttemptHandle } from '../turn/turn-runner.js';
import { TurnTimeoutError } from '../ledger/turn.errors.js';
import { stepIdOf, type StepKey, stepText, type StoredStep, type WaitResult } from '../ledger/turn-step.js';
import { type TurnWait } from '../ledger/turn.store.js';
import { StepOptions } from './call-options.js';
import { CallContexts, type EnclosingCall } from './enclosing-call.js';
import { type StepPlace } from './step-scopes.js';
import { type StepInfo, type WaitForOptions } from './turn-context.js';
import { type UsagePlace } from './usage-tally.js';

/** How many causes of an error are searched for the step that threw them. */
const MAX_CAUSES = 5;

/** The function of a step. */
type StepWork<T> = (info: StepInfo) => Promise<T> | T;

/** Ten years. */
const MAX_WAIT_MS = 315_360_000_000;

/** The stored steps of a turn in one attempt: those of earlier attempts, and those that this one adds (BOT-30). */
export class TurnSteps {
  private readonly stored: Map<string, StoredStep>;
  private readonly contexts = new CallContexts();
  /** Steps that have not ended, by key. */
  private readonly running = new Map<string, Promise<StoredStep>>();
  /** The places where steps have ended: `replay` if any of them was replayed. */
  private readonly ended = new Map<string, 'step' | 'replay'>();
  /** Waits of earlier attempts that this one has not reached, by place. */
  private readonly waits = new Map<string, number>();
  /** The names of the signals that this attempt waits for. */
  private readonly openWaits = new Set<string>();
  /** The names of the running parts of the orchestrator and of their steps and tools, by key, in the order of their start. */
  private readonly activeParts = new Map<string, string>();
  /** The steps and tools that threw errors; the innermost counts. */
  private readonly thrownIn = new Map<unknown, string>();
  /** The decision of a route, until the first effect that depends on it. */
  private decision: StoredStep | null = null;
  /** The write that stores the decision. A failure is kept, for every effect that depends on the decision. */
  private deciding: Promise<unknown> | null = null;

  constructor(
    private readonly turnId: string,
    steps: readonly StoredStep[],
    private readonly handle: AttemptHandle,
  ) {
    this.stored = new Map(steps.map((step) => [stepText(step), step]));
    for (const step of steps) if (step.kind === 'wait') this.countWait(step, 1);
  }

  /** Runs a handler, whose steps belong to the calls in whose asynchronous context they run. */
  enter<T>(handler: () => T): T {
    return this.contexts.enter(handler);
  }

  /** Runs a step of a handler, see `TurnContext.step`. Throws if the call is rejected. @param site the handler's call */
  run<T>(
    place: StepPlace,
    name: string,
    work: StepWork<T>,
    options: StepOptions | undefined,
    site: CallSite,
  ): Promise<T> {
    assertName(name, 'step name');
    return this.runIn(this.contexts.enclosing(stepCall(name)), place, name, work, options, site);
  }

  /** @param parent the call that the step belongs to */
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
   * Runs work under the given key. Concurrent calls with the same key run once.
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
        return structuredClone(value ?? null) as T;
      }
      run = this.handle.telemetry.span(span, () => this.runOnce(key, text, work, site));
      this.running.set(text, run);
      this.activeParts.set(text, span.name);
      const saved = await run;
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

  /** Returns the place of a call, for the tokens that it counts (FIX-15). All intents can use the same tool. */
  usagePlace(place: StepPlace): Pick<UsagePlace, 'name' | 'repeats'> {
    const name = nameOf(place);
    const ended = [this.ended.get(name), this.ended.get(TOOLS)].filter((each) => each !== undefined);
    if (ended.length > 0) return { name: `${name} after steps`, repeats: ended.includes('replay') };
    return { name, repeats: (this.waits.get(name) ?? 0) > 0 };
  }

  /** See {@link AttemptHandle.hand}. @param begin an error that it throws rejects the promise */
  hand<T>(call: string, begin: () => Promise<T>): Promise<T> {
    return this.handle.hand(call, begun(begin));
  }

  /** Records that a part of the orchestrator begins. @param part for the log: `intent refund` */
  beginPart(part: string): void {
    this.activeParts.set(part, part);
  }

  /** Records that a part has ended. */
  endPart(part: string): void {
    this.activeParts.delete(part);
  }

  /** Returns what runs now, for the log; `undefined` if nothing does. */
  get runningParts(): string | undefined {
    return this.activeParts.size === 0 ? undefined : [...new Set(this.activeParts.values())].map(labelOf).join(', ');
  }

  /** Records that a part threw an error. */
  failPart(part: string, error: unknown): void {
    const step = this.stepOf(error);
    this.handle.thrownIn(step === undefined ? part : `${part}, ${step}`, error);
  }

  /** Returns the step that threw the error or one of its causes. */
  private stepOf(error: unknown, depth = 0): string | undefined {
    if (error === undefined || error === null || depth > MAX_CAUSES) return undefined;
    return this.thrownIn.get(error) ?? this.stepOf(fieldOf(error, 'cause'), depth + 1);
  }

  /** True if no earlier attempt has stored a step. */
  get isEmpty(): boolean {
    return this.stored.size === 0;
  }

  /** Returns true if an earlier attempt has stored the step. */
  isStored(key: StepKey): boolean {
    return this.stored.has(stepText(key));
  }

  /** Returns the value that an earlier attempt has stored. */
  find(key: StepKey): JsonValue | undefined {
    return this.stored.get(stepText(key))?.value;
  }

  /** Stores a value for later attempts of the turn. */
  async save(key: StepKey, value: JsonValue): Promise<void> {
    this.handle.assertOpen();
    await this.handle.saveStep({ ...key, value });
  }

  /** Keeps a decision, which {@link saveDecision} stores before the first effect that depends on it (FIX-81). */
  decide(key: StepKey, value: JsonValue): void {
    this.decision = { ...key, value };
    this.deciding = null;
  }

  /** Drops the decision after its iteration has ended. */
  forgetDecision(): void {
    this.decision = null;
  }

  /**
   * Stores the decision of the route. Call it before every effect: a step, an event, a wait or another turn (FIX-08,
   * FIX-81). @returns `null` if there is nothing to wait for
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

  /** @param suspend ends the attempt */
  async waitFor<T>(
    place: StepPlace,
    name: string,
    options: WaitForOptions<T>,
    suspend: (wait: TurnWait) => Promise<never>,
    site: CallSite,
  ): Promise<T> {
    const { schema, timeoutMs } = options;
    assertName(name, 'signal name');
    assertTimeout(timeoutMs);
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
    const name = nameOf(step);
    this.waits.set(name, (this.waits.get(name) ?? 0) + change);
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

  /** Records a span for a wait. It has no duration, because no attempt runs during the wait. */
  private traceWait(name: string, outcome: string, work: () => Promise<void> = async () => {}): Promise<void> {
    return this.handle.telemetry.span(waitSpan(name), (span) => {
      span.set({ [WAIT_OUTCOME]: outcome });
      return work();
    });
  }

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

  private infoOf(place: StepPlace, id: string, call: EnclosingCall): StepInfo {
    const step: StepInfo['step'] = (name, work, options) => {
      const site = callSite(step);
      return this.hand('info.step', () => {
        assertName(name, 'step name');
        call.assertOpen(stepCall(name));
        return this.runIn(call, place, name, work, options, site);
      });
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

const TOOLS = 'tools';

function stepCall(name: string): string {
  return `Step ${JSON.stringify(name)}`;
}

/** Returns what a span is called in the log. */
function labelOf(span: string): string {
  return span.replace(/^execute_tool /, 'tool ');
}

function placeOf(key: StepKey): string {
  return key.kind === 'tool' ? TOOLS : nameOf(key);
}

function nameOf({ iteration, intent }: StepPlace): string {
  return `${iteration} ${intent}`;
}

function assertTimeout(timeoutMs: number | undefined): void {
  if (timeoutMs === undefined || (Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= MAX_WAIT_MS)) return;
  throw new InvalidInputError('waitFor.timeoutMs', `must be an integer from 1 to ${MAX_WAIT_MS}.`);
}
