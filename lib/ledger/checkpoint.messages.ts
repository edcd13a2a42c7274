/** The messages of the errors in checkpoint.errors.ts. */
export const checkpointMessages = {
  /** @param turnIndex the requested index. Default: the latest */
  notFound: (orchestrator: string, sessionId: string, turnIndex?: number): string => {
    const which = turnIndex === undefined ? 'no checkpoint' : `no checkpoint ${turnIndex}`;
    return `Session ${sessionId} has ${which} of ${orchestrator}. Use an index that history() of the orchestrator returns.`;
  },

  pruned: (orchestrator: string, sessionId: string, turnIndex?: number): string =>
    `Checkpoint ${turnIndex} of ${orchestrator} in session ${sessionId} was removed. ` +
    'Increase keepCheckpoints of the orchestrator to keep more checkpoints.',

  conflict: (orchestrator: string, sessionId: string, turnIndex: number): string =>
    `Checkpoint ${turnIndex} of ${orchestrator} in session ${sessionId} is not the next one: another writer wrote it first. ` +
    'Load the latest checkpoint again.',
};
