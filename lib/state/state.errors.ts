import { SessionsError } from '../common/sessions.error.js';
import { type StateHook } from './state-module.js';
import { stateMessages } from './state.messages.js';

/** Concurrent changes prevented the update in every attempt (ORC-05). HTTP 409, without any change. */
export class StateConflictError extends SessionsError {
  static override readonly codes = ['STATE_CONFLICT'];
  readonly code = 'STATE_CONFLICT';

  constructor(
    readonly sessionId: string,
    readonly attempts: number,
  ) {
    super(stateMessages.conflict(attempts));
  }
}

/** @inline */
type StateModuleErrorDetails = Partial<Pick<StateModuleError, 'enabled' | 'hook' | 'timeoutMs'>>;

/**
 * A state module cannot do what a call asks for.
 *
 * - `STATE_MODULE_DISABLED`: a module that is not enabled was used; see `state.modules`, and `stateModules` of `forFeature`. HTTP 500,
 * - `CONVERSATION_NOT_RESET`: a reset kept a conversation log, because the module `conversation` is not enabled (FIX-46). HTTP 409. Part
 *   of the errors of the result; the enabled modules are cleared,
 * - `STATE_MODULE_TIMEOUT`: a hook of a custom module did not finish within `state.hookTimeoutMs` (FIX-46). HTTP 504. The result is
 *   discarded; a `reset` or `compact` that ignores its signal may still take effect.
 */
export class StateModuleError extends SessionsError {
  static override readonly codes = ['CONVERSATION_NOT_RESET', 'STATE_MODULE_DISABLED', 'STATE_MODULE_TIMEOUT'] as const;

  /** The modules that are enabled (`STATE_MODULE_DISABLED`). */
  readonly enabled?: readonly string[];
  /** The hook that took too long (`STATE_MODULE_TIMEOUT`). */
  readonly hook?: StateHook;
  /** The limit in milliseconds (`STATE_MODULE_TIMEOUT`). */
  readonly timeoutMs?: number;

  /** @hidden */
  constructor(
    readonly code: (typeof StateModuleError.codes)[number],
    readonly module: string,
    message: string,
    details: StateModuleErrorDetails = {},
  ) {
    super(message);
    Object.assign(this, details);
  }
}

/** @param use the feature that requires the module. Default: the module was used directly */
export function moduleDisabled(module: string, enabled: readonly string[], use?: string): StateModuleError {
  const message = stateMessages.moduleDisabled(module, enabled, use);
  return new StateModuleError('STATE_MODULE_DISABLED', module, message, { enabled });
}

export function conversationNotReset(): StateModuleError {
  return new StateModuleError('CONVERSATION_NOT_RESET', 'conversation', stateMessages.conversationNotReset());
}

export function moduleTimeout(module: string, hook: StateHook, timeoutMs: number): StateModuleError {
  const message = stateMessages.moduleTimeout(module, hook, timeoutMs);
  return new StateModuleError('STATE_MODULE_TIMEOUT', module, message, { hook, timeoutMs });
}
