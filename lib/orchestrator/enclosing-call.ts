import { AsyncLocalStorage } from 'node:async_hooks';
import { wrongStepContext } from './orchestrator.errors.js';
import { StepScopes } from './step-scopes.js';

const current = new AsyncLocalStorage<EnclosingCall>();

/**
 * A step or tool call while its work runs, or the handler itself, which has no id. It contains only strings, counters and
 * a mark, so that code left running does not keep the turn in memory.
 */
export class EnclosingCall {
  private inner: StepScopes | undefined;
  private hasEnded = false;

  constructor(
    readonly mark: symbol,
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
    try {
      return await current.run(this, work);
    } finally {
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
 */
export class CallContexts {
  private readonly mark = Symbol('attempt');
  private readonly handler = new EnclosingCall(this.mark, '', 'the handler');

  /** Runs a handler. It may start in the context of a call that submitted its turn. */
  enter<T>(handler: () => T): T {
    return current.run(this.handler, handler);
  }

  /** @param name of the step or tool call */
  begin(kind: string, id: string, name: string): EnclosingCall {
    return new EnclosingCall(this.mark, id, `${kind} ${JSON.stringify(name)}`);
  }

  /** Returns the call that the current code belongs to. @throws HandlerError (`STEP_CONTEXT`) */
  enclosing(call: string): EnclosingCall {
    const found = current.getStore();
    // The context is that of another turn's handler, for example through a shared limiter. No step is stored under a
    // handler's context, so the code counts as part of this attempt's handler.
    if (!found || (found.mark !== this.mark && found.id === '')) return this.handler;
    if (found.mark !== this.mark) throw wrongStepContext(call, `another turn's ${found.label}`);
    found.assertOpen(call);
    return found;
  }

  /** True if the current code runs in a step or tool call of this attempt. */
  get isInside(): boolean {
    const found = current.getStore();
    return found?.mark === this.mark && found.id !== '';
  }
}
