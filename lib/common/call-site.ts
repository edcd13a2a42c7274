import { StateSerializationError, TooLargeError } from './sessions.error.js';

/** The stack of a call of the application. It is captured at the call, and formatted when it is read. */
export interface CallSite {
  readonly stack?: string;
}

const FIRST_FRAME = '\n    at ';

/** @param call the function of this package; the stack begins with its caller. Default: the stack begins with the function that calls this one */
export function callSite(call: (...args: never[]) => unknown = callSite): CallSite {
  const site: CallSite = {};
  Error.captureStackTrace(site, call);
  return site;
}

/**
 * Gives an error about a value the stack of the call that passed the value (DAY-17). The value of a step or an outcome is
 * checked later, when the caller is not on the stack. Other errors are not changed.
 */
export function showAt(error: unknown, { stack }: CallSite): void {
  if (!(error instanceof StateSerializationError || error instanceof TooLargeError)) return;
  const frames = stack?.indexOf(FIRST_FRAME) ?? -1;
  if (stack === undefined || frames === -1) return;
  const value = `${error.name}: ${error.message}${stack.slice(frames)}`;
  Object.defineProperty(error, 'stack', { value, configurable: true, writable: true });
}
