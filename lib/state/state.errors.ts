import { SessionsError } from '../common/sessions.error.js';
import { type StateHook } from './state-module.js';

/** Concurrent changes prevented the update in every attempt (ORC-05). HTTP 409, without any change. */
export class StateConflictError extends SessionsError {
  readonly code = 'STATE_CONFLICT';

  constructor(
    readonly sessionId: string,
    readonly attempts: number,
  ) {
    super(`The state was changed concurrently during each of ${attempts} attempts to change it. Retry the call.`);
  }
}

/** A state module that is not enabled was used; see the option `state.modules`, and `stateModules` of `forFeature`. */
export class StateModuleDisabledError extends SessionsError {
  readonly code = 'STATE_MODULE_DISABLED';

  constructor(
    readonly module: string,
    readonly enabled: readonly string[],
    /** The feature that requires the module. Default: the module was used directly. */
    use?: string,
  ) {
    const what = use === undefined ? `The state module ${module}` : `${use} needs the state module ${module}, which`;
    super(`${what} is not enabled. Enabled: ${enabled.join(', ') || 'none'}.`);
  }
}

/**
 * A reset kept a conversation log, because the state module `conversation` is not enabled (FIX-46). HTTP 409. Part of the errors of
 * the result; the enabled modules are cleared.
 */
export class ConversationNotResetError extends SessionsError {
  readonly code = 'CONVERSATION_NOT_RESET';

  constructor() {
    super(
      'The conversation log was not reset: the state module conversation is not enabled. Add conversation to ' +
        'state.modules and reset again, or erase the session.',
    );
  }
}

/**
 * A hook of a custom state module did not finish within `state.hookTimeoutMs` (FIX-46). HTTP 504. The result is discarded; a
 * `reset` or `compact` that ignores its signal may still take effect.
 */
export class StateModuleTimeoutError extends SessionsError {
  readonly code = 'STATE_MODULE_TIMEOUT';

  constructor(
    readonly module: string,
    readonly hook: StateHook,
    /** The limit in milliseconds. */
    readonly timeoutMs: number,
  ) {
    super(
      `The hook ${hook} of the state module ${module} did not finish within ${timeoutMs} ms. Its result was discarded. Make the hook ` +
        'faster, or increase state.hookTimeoutMs.',
    );
  }
}
