import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { mintId } from '../../common/ids.js';
import { type AtomicSessionStoreAdapter } from '../../ledger/session.store.js';

/** A store under test. */
export interface ConformanceTarget {
  /** The store. The suite calls its `init` and `close`. */
  readonly adapter: SessionsAdapter;
  /** Moves the store's clock by `ms` milliseconds. Default: waits in real time. */
  readonly elapse?: (ms: number) => Promise<void>;
  /** Opens another client of the same store, like another process. Default: all clients share `adapter`. */
  readonly connect?: () => SessionsAdapter | Promise<SessionsAdapter>;
  /** Requires that `accept` claims whenever it may (AcceptTurn.claim). Default: `accept` may ignore the claim. */
  readonly claimsOnAccept?: boolean;
}

/** The context that the parts of the suite share. All tests use one store, so each creates its own ids. */
export interface ConformanceContext {
  readonly adapter: SessionsAdapter;
  readonly sessions: AtomicSessionStoreAdapter;
  /** `adapter`, and another client of the same store. */
  readonly clients: readonly SessionsAdapter[];
  /** Returns an id that no other test uses. */
  readonly id: () => string;
  /** Lets time pass on the store's clock, at least `ms` milliseconds. */
  readonly elapse: (ms: number) => Promise<void>;
  /** Moves the store's clock immediately by exactly `ms` milliseconds; absent when the clock runs in real time. */
  readonly moveClock: ((ms: number) => Promise<void>) | undefined;
  /** True if accept must claim whenever it may. */
  readonly claimsOnAccept: boolean;
}

/** Returns a context of a target that is opened before the tests run. */
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
      // Add one, because a store's clock may count whole milliseconds.
      if (elapse) return elapse(ms + 1);
      // A timer may fire early if this process was busy when it was set.
      const over = performance.now() + ms + 1;
      while (performance.now() < over) await new Promise((resolve) => setTimeout(resolve, over - performance.now()));
    },
  };
}
