/** The messages about orchestrators, the start and the store: of start-phase.ts, turn-runner.ts and the worker. */
export const workerMessages = {
  unknownOrchestrator: (orchestrator: string, known: readonly string[]): string =>
    `No orchestrator is named ${JSON.stringify(orchestrator)}. Registered: ${known.join(', ') || 'none'}. ` +
    'Add it to SessionsModule.forFeature([...]).',

  unknownInOption: (option: string, orchestrator: string, known: readonly string[]): string =>
    `SessionsModule: The option ${option} contains ${JSON.stringify(orchestrator)}, which is not a registered ` +
    `orchestrator. Expected one of: ${known.join(', ') || 'none'}. Correct the name, or add the orchestrator to ` +
    'SessionsModule.forFeature([...]).',

  usedTooEarly: (orchestrator: string): string =>
    `The orchestrator ${orchestrator} must not be used before the application has started. ` +
    'Submit turns in onModuleInit or later, and wait for them in onApplicationBootstrap or later. ' +
    'In a test, call `await module.init()` after `compile()`.',

  /** @param subject what must not be awaited */
  awaitedTooEarly: (subject: string): string =>
    `${subject} must not be awaited before the application has started, because no worker runs turns yet. Wait in ` +
    'onApplicationBootstrap or later, or submit the turn without waiting for it. In a test, call `await module.init()`.',

  /**
   * @param wanted the version that the turn needs
   * @param own the version of this process, if it has the orchestrator
   * @param hasVersion whether this process has that version, with fewer intents
   */
  notRunHere: (orchestrator: string, wanted: string, own: string | undefined, hasVersion: boolean): string => {
    const waits =
      `A turn waits for orchestrator ${orchestrator}, ${wanted}, which this process does not have. ` +
      'Other processes can run it. ';
    if (own === undefined) {
      return `${waits}To run it here, register the orchestrator with SessionsModule.forFeature([...]).`;
    }
    if (!hasVersion) return `${waits}This one has version ${own}: after a rollback, deploy the newer version again.`;
    return (
      `${waits}If none does, the turn fails with ORCHESTRATOR_DRIFT. ` +
      'If you removed intents, set a new version and add a migration.'
    );
  },

  /** @param problem the message of the error */
  storeUnusable: (problem: string, checkEveryMs: number): string =>
    `${problem} This process claims no turns until a check succeeds, which runs every ${checkEveryMs / 1000} s.`,
};
