import { type StepKey } from '../ledger/turn-step.js';
import { stepKeyRequired } from './orchestrator.errors.js';

/** The iteration and intent in which a step is called. */
export type StepPlace = Pick<StepKey, 'iteration' | 'intent'>;

/** The calls of one kind and name in one scope. */
export interface Calls {
  /** Number of calls so far. */
  count: number;
  running: number;
}

interface Scope {
  readonly calls: Map<string, Calls>;
  /** True if two steps with the same name have run at the same time, so that order no longer identifies them. */
  isParallel: boolean;
}

/**
 * Numbers the calls without a key of one enclosing step or tool call, or of the handler itself. A number is stable across
 * attempts only while steps with the same name run in sequence, so parallel ones are rejected (FIX-02).
 */
export class StepScopes {
  /** By iteration and intent. */
  private readonly scopes = new Map<string, Scope>();

  /** @returns the number of a wait: waits for the same signal get the same payload, in any order */
  nextWait(place: StepPlace, name: string): number {
    return callsOf(this.scopeOf(place), `wait ${name}`).count++;
  }

  /**
   * Begins a step. The caller decrements `running` when it ends.
   * @returns the calls with its name, including this one
   * @throws HandlerError (`STEP_KEY_REQUIRED`)
   */
  begin(place: StepPlace, name: string): Calls {
    const scope = this.scopeOf(place);
    const calls = callsOf(scope, `step ${name}`);
    if (calls.running > 0) scope.isParallel = true;
    if (scope.isParallel && calls.count > 0) throw stepKeyRequired(name);
    calls.running += 1;
    calls.count += 1;
    return calls;
  }

  private scopeOf({ iteration, intent }: StepPlace): Scope {
    const id = `${iteration} ${intent}`;
    let scope = this.scopes.get(id);
    if (!scope) this.scopes.set(id, (scope = { calls: new Map(), isParallel: false }));
    return scope;
  }
}

function callsOf({ calls }: Scope, id: string): Calls {
  let found = calls.get(id);
  if (!found) calls.set(id, (found = { count: 0, running: 0 }));
  return found;
}
