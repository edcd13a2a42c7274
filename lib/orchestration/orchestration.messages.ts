/** The messages of the errors in orchestration.errors.ts, and about steps, agents, predicates and storage providers. */
export const orchestrationMessages = {
  toolNotAllowed: (tool: string, step: string, allowed: readonly string[], denied: readonly string[]): string => {
    const but = denied.length > 0 ? `, but not ${denied.join(', ')}` : '';
    const tools = allowed.length > 0 ? `${allowed.join(', ')}${but}.` : 'none. Continue without a tool.';
    return `The tool ${tool} is not allowed in step ${step}. Allowed now: ${tools}`;
  },

  budgetExceeded: (usedTokens: number, tokenBudget: number): string =>
    `The session has used ${usedTokens} tokens; its budget is ${tokenBudget}. Use a larger budget, or a new session.`,

  callIdReused: (callId: string, tool: string): string =>
    `The tool call id ${JSON.stringify(callId)} was already used for ${JSON.stringify(tool)}, with another tool or ` +
    'input. Use a separate id for each call: the id that the model gave to it.',

  unknownAgent: (agent: string, known: readonly string[]): string =>
    `The agent ${JSON.stringify(agent)} is unknown. Registered agents: ${known.join(', ') || 'none'}. Register it ` +
    'with SessionsModule.forFeature([...]).',

  missingPredicate: (agent: string, step: string, predicate: string): string =>
    `The plan of ${agent}: step ${step}: no provider has @StepPredicate(${JSON.stringify(predicate)}). Add one.`,

  noCompareAndSet: (): string =>
    'The storageProvider has no compare-and-set: processes that change the state of one session at the same time ' +
    'overwrite changes of each other. Pass the state of an adapter instead, for example memoryAdapter().state.',

  unknownNextStep: (step: string, steps: readonly string[], received: string): string =>
    `step ${step}: onComplete must be the name of a step: ${steps.join(', ')}. Received: ${JSON.stringify(received)}.`,

  resetNotAllowed: (at: number, tool: string): string =>
    `resetSequenceOn[${at}] is ${tool}, which availableTools does not allow. Allow it, or remove it.`,

  resetInSequence: (at: number, tool: string): string =>
    `resetSequenceOn[${at}] is ${tool}, which also comes later in the sequence. Its use would restart the sequence. ` +
    'Remove it from one of them.',

  /** @param path of the condition */
  sequenceTooLong: (path: string, uses: number, max: number): string =>
    `${path}: sequence_match allows at most ${max} uses, because the history has no more. Received: ${uses}. Shorten ` +
    'the sequence.',
};
