import { inspect } from 'node:util';
import { validateInput } from './check-input.js';
import { isPlainObject } from './json.js';
import { SessionsConfigurationError } from './sessions.error.js';

/**
 * Checks a part of the module's options; left out is fine, `null` is not.
 * @param path of the part, empty for the whole
 * @throws SessionsConfigurationError naming the option, its value and what is allowed (NST-03)
 */
export function checkOptions<T extends object>(type: new () => T, path: string, options: unknown = {}): T {
  const checked = validateInput(type, options, path);
  if ('value' in checked) return checked.value;
  const { path: option, value, rule } = checked.problem;
  const name = option === '' ? 'The options' : `The option ${option}`;
  throw new SessionsConfigurationError(`SessionsModule: ${name} ${rule} It is ${shown(value)}.`);
}

/** A value as an error may tell it. */
export function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  // Instances may hold what must not be logged, a connection's password for one.
  if (typeof value === 'object' && value !== null && !isPlainObject(value) && !Array.isArray(value)) {
    return `an instance of ${value.constructor.name}`;
  }
  // Not JSON, which makes null of NaN and fails on bigints and cycles.
  return inspect(value, { depth: 1, breakLength: Infinity, maxStringLength: 200, maxArrayLength: 20 });
}
