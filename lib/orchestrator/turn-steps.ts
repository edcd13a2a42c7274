import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTask } from 'node:timers/promises';
import { checkInput } from '../common/check-input.js';
import { type JsonValue, toJson } from '../common/json.js';
import { assertName } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { stepSpan, waitSpan } from '../telemetry/call-spans.js';
import { WAIT_OUTCOME } from '../telemetry/attributes.js';
import { type SpanOptions } from '../telemetry/telemetry.js';
import { type TurnControl } from '../turn/turn-runner.js';
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
 * The step or call that the present code runs in. It has strings, counters and a mark only, so that code left running keeps
 * nothing of the turn.
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

/** The stored steps of a turn in one attempt: what earlier attempts stored, and what this one adds (BOT-30). */
export class TurnSteps {
  private readonly stored: Map<string, StoredStep>;
  private readonly scopes = new StepScopes();
  /** Steps that have not ended, by key. */
  private readonly running = new Map<string, Promise<StoredStep>>();
  private readonly mark = Symbol('steps');
  /** The places where steps have ended: `replay` where one of them was replayed. */
  private readonly ended = new Map<string, 'step' | 'replay'>();
  /** By place, the waits of earlier attempts that this one has not come to. */
  private readonly waits = new Map<string, number>();
  /** The decision that the steps to come rest on, until it is stored with the first of them. */
  private decision: StoredStep | null = null;
  private decisionSaved: Promise<unknown> | null = null;

  constructor(
    private readonly turnId: string,
    steps: readonly StoredStep[],
    private readonly control: TurnControl,
  ) {
    this.stored = new Map(steps.map((step) => [stepText(step), step]));
    for (const step of steps) if (step.kind === 'wait') this.countWait(step, 1);
  }

  /** Runs a step of a handler, see `TurnContext.step`. Throws for a call that is refused. */
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
   * Runs work under a key of its own; the same key at the same time runs once.
   * @param span describes it, when it runs
   * @param calls count it as running until it is over
   */
  async runAt<T>(key: StepKey, span: SpanOptions, work: (info: StepInfo) => Promise<T> | T, calls?: Calls): Promise<T> {
    const text = stepText(key);
    const place = placeOf(key);
    let run: Promise<StoredStep> | undefined;
    try {
      this.control.signal.throwIfAborted();
      const stored = this.stored.get(text);
      const known = stored ?? this.running.get(text);
      // Not in the same task: steps that overlap when they run overlap when they are replayed, too.
      if (known) {
        const { value } = await known;
        if (stored) this.ended.set(place, 'replay');
        return (value ?? null) as T;
      }
      run = this.control.telemetry.span(span, () => this.runOnce(key, text, work));
      this.running.set(text, run);
      const saved = await run;
      if (!this.ended.has(place)) this.ended.set(place, 'step');
      // What may come again in this attempt: the same key, or an enclosing call that failed and runs again.
      if (typeof key.key === 'string' || key.parent !== '') this.stored.set(text, saved);
      return saved.value as T;
    } finally {
      if (run) this.running.delete(text);
      if (calls) calls.running -= 1;
    }
  }

  /** The place of a call, for the tokens that it counts (FIX-15). A tool may be used by every intent. */
  usagePlace(place: Pick<StepKey, 'iteration' | 'intent'>): Pick<UsagePlace, 'name' | 'repeats'> {
    const name = nameOf(place);
    const ended = [this.ended.get(name), this.ended.get(TOOLS)].filter((each) => each !== undefined);
    if (ended.length > 0) return { name: `${name} after steps`, repeats: ended.includes('replay') };
    return { name, repeats: (this.waits.get(name) ?? 0) > 0 };
  }

  /** See {@link TurnControl.hand}. @param begin an error that it throws rejects the promise */
  hand<T>(call: string, begin: () => Promise<T>): Promise<T> {
    return this.control.hand(call, begun(begin));
  }

  /** Whether no earlier attempt has stored anything. */
  get isEmpty(): boolean {
    return this.stored.size === 0;
  }

  /** Whether an earlier attempt has stored it. */
  isStored(key: StepKey): boolean {
    return this.stored.has(stepText(key));
  }

  /** What an earlier attempt has stored. */
  find(key: StepKey): JsonValue | undefined {
    return this.stored.get(stepText(key))?.value;
  }

  /** Stores what later attempts of the turn will find. */
  async save(key: StepKey, value: JsonValue): Promise<void> {
    this.control.signal.throwIfAborted();
    await this.saveStep({ ...key, value });
  }

  /** Stores a decision with the first step, wait or event that rests on it (FIX-08). */
  decide(key: StepKey, value: JsonValue): void {
    this.decision = { ...key, value };
    this.decisionSaved = null;
  }

  /** Nothing rests on the decision any more: its iteration is over. */
  forgetDecision(): void {
    this.decision = null;
  }

  /** Stores the decision before an event or a wait. @returns `null` when there is nothing to wait for */
  saveDecision(): Promise<unknown> | null {
    const { decision } = this;
    if (!decision) return this.decisionSaved;
    this.decision = null;
    // A decision that is too large rejects, as one that the store refuses.
    const saving = async (): Promise<StoredStep> => this.control.saveStep(decision);
    return this.whileDeciding(saving());
  }

  /**
   * What is called inside a step is left out when the turn is attempted again and the step's result is stored.
   * @param instead what to do
   * @throws InvalidInputError when the present code runs in a step of this attempt
   */
  assertOutside(call: string, instead: string): void {
    if (!this.inside) return;
    throw new InvalidInputError(call, `must not be called inside a step: ${instead}.`);
  }

  /** @param park ends the attempt */
  async waitFor<T>(
    place: Pick<StepKey, 'iteration' | 'intent'>,
    name: string,
    options: WaitForOptions<T>,
    park: (wait: TurnWait) => Promise<never>,
  ): Promise<T> {
    const { schema, timeoutMs } = options;
    assertName(name, 'signal name');
    assertTimeout(timeoutMs);
    this.assertOutside('waitFor', 'that would not be stored before the wait is over');
    this.control.signal.throwIfAborted();
    const step: StepKey = { kind: 'wait', ...place, parent: '', name, key: this.scopes.nextWait(place, name) };
    const known = this.stored.get(stepText(step));
    if (!known) {
      await this.tellWait(name, 'parked', () => this.untilStored());
      return park({ signal: name, step, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    }
    this.countWait(step, -1);
    const result = known.value as WaitResult;
    await this.tellWait(name, result.received ? 'received' : 'timed-out');
    const payload = result.received ? result.payload : await this.timedOut(step, options);
    return schema ? checkInput(schema, payload, `signal ${name}`) : (payload as T);
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
      // JSON has no classes: what is stored is checked as a payload is.
      return schema && outcome instanceof schema ? { ...outcome } : outcome;
    });
  }

  /** The step that the present code runs in; `undefined` outside of this attempt's steps. */
  private get inside(): Enclosing | undefined {
    const inside = enclosing.getStore();
    return inside?.mark === this.mark ? inside : undefined;
  }

  /** A wait is over before it begins: it has no attempt while it lasts. */
  private tellWait(name: string, outcome: string, work: () => Promise<void> = async () => {}): Promise<void> {
    return this.control.telemetry.span(waitSpan(name), (span) => {
      span.set({ [WAIT_OUTCOME]: outcome });
      return work();
    });
  }

  private async runOnce(key: StepKey, text: string, work: (info: StepInfo) => unknown): Promise<StoredStep> {
    const leased = this.control.ensureLease();
    if (leased) await leased;
    const id = stepIdOf(text);
    const info = { key: `${this.turnId}:${id}`, signal: this.control.signal };
    const result = await enclosing.run(new Enclosing(this.mark, id), () => work(info));
    // A step without a result is stored as null: it must not run again, and every attempt must see the same.
    const value = result === undefined ? null : toJson(result, `The result of step ${JSON.stringify(key.name)}`);
    // Named properties, because V8 creates a new hidden class each time that a literal spreads an object and adds to it.
    const { kind, iteration, intent, parent, name } = key;
    return await this.saveStep({ kind, iteration, intent, parent, name, key: key.key, value });
  }

  private saveStep(step: StoredStep): Promise<StoredStep> {
    return this.decision || this.decisionSaved ? this.saveDecided(step) : this.control.saveStep(step);
  }

  private async saveDecided(step: StoredStep): Promise<StoredStep> {
    if (this.decisionSaved) await this.decisionSaved;
    const { decision } = this;
    if (!decision) return this.control.saveStep(step);
    this.decision = null;
    return this.whileDeciding(this.control.saveStep(step, decision));
  }

  /** Steps and events beside this one wait, so that none is stored before the decision is. */
  private whileDeciding<T>(saving: Promise<T>): Promise<T> {
    this.decisionSaved = saving;
    const isOver = (): void => {
      if (this.decisionSaved === saving) this.decisionSaved = null;
    };
    // A failure stays, for each of those who wait.
    saving.then(isOver, () => undefined);
    return saving;
  }

  /** What runs beside a wait is stored before the attempt ends, so that the next one does not do it again. */
  private async untilStored(): Promise<void> {
    do {
      await Promise.allSettled(this.running.values());
      // What follows a step may begin another one.
      await nextTask();
    } while (this.running.size > 0);
    await this.saveDecision();
    this.control.signal.throwIfAborted();
  }
}

/** Calls it. An error that it throws rejects the promise. */
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
