import { types } from 'node:util';

/** The fields of an error that this package reads. */
const FIELDS = ['name', 'code', 'stack', 'cause', 'lastError', 'permanent', 'retryAfterMs', 'responseHeaders'] as const;

/** Reads a field of a thrown value of any kind. @returns `undefined` also if its getter throws */
export function fieldOf(thrown: unknown, field: PropertyKey): unknown {
  if ((typeof thrown !== 'object' || thrown === null) && typeof thrown !== 'function') return undefined;
  try {
    return (thrown as Record<PropertyKey, unknown>)[field];
  } catch {
    return undefined;
  }
}

/**
 * Returns a thrown value, or an error with the same fields in place of a proxy: even `instanceof` can run code of a proxy,
 * which may throw (FIX-91). The other functions that read errors use {@link fieldOf}, because getters may throw as well.
 */
export function withoutProxy(thrown: unknown): unknown {
  if (!isProxied(thrown)) return thrown;
  const message = fieldOf(thrown, 'message');
  const error = new Error(typeof message === 'string' ? message : 'The thrown value is a proxy.');
  for (const field of FIELDS) {
    const value = fieldOf(thrown, field);
    if (value !== undefined) Object.defineProperty(error, field, { value });
  }
  return error;
}

/** Returns true if the value or one of its prototypes is a proxy. */
function isProxied(value: unknown): boolean {
  for (let each = value; (typeof each === 'object' && each !== null) || typeof each === 'function';) {
    if (types.isProxy(each)) return true;
    each = Object.getPrototypeOf(each) as unknown;
  }
  return false;
}
