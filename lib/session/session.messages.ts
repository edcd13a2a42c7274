/** The messages about stores of sessions and their adapters. */
export const sessionMessages = {
  noAdapter: (): string =>
    'SessionStore requires an adapter. If a module lists SessionStore in its providers, remove it there: SessionsModule provides it. ' +
    'To inject it in another module, add SessionsModule to the imports of that module.',

  nonAtomicStore: (): string =>
    'The session adapter has no atomic operations. Concurrent changes to a session can be lost. ' +
    'Use one of the adapters of this package, or implement AtomicSessionStoreAdapter.',

  /** @param first the id of the first session that failed, as logged */
  sweepFailures: (action: string, failures: number, sessions: number, first: string): string =>
    `Could not ${action} ${failures} of ${sessions} sessions; the sweep continues. First: session ${first}.`,
};
