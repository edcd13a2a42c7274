import { checkInput } from '../common/check-input.js';
import { toJson } from '../common/json.js';
import { assertName } from '../common/ids.js';
import { InvalidInputError } from '../common/sessions.error.js';
import { type TurnControl } from '../turn/turn-runner.js';
import { TurnSignalTimeoutError } from '../turn/turn.errors.js';
import { type StepKey, type StoredStep, type WaitResult } from '../turn/turn-step.js';
import { type TurnWait } from '../turn/turn.store.js';
import { type StepInfo, type WaitForOptions } from './turn-context.js';

/** Ten years. */
const MAX_WAIT_MS = 315_360_000_000;

/** The memo of one attempt: what earlier attempts of the turn stored, and what this one adds (BOT-30). */
export class TurnSteps {
  private readonly stored: Map<string, StoredStep>;
  private readonly occurrences = new Map<string, number>();

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
    this.control.signal.throwIfAborted();
    const key = this.nextKey(place, name);
    const known = this.stored.get(keyText(key));
    if (known) return known.value as T;
    const result = await work({ key: `${this.turnId}:${keyText(key)}`, signal: this.control.signal });
    // A step without a result is stored as null: it must not run again, and every attempt must see the same.
    const value = result === undefined ? null : toJson(result, `The result of step ${JSON.stringify(name)}`);
    const saved = await this.control.saveStep({ ...key, value });
    return saved.value as T;
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
    this.control.signal.throwIfAborted();
    const step = this.nextKey(place, name);
    const known = this.stored.get(keyText(step));
    if (!known) return park({ signal: name, step, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    const result = known.value as WaitResult;
    if (result.received) return schema ? checkInput(schema, result.payload, `signal ${name}`) : (result.payload as T);
    if (onTimeout) return onTimeout();
    throw new TurnSignalTimeoutError(this.turnId, name);
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
