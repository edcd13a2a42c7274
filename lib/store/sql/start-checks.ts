import { SessionsConfigurationError, StoreUnavailableError } from '../../common/sessions.error.js';

/** Ends the message of the errors of servers that {@link asStartError} and the checks of the stores create. */
export const SKIP = 'To start without these checks, set checkServer: false.';

/**
 * Converts a missing table, function or privilege, which no retry adds, to an error that ends the start (FIX-65).
 * @param file the SQLite database, whose start no option can pass over
 */
export function asStartError(error: unknown, file?: string): unknown {
  if (!(error instanceof StoreUnavailableError) || error.reason !== 'deployment') return error;
  const end = file === undefined ? SKIP : `The file: ${file}.`;
  return new SessionsConfigurationError(`typeormAdapter: ${error.message} ${end}`, { cause: error.cause });
}

/** Returns the error for a setting of the server, which names the setting, its value and the cure. */
export function settingError(setting: string, value: string, cure: string): SessionsConfigurationError {
  return new SessionsConfigurationError(`typeormAdapter: ${setting} is ${value}. ${cure} ${SKIP}`);
}
