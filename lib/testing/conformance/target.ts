import { type SessionsAdapter } from '../../sessions.adapter.js';
import { mintId } from '../../common/ids.js';
import { type AtomicSessionStoreAdapter } from '../../session/session.store.js';

/** A store under test. */
export interface ConformanceTarget {
  /** Initialised by the suite (`init`), closed by the suite (`close`). */
  readonly adapter: SessionsAdapter;
  /** Lets time pass on the store's clock. Default: waits as long. */
  readonly elapse?: (ms: number) => Promise<void>;
}

/** What the parts of the suite are given. All tests share one store, so each makes its own ids. */
export interface ConformanceContext {
  readonly adapter: SessionsAdapter;
  readonly sessions: AtomicSessionStoreAdapter;
  /** An id that no other test uses. */
  readonly id: () => string;
  readonly elapse: (ms: number) => Promise<void>;
}

/** A context over a target that is opened before the tests run. */
export function contextOf(target: () => ConformanceTarget): ConformanceContext {
  return {
    get adapter() {
      return target().adapter;
    },
    get sessions() {
      return target().adapter.sessions as AtomicSessionStoreAdapter;
    },
    id: mintId,
    elapse: async (ms) => {
      const { elapse } = target();
      // One more: a store's clock may have whole milliseconds.
      await (elapse ? elapse(ms + 1) : new Promise((resolve) => setTimeout(resolve, ms + 1)));
    },
  };
}
