/** The messages of the errors in compaction.errors.ts, and of token-counter.ts. */
export const compactionMessages = {
  failed: (sessionId: string, phase: string): string =>
    `Session ${sessionId} was not compacted: failed to ${phase}. See the cause.`,

  busy: (sessionId: string): string => `Session ${sessionId} is already being compacted. Retry later.`,

  noSummarizer: (): string =>
    'The strategy summary requires a summarizer. Set state.summarize of SessionsModule.forRoot(), or use exactly one ' +
    'orchestrator with a compaction policy.',

  /** @param wantedBy the feature that needs the counter */
  noTokenCounter: (wantedBy: string): string =>
    `${wantedBy} requires a token counter. Run npm install gpt-tokenizer, or pass a custom counter ` +
    'as the option tokenCounter of SessionsModule.forRoot().',
};
