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
import { TurnSignalTimeoutError } from '../turn/turn.errors.js';
import { type StepKey, type StoredStep, type WaitResult } from '../turn/turn-step.js';
import { type TurnWait } from '../turn/turn.store.js';
import { type StepInfo, type WaitForOptions } from './turn-context.js';

/** Ten years. */
const MAX_WAIT_MS = 315_360_000_000;

/** Whose step the present code runs in: a mark, which leads to nothing of the turn in what a step leaves behind. */
const insideStep = new AsyncLocalStorage<symbol>();

/** The memo of one attempt: what earlier attempts of the turn stored, and what this one adds (BOT-30). */
export class TurnSteps {
  private readonly stored: Map<string, StoredStep>;
  private readonly occurrences = new Map<string, number>();
  /** Steps that have not ended. */
  private readonly running = new Set<Promise<unknown>>();
  private readonly mark = Symbol('steps');

  constructor(
    private readonly turnId: string,
    steps: readonly StoredStep[],
    private readonly control: TurnControl,
  ) {
    this.stored = new Map(steps.map((step) => [keyText(step), step]));
  }

  async run<T>(
    place: Pick<StepKey, 'iteration' | 'intent'>,
    name: string,
    work: (info: StepInfo) => Promise<T> | T,
  ): Promise<T> {
    assertName(name, 'step name');
    return this.runAt<T>(this.nextKey(place, name), stepSpan(name), work);
  }

  /** As {@link run}, for what has an id of its own. @param span tells of it, when it runs */
  async runAt<T>(key: StepKey, span: SpanOptions, work: (info: StepInfo) => Promise<T> | T): Promise<T> {
    this.control.signal.throwIfAborted();
    const known = this.stored.get(keyText(key));
    if (known) return known.value as T;
    const run = this.control.telemetry.span(span, () => insideStep.run(this.mark, () => this.runOnce(key, work)));
    this.running.add(run);
    const saved = await run.finally(() => this.running.delete(run));
    return saved.value as T;
  }

  /** Whether no earlier attempt has stored anything. */
  get isEmpty(): boolean {
    return this.stored.size === 0;
  }

  /** Whether an earlier attempt has stored it. */
  isStored(key: StepKey): boolean {
    return this.stored.has(keyText(key));
  }

  /** What an earlier attempt has stored. */
  find(key: StepKey): JsonValue | undefined {
    return this.stored.get(keyText(key))?.value;
  }

  /** Stores what later attempts of the turn will find. */
  async save(key: StepKey, value: JsonValue): Promise<void> {
    this.control.signal.throwIfAborted();
    await this.control.saveStep({ ...key, value });
  }

  /**
   * What is called inside a step is left out when the turn is tried again and the step's result is there.
   * @param instead what to do
   * @throws InvalidInputError when the present code runs in a step of this attempt
   */
  assertOutside(call: string, instead: string): void {
    if (insideStep.getStore() !== this.mark) return;
    throw new InvalidInputError(call, `must not be called inside a step: ${instead}.`);
  }

  /** @param park ends the attempt */
  async waitFor<T>(
    place: Pick<StepKey, 'iteration' | 'intent'>,
    name: string,
    { schema, timeoutMs, onTimeout }: WaitForOptions<T>,
    park: (wait: TurnWait) => Promise<never>,
  ): Promise<T> {
    assertName(name, 'signal name');
    assertTimeout(timeoutMs);
    this.assertOutside('waitFor', 'that would not be stored before the wait is over');
    this.control.signal.throwIfAborted();
    const step = this.nextKey(place, name);
    const known = this.stored.get(keyText(step));
    if (!known) {
      await this.tellWait(name, 'parked', () => this.untilStored());
      return park({ signal: name, step, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    }
    const result = known.value as WaitResult;
    await this.tellWait(name, result.received ? 'received' : 'timed-out');
    if (result.received) return schema ? checkInput(schema, result.payload, `signal ${name}`) : (result.payload as T);
    if (onTimeout) return onTimeout();
    throw new TurnSignalTimeoutError(this.turnId, name);
  }

  /** A wait is over before it begins: it has no attempt while it lasts. */
  private tellWait(name: string, outcome: string, work: () => Promise<void> = async () => {}): Promise<void> {
    return this.control.telemetry.span(waitSpan(name), (span) => {
      span.set({ [WAIT_OUTCOME]: outcome });
      return work();
    });
  }

  private async runOnce(key: StepKey, work: (info: StepInfo) => unknown): Promise<StoredStep> {
    const result = await work({ key: `${this.turnId}:${keyText(key)}`, signal: this.control.signal });
    // A step without a result is stored as null: it must not run again, and every attempt must see the same.
    const value = result === undefined ? null : toJson(result, `The result of step ${JSON.stringify(key.name)}`);
    return this.control.saveStep({ ...key, value });
  }

  /** What runs beside a wait is stored before the attempt ends, so that the next one does not do it again. */
  private async untilStored(): Promise<void> {
    do {
      await Promise.allSettled(this.running);
      // What follows a step may begin another one.
      await nextTask();
    } while (this.running.size > 0);
    this.control.signal.throwIfAborted();
  }

  private nextKey({ iteration, intent }: Pick<StepKey, 'iteration' | 'intent'>, name: string): StepKey {
    const counter = keyText({ iteration, intent, name, occurrence: 0 });
    const occurrence = this.occurrences.get(counter) ?? 0;
    this.occurrences.set(counter, occurrence + 1);
    return { iteration, intent, name, occurrence };
  }
}

function assertTimeout(timeoutMs: number | undefined): void {
  if (timeoutMs === undefined || (Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= MAX_WAIT_MS)) return;
  throw new InvalidInputError('waitFor.timeoutMs', `must be an integer from 1 to ${MAX_WAIT_MS}.`);
}

function keyText({ iteration, intent, name, occurrence }: StepKey): string {
  return JSON.stringify([iteration, intent, name, occurrence]);
}
