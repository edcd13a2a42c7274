import { SessionsError } from '../common/sessions.error.js';

/**
 * What a turn was to write belongs to an epoch that is over: these namespaces were reset since it began (STA-23). Seen by workers,
 * which settle the turn without it, never by callers of a turn.
 */
export class StateResetError extends SessionsError {
  readonly code = 'STATE_RESET';

  constructor(
    readonly sessionId: string,
    readonly namespaces: readonly string[],
  ) {
    super(`State was reset since the turn began: ${namespaces.join(', ')}; nothing was written.`);
  }
}

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
  ) {
    super(`The state module ${module} is not enabled. Enabled are: ${enabled.join(', ') || 'none'}.`);
  }
}
