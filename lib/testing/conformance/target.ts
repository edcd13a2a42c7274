import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { mintId } from '../../common/ids.js';
import { type AtomicSessionStoreAdapter } from '../../ledger/session.store.js';

/** A store under test. */
export interface ConformanceTarget {
  /** Initialised by the suite (`init`), closed by the suite (`close`). */
  readonly adapter: SessionsAdapter;
  /** Lets time pass on the store's clock, when tests can move it. Default: waits as long. */
  readonly elapse?: (ms: number) => Promise<void>;
  /** Opens the same store once more, as another process would. Left out: all clients of a test share `adapter`. */
  readonly connect?: () => SessionsAdapter | Promise<SessionsAdapter>;
  /** The store claims in `accept` what it may claim there (AcceptTurn.claim), and must. Default: it may leave that aside. */
  readonly claimsOnAccept?: boolean;
}

/** What the parts of the suite are given. All tests share one store, so each makes its own ids. */
export interface ConformanceContext {
  readonly adapter: SessionsAdapter;
  readonly sessions: AtomicSessionStoreAdapter;
  /** `adapter`, and the same store as other processes have it. */
  readonly clients: readonly SessionsAdapter[];
  /** An id that no other test uses. */
  readonly id: () => string;
  /** Lets time pass by the store's clock. */
  readonly elapse: (ms: number) => Promise<void>;
  /** As elapse, but to the millisecond and at once; absent when the clock runs by itself. */
  readonly moveClock: ((ms: number) => Promise<void>) | undefined;
  /** Whether accept must claim where it can. */
  readonly claimsOnAccept: boolean;
}

/** A context over a target that is opened before the tests run. */
export function contextOf(target: () => ConformanceTarget & { clients: SessionsAdapter[] }): ConformanceContext {
  return {
    get adapter() {
      return target().adapter;
    },
    get sessions() {
      return target().adapter.sessions as AtomicSessionStoreAdapter;
    },
    get clients() {
      return target().clients;
    },
    get moveClock() {
      return target().elapse;
    },
    get claimsOnAccept() {
      return target().claimsOnAccept ?? false;
    },
    id: mintId,
    elapse: async (ms) => {
      const { elapse } = target();
      // One more: a store's clock may have whole milliseconds.
      if (elapse) return elapse(ms + 1);
      // A timer may be over early, where this process was busy when it was set.
      const over = performance.now() + ms + 1;
      while (performance.now() < over) await new Promise((resolve) => setTimeout(resolve, over - performance.now()));
    },
  };
}
