/** The log lines about stores of sessions without atomic operations. */
export const sessionMessages = {
  nonAtomicStore: (): string =>
    'The session adapter has no atomic operations. Concurrent changes to a session can be lost. ' +
    'Use one of the adapters of this package, or implement AtomicSessionStoreAdapter.',

  /** @param first the id of the first session that failed, as logged */
  sweepFailures: (action: string, failures: number, sessions: number, first: string): string =>
    `Could not ${action} ${failures} of ${sessions} sessions; the sweep continues. First: session ${first}.`,
};
