/** The messages of the errors in state.errors.ts. */
export const stateMessages = {
  conflict: (attempts: number): string =>
    `The state was changed concurrently during each of ${attempts} attempts to change it. Retry the call.`,

  /** @param use the feature that requires the module. Default: the module was used directly */
  moduleDisabled: (module: string, enabled: readonly string[], use?: string): string => {
    const what = use === undefined ? `The state module ${module}` : `${use} needs the state module ${module}, which`;
    return (
      `${what} is not enabled. Enabled: ${enabled.join(', ') || 'none'}. Add it to state.modules of SessionsModule.forRoot(), ` +
      'or a custom one to stateModules of forFeature().'
    );
  },

  conversationNotReset: (): string =>
    'The conversation log was not reset: the state module conversation is not enabled. Add conversation to ' +
    'state.modules and reset again, or erase the session.',

  moduleTimeout: (module: string, hook: string, timeoutMs: number): string =>
    `The hook ${hook} of the state module ${module} did not finish within ${timeoutMs} ms. Its result was discarded. Make the hook ` +
    'faster, or increase state.hookTimeoutMs.',
};
