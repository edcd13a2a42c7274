import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTask } from 'node:timers/promises';
import { checkInput } from '../common/check-input.js';
import { checkSchema, plainFields } from '../common/check-schema.js';
import { type JsonValue, toJson } from '../common/json.js';
import { assertName } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { stepSpan, waitSpan } from '../telemetry/call-spans.js';
import { WAIT_OUTCOME } from '../telemetry/attributes.js';
import { type SpanOptions } from '../telemetry/telemetry.js';
import { type AttemptHandle } from '../turn/turn-runner.js';
import { TurnSignalTimeoutError } from '../ledger/turn.errors.js';
import { stepIdOf, type StepKey, stepText, type StoredStep, type WaitResult } from '../ledger/turn-step.js';
import { type TurnWait } from '../ledger/turn.store.js';
import { StepOptions } from './call-options.js';
import { type Calls, StepScopes } from './step-scopes.js';
import { type StepInfo, type WaitForOptions } from './turn-context.js';
import { type UsagePlace } from './usage-tally.js';

/** Ten years. */
const MAX_WAIT_MS = 315_360_000_000;

/**
 * The step or call that the current code runs in. It contains only strings, counters and a mark, so that code left
 * running does not keep the turn in memory.
 */
class Enclosing {
  private inner: StepScopes | undefined;

  constructor(
    readonly mark: symbol,
    readonly id: string,
  ) {}

  get scopes(): StepScopes {
    return (this.inner ??= new StepScopes());
  }
}

const enclosing = new AsyncLocalStorage<Enclosing>();

/** The stored steps of a turn in one attempt: those of earlier attempts, and those that this one adds (BOT-30). */
export class TurnSteps {
  private readonly stored: Map<string, StoredStep>;
  private readonly scopes = new StepScopes();
  /** Steps that have not ended, by key. */
  private readonly running = new Map<string, Promise<StoredStep>>();
  private readonly mark = Symbol('steps');
  /** The places where steps have ended: `replay` if any of them was replayed. */
  private readonly ended = new Map<string, 'step' | 'replay'>();
  /** Waits of earlier attempts that this one has not reached, by place. */
  private readonly waits = new Map<string, number>();
  /** The names of the signals that this attempt waits for. */
  private readonly openWaits = new Set<string>();
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

  /** Runs a step of a handler, see `TurnContext.step`. Throws if the call is rejected. */
  run<T>(
    place: Pick<StepKey, 'iteration' | 'intent'>,
    name: string,
    work: (info: StepInfo) => Promise<T> | T,
    options?: StepOptions,
  ): Promise<T> {
    assertName(name, 'step name');
    const key = options === undefined ? undefined : checkInput(StepOptions, options, 'step options').key;
    const { iteration, intent } = place;
    const inside = this.inside;
    const parent = inside?.id ?? '';
    const calls = key === undefined ? (inside?.scopes ?? this.scopes).begin(place, name) : undefined;
    const number = (calls?.count ?? 0) - 1;
    return this.runAt<T>(
      { kind: 'step', iteration, intent, parent, name, key: key ?? number },
      stepSpan(name),
      work,
      calls,
    );
  }

  /**
   * Runs work under the given key. Concurrent calls with the same key run once.
   * @param span describes the work, if it runs
   * @param calls counts the step as running until it ends
   */
  async runAt<T>(key: StepKey, span: SpanOptions, work: (info: StepInfo) => Promise<T> | T, calls?: Calls): Promise<T> {
    const text = stepText(key);
    const place = placeOf(key);
    let run: Promise<StoredStep> | undefined;
    try {
      this.handle.signal.throwIfAborted();
      const stored = this.stored.get(text);
      const known = stored ?? this.running.get(text);
      // Await even a stored result, so that steps that overlap when they run also overlap when they are replayed.
      if (known) {
        const { value } = await known;
        if (stored) this.ended.set(place, 'replay');
        return (value ?? null) as T;
      }
      run = this.handle.telemetry.span(span, () => this.runOnce(key, text, work));
      this.running.set(text, run);
      const saved = await run;
      if (!this.ended.has(place)) this.ended.set(place, 'step');
      // Keep results that this attempt can need again: those with a key, and those in an enclosing call that fails and
      // is repeated.
      if (typeof key.key === 'string' || key.parent !== '') this.stored.set(text, saved);
      return saved.value as T;
    } finally {
      if (run) this.running.delete(text);
      if (calls) calls.running -= 1;
    }
  }

  /** Returns the place of a call, for the tokens that it counts (FIX-15). All intents can use the same tool. */
  usagePlace(place: Pick<StepKey, 'iteration' | 'intent'>): Pick<UsagePlace, 'name' | 'repeats'> {
    const name = nameOf(place);
    const ended = [this.ended.get(name), this.ended.get(TOOLS)].filter((each) => each !== undefined);
    if (ended.length > 0) return { name: `${name} after steps`, repeats: ended.includes('replay') };
    return { name, repeats: (this.waits.get(name) ?? 0) > 0 };
  }

  /** See {@link AttemptHandle.hand}. @param begin an error that it throws rejects the promise */
  hand<T>(call: string, begin: () => Promise<T>): Promise<T> {
    return this.handle.hand(call, begun(begin));
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
    this.handle.signal.throwIfAborted();
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

  /**
   * Rejects calls inside a step, because they would be skipped when a later attempt replays the step.
   * @param instead the advice in the message
   * @throws InvalidInputError when the current code runs in a step of this attempt
   */
  assertOutside(call: string, instead: string): void {
    if (!this.isInside) return;
    throw new InvalidInputError(call, `must not be called inside a step: ${instead}.`);
  }

  /** @param suspend ends the attempt */
  async waitFor<T>(
    place: Pick<StepKey, 'iteration' | 'intent'>,
    name: string,
    options: WaitForOptions<T>,
    suspend: (wait: TurnWait) => Promise<never>,
  ): Promise<T> {
    const { schema, timeoutMs } = options;
    assertName(name, 'signal name');
    assertTimeout(timeoutMs);
    this.assertOutside('waitFor', 'the step would not be stored before the wait ends');
    this.handle.signal.throwIfAborted();
    const step: StepKey = { kind: 'wait', ...place, parent: '', name, key: this.scopes.nextWait(place, name) };
    const known = this.stored.get(stepText(step));
    if (!known) {
      this.openWaits.add(name);
      await this.tellWait(name, 'awaiting-signal', () => this.untilStored());
      const others = [...this.openWaits].filter((other) => other !== name);
      return suspend({ signal: name, step, others, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    }
    this.countWait(step, -1);
    const result = known.value as WaitResult;
    await this.tellWait(name, result.received ? 'received' : 'timed-out');
    const payload = result.received ? result.payload : await this.timedOut(step, options);
    return schema ? checkSchema(schema, payload, `signal ${name}`) : (payload as T);
  }

  private countWait(step: StepKey, change: number): void {
    const name = nameOf(step);
    this.waits.set(name, (this.waits.get(name) ?? 0) + change);
  }

  /** Runs `onTimeout` once: its outcome is a stored step (FIX-12). */
  private async timedOut<T>(wait: StepKey, { onTimeout, schema }: WaitForOptions<T>): Promise<unknown> {
    if (!onTimeout) throw new TurnSignalTimeoutError(this.turnId, wait.name);
    return this.runAt({ ...wait, kind: 'timeout' }, stepSpan(`${wait.name} timed out`), async () => {
      const outcome = await onTimeout();
      // JSON has no classes: store a plain object, which is validated like a payload.
      return schema && outcome instanceof schema ? plainFields(schema, outcome) : outcome;
    });
  }

  /** True if the current code runs in a step of this attempt. */
  get isInside(): boolean {
    return this.inside !== undefined;
  }

  /** The step that the current code runs in; `undefined` outside of this attempt's steps. */
  private get inside(): Enclosing | undefined {
    const inside = enclosing.getStore();
    return inside?.mark === this.mark ? inside : undefined;
  }

  /** Records a span for a wait. It has no duration, because no attempt runs during the wait. */
  private tellWait(name: string, outcome: string, work: () => Promise<void> = async () => {}): Promise<void> {
    return this.handle.telemetry.span(waitSpan(name), (span) => {
      span.set({ [WAIT_OUTCOME]: outcome });
      return work();
    });
  }

  private async runOnce(key: StepKey, text: string, work: (info: StepInfo) => unknown): Promise<StoredStep> {
    const deciding = this.saveDecision();
    if (deciding) await deciding.then(() => this.handle.signal.throwIfAborted());
    const leased = this.handle.ensureLease();
    if (leased) await leased;
    const id = stepIdOf(text);
    const info = { key: `${this.turnId}:${id}`, signal: this.handle.signal };
    const result = await enclosing.run(new Enclosing(this.mark, id), () => work(info));
    // A step without a result is stored as null, so that it does not run again and every attempt sees the same value.
    const value = result === undefined ? null : toJson(result, `The result of step ${JSON.stringify(key.name)}`);
    // Properties are named, because V8 creates a new hidden class each time that a literal spreads an object and adds
    // to it.
    const { kind, iteration, intent, parent, name } = key;
    return await this.handle.saveStep({ kind, iteration, intent, parent, name, key: key.key, value });
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

function placeOf(key: StepKey): string {
  return key.kind === 'tool' ? TOOLS : nameOf(key);
}

function nameOf({ iteration, intent }: Pick<StepKey, 'iteration' | 'intent'>): string {
  return `${iteration} ${intent}`;
}

function assertTimeout(timeoutMs: number | undefined): void {
  if (timeoutMs === undefined || (Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= MAX_WAIT_MS)) return;
  throw new InvalidInputError('waitFor.timeoutMs', `must be an integer from 1 to ${MAX_WAIT_MS}.`);
}
