import { type StepKey } from '../turn/turn-step.js';
import { StepKeyRequiredError } from './orchestrator.errors.js';

/** Where a call of `turn.step`, `turn.waitFor` or `turn.tools.use` belongs. */
export type StepScope = Pick<StepKey, 'iteration' | 'intent' | 'parent'>;

/** The calls of one kind and name in one scope. */
interface Calls {
  count: number;
  running: number;
}

interface Scope {
  readonly calls: Map<string, Calls>;
  /** Two steps of one name have run at the same time: order no longer tells steps apart. */
  isParallel: boolean;
}

/**
 * Numbers the steps of one attempt that have no key of their caller. A number is the same in every attempt only while the
 * steps of a name follow one another, so parallel ones are refused (FIX-02).
 */
export class StepScopes {
  /** By parent, then by iteration and intent. */
  private readonly scopes = new Map<string, Map<string, Scope>>();

  /** @returns the number of a wait: waits for the same signal get the same payload, in whatever order they come */
  next(place: StepScope, kind: 'wait', name: string): number {
    return this.callsOf(this.scopeOf(place), kind, name).count++;
  }

  /**
   * @returns the step's number, and what to call when the step is over
   * @throws StepKeyRequiredError
   */
  begin(place: StepScope, name: string): { readonly number: number; readonly end: () => void } {
    const scope = this.scopeOf(place);
    const calls = this.callsOf(scope, 'step', name);
    if (calls.running > 0) scope.isParallel = true;
    if (scope.isParallel && calls.count > 0) throw new StepKeyRequiredError(name);
    calls.running += 1;
    return { number: calls.count++, end: () => (calls.running -= 1) };
  }

  /** A call that runs again in this attempt numbers what it encloses from the start. */
  reset(parent: string): void {
    this.scopes.delete(parent);
  }

  private scopeOf({ iteration, intent, parent }: StepScope): Scope {
    const scopes = this.scopes.get(parent) ?? new Map<string, Scope>();
    this.scopes.set(parent, scopes);
    const id = `${iteration} ${intent}`;
    const scope = scopes.get(id) ?? { calls: new Map<string, Calls>(), isParallel: false };
    scopes.set(id, scope);
    return scope;
  }

  private callsOf({ calls }: Scope, kind: 'step' | 'wait', name: string): Calls {
    const id = `${kind} ${name}`;
    const found = calls.get(id) ?? { count: 0, running: 0 };
    calls.set(id, found);
    return found;
  }
}
