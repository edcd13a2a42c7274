/** The messages of the errors in state.errors.ts, and of state.settings.ts and session-manager-feature.ts. */
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

  /** @param option the option that needs the conversation log */
  conversationDisabled: (option: string, enabled: readonly string[]): string =>
    `${option} needs the state module conversation, which is not enabled. Enabled: ${enabled.join(', ') || 'none'}. ` +
    'Add conversation to state.modules, or remove the option.',

  managerTooEarly: (namespace: string): string =>
    `The session manager ${namespace} must not be used before the application has started. Use it in onModuleInit or ` +
    'later.',
};
