import { AsyncLocalStorage } from 'node:async_hooks';
import { wrongStepContext } from './orchestrator.errors.js';
import { StepScopes } from './step-scopes.js';

const current = new AsyncLocalStorage<EnclosingCall>();

/** The calls of one attempt. Their contexts share this object, which identifies the attempt. */
interface AttemptCalls {
  /** Number of calls whose work runs. */
  open: number;
}

/**
 * A step or tool call while its work runs, or the handler itself, which has no id. It contains only strings and
 * counters, so that code left running does not keep the turn in memory.
 */
export class EnclosingCall {
  private inner: StepScopes | undefined;
  private hasEnded = false;

  constructor(
    readonly attempt: AttemptCalls,
    /** The id of the step; `''` for the handler. */
    readonly id: string,
    /** Describes the call in errors. */
    readonly label: string,
  ) {}

  get scopes(): StepScopes {
    return (this.inner ??= new StepScopes());
  }

  /** Runs the call's work. The steps that it calls belong to the call. */
  async run<T>(work: () => Promise<T> | T): Promise<T> {
    this.attempt.open += 1;
    try {
      return await current.run(this, work);
    } finally {
      this.attempt.open -= 1;
      this.hasEnded = true;
    }
  }

  /** @param call names the call that runs in this context @throws HandlerError (`STEP_CONTEXT`) if the work has ended */
  assertOpen(call: string): void {
    if (this.hasEnded) throw wrongStepContext(call, this.label);
  }
}

/**
 * Finds the call that the current code of an attempt belongs to, by its asynchronous context (FIX-01). A limiter can
 * start code in the context of another call. Its context is then rejected if that call has ended, or is one of another
 * turn (FIX-82).
 *
 * In the context of the handler, or of an open call of the attempt, a step is accepted, even if a limiter has started it
 * there by mistake: this cannot be detected. That a call ends before a step it has started is no mistake either:
 * `Promise.race` leaves steps running.
 */
export class CallContexts {
  private readonly attempt: AttemptCalls = { open: 0 };
  private readonly handler = new EnclosingCall(this.attempt, '', 'handler');

  /** Runs a handler. It may start in the context of a call that submitted its turn. */
  enter<T>(handler: () => T): T {
    return current.run(this.handler, handler);
  }

  /** @param name of the step or tool call */
  begin(kind: string, id: string, name: string): EnclosingCall {
    return new EnclosingCall(this.attempt, id, `${kind} ${JSON.stringify(name)}`);
  }

  /**
   * Returns the call that a step belongs to. A step that a pool has started outside of this attempt may belong to any
   * open call, so it counts as one of the handler only if no call is open (FIX-82).
   * @throws HandlerError (`STEP_CONTEXT`)
   */
  parentOf(step: string): EnclosingCall {
    const found = current.getStore();
    if (found?.attempt !== this.attempt && this.attempt.open > 0) throw wrongStepContext(step, foreignContext(found));
    return this.enclosing(step);
  }

  /** Returns the call that the current code belongs to. @throws HandlerError (`STEP_CONTEXT`) */
  enclosing(call: string): EnclosingCall {
    const found = current.getStore();
    // The context is that of another turn's handler, for example through a shared limiter. The code counts as part of
    // this attempt's handler.
    if (!found || (found.attempt !== this.attempt && found.id === '')) return this.handler;
    if (found.attempt !== this.attempt) throw wrongStepContext(call, foreignContext(found));
    found.assertOpen(call);
    return found;
  }

  /** True if the current code runs in a step or tool call of this attempt. */
  get isInside(): boolean {
    const found = current.getStore();
    return found?.attempt === this.attempt && found.id !== '';
  }
}

/** Describes a context that is not one of the attempt. */
function foreignContext(found: EnclosingCall | undefined): string {
  return found ? `another turn's ${found.label}` : 'code outside of turns';
}
