import { Deadline, DeadlineError } from '../common/deadline.js';
import { type JsonValue } from '../common/json.js';
import {
  type StateClearing,
  type StateCompaction,
  type StateCompactionOptions,
  type StateDataPage,
  type StateDescription,
  type StateHook,
  type StateHookCall,
  type StateModule,
} from './state-module.js';
import { moduleTimeout } from './state.errors.js';

/**
 * A custom state module whose hooks have a time limit (FIX-46). If a hook exceeds it, the caller receives a
 * StateModuleError and the hook's signal is aborted. Later results and errors of the hook are discarded.
 */
export class LimitedModule implements StateModule {
  /** Absent if the module does not have this hook. */
  readonly compact?: (sessionId: string, options: StateCompactionOptions) => Promise<StateCompaction>;
  /** Absent if the module does not have this hook. The limit applies to each item. */
  readonly export?: (sessionId: string) => AsyncIterable<JsonValue>;

  constructor(
    private readonly name: string,
    private readonly module: StateModule,
    private readonly timeoutMs: number,
  ) {
    if (module.compact) {
      this.compact = (sessionId, options) => this.limit('compact', (call) => module.compact!(sessionId, options, call));
    }
    if (module.export) {
      this.export = (sessionId) => this.limitItems((call) => module.export!(sessionId, call));
    }
  }

  describe(sessionId: string, page?: StateDataPage): Promise<StateDescription> {
    return this.limit('describe', (call) => this.module.describe(sessionId, page, call));
  }

  reset(sessionId: string | null): Promise<StateClearing> {
    return this.limit('reset', (call) => this.module.reset(sessionId, call));
  }

  private limit<T>(hook: StateHook, work: (call: StateHookCall) => T | Promise<T>): Promise<T> {
    const controller = new AbortController();
    return this.wait(hook, controller, () => work(controller));
  }

  private async *limitItems(
    work: (call: StateHookCall) => AsyncIterable<JsonValue> | Iterable<JsonValue>,
  ): AsyncGenerator<JsonValue, void> {
    const controller = new AbortController();
    const items = eachOf(() => work(controller));
    try {
      for (;;) {
        const { done, value } = await this.wait('export', controller, () => items.next());
        if (done) return;
        yield value;
      }
    } finally {
      const end = items.return(undefined);
      // After a timeout, the iterator ends only after its pending item, which may never arrive.
      if (controller.signal.aborted) end.catch(() => undefined);
      else await this.wait('export', controller, () => end);
    }
  }

  private async wait<T>(hook: StateHook, controller: AbortController, work: () => T | Promise<T>): Promise<T> {
    const deadline = new Deadline(this.timeoutMs);
    try {
      return await deadline.wait((async () => work())());
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
      const timeout = moduleTimeout(this.name, hook, this.timeoutMs);
      controller.abort(timeout);
      throw timeout;
    }
  }
}

async function* eachOf<T>(items: () => AsyncIterable<T> | Iterable<T>): AsyncGenerator<T, void> {
  yield* items();
}
