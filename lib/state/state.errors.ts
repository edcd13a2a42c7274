import { SessionsError } from '../common/sessions.error.js';
import { type StateHook } from './state-module.js';

/** Others changed the state every time this one tried to (ORC-05). HTTP 409. Nothing was changed. */
export class StateConflictError extends SessionsError {
  readonly code = 'STATE_CONFLICT';

  constructor(
    readonly sessionId: string,
    readonly attempts: number,
  ) {
    super(`The state was changed by others during each of ${attempts} attempts to change it.`);
  }
}

/** A state module that is not enabled was used; see the option `state.modules`, and `stateModules` of `forFeature`. */
export class StateModuleDisabledError extends SessionsError {
  readonly code = 'STATE_MODULE_DISABLED';

  constructor(
    readonly module: string,
    readonly enabled: readonly string[],
    /** What needs the module. Left out: it was used itself. */
    use?: string,
  ) {
    const what = use === undefined ? `The state module ${module}` : `${use} needs the state module ${module}, which`;
    super(`${what} is not enabled. Enabled are: ${enabled.join(', ') || 'none'}.`);
  }
}

/**
 * A reset leaves a conversation log, because the state module `conversation` is not enabled (FIX-46). HTTP 409. In the errors of the
 * result; the modules that are enabled are cleared.
 */
export class ConversationNotResetError extends SessionsError {
  readonly code = 'CONVERSATION_NOT_RESET';

  constructor() {
    super(
      'There is a conversation log, which was not reset: the state module conversation is not enabled. Add conversation to ' +
        'state.modules and reset again, or erase the session.',
    );
  }
}

/**
 * A hook of a state module of the application did not finish within `state.hookTimeoutMs` (FIX-46). HTTP 504. The result is dropped; a
 * `reset` or `compact` that ignores its signal may still take effect.
 */
export class StateModuleTimeoutError extends SessionsError {
  readonly code = 'STATE_MODULE_TIMEOUT';

  constructor(
    readonly module: string,
    readonly hook: StateHook,
    /** Milliseconds. */
    readonly timeoutMs: number,
  ) {
    super(
      `The hook ${hook} of the state module ${module} did not finish within ${timeoutMs} ms; its result is dropped. Make the hook ` +
        'faster, or increase state.hookTimeoutMs.',
    );
  }
}
