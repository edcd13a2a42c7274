import { toJson } from '../common/json.js';
import { assertName } from '../common/ids.js';
import { type TurnControl } from '../turn/turn-runner.js';
import { type StepKey, type StoredStep } from '../turn/turn-step.js';
import { type StepInfo } from './turn-context.js';

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

  private nextKey({ iteration, intent }: Pick<StepKey, 'iteration' | 'intent'>, name: string): StepKey {
    const counter = keyText({ iteration, intent, name, occurrence: 0 });
    const occurrence = this.occurrences.get(counter) ?? 0;
    this.occurrences.set(counter, occurrence + 1);
    return { iteration, intent, name, occurrence };
  }
}

function keyText({ iteration, intent, name, occurrence }: StepKey): string {
  return JSON.stringify([iteration, intent, name, occurrence]);
}
