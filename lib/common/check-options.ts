import { inspect } from 'node:util';
import { validateInput } from './check-input.js';
import { isPlainObject } from './json.js';
import { unknownKeyRule } from './known-keys.js';
import { SessionsConfigurationError } from './sessions.error.js';

/**
 * Validates a part of the module's options. It may be undefined but not `null`.
 * @param path the path of the part; empty for the root
 * @param others keys that are allowed as well but checked elsewhere, for the message about an unknown key
 * @throws SessionsConfigurationError naming the option, its value and what is allowed (NST-03)
 */
export function checkOptions<T extends object>(
  type: new () => T,
  path: string,
  options: unknown = {},
  others: readonly string[] = [],
): T {
  const checked = validateInput(type, options, path, others);
  if ('value' in checked) return checked.value;
  const { path: option, value, rule } = checked.problem;
  const name = option === '' ? 'The options' : `The option ${option}`;
  throw new SessionsConfigurationError(`SessionsModule: ${name} ${rule} Received: ${shown(value)}.`);
}

/** Formats a value for an error message, without the passwords of a connection. */
export function shown(value: unknown): string {
  if (typeof value === 'function') return 'a function';
  if (isInstance(value)) return `an instance of ${value.constructor.name}`;
  const depth = isPlainObject(value) && Object.values(value).some(isInstance) ? 0 : 1;
  // JSON would turn NaN into null and fail on bigints and cycles.
  return inspect(withoutSecrets(value), { depth, breakLength: Infinity, maxStringLength: 200, maxArrayLength: 20 });
}

/** Hides strings in objects, and the user and password of a URL. Keeps cycles. */
function withoutSecrets(value: unknown, copies = new Map<unknown, unknown>()): unknown {
  if (typeof value === 'string') return value.replace(/\/\/[^/@\s]*@/g, '//***@');
  const isList = Array.isArray(value);
  if (!isList && !isPlainObject(value)) return value;
  if (copies.has(value)) return copies.get(value);
  const copy = (isList ? [] : {}) as Record<string, unknown>;
  copies.set(value, copy);
  for (const [key, field] of Object.entries(value)) {
    copy[key] = typeof field === 'string' && !isList ? '***' : withoutSecrets(field, copies);
  }
  return copy;
}

/** Returns whether a value must be named only: instances may contain secrets, for example the password of a connection. */
function isInstance(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !isPlainObject(value) && !Array.isArray(value);
}

/**
 * Rejects unknown options. Otherwise a typing error would silently select the default.
 * @param known every key of the options
 * @param path the prefix of the keys in error messages, for example `redisAdapter: `
 * @param cure the last sentence of the message. Default: none
 * @throws SessionsConfigurationError
 */
export function assertKnownKeys<Options extends object>(
  options: Options,
  known: Readonly<Record<keyof Required<Options>, true>>,
  path: string,
  cure?: string,
): void {
  const unknown = Object.keys(options).find((key) => !Object.hasOwn(known, key));
  if (unknown === undefined) return;
  const advice = cure === undefined ? '' : ` ${cure}`;
  throw new SessionsConfigurationError(`${path}${unknown} ${unknownKeyRule(unknown, Object.keys(known))}${advice}`);
}
