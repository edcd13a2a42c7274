import { createRequire } from 'node:module';
import { SessionsConfigurationError } from './sessions.error.js';

const require = createRequire(import.meta.url);

/**
 * Loads an optional package.
 * @throws SessionsConfigurationError with the command to install it, if it is missing (NST-04)
 */
export async function loadPeer<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw explained(name, error);
  }
}

/** Works like {@link loadPeer}, synchronously. */
export function requirePeer(name: string): unknown {
  try {
    return require(name) as unknown;
  } catch (error) {
    throw explained(name, error);
  }
}

/** Returns a package if it can be loaded, or `null`. For optional features. */
export function optionalPeer(name: string): unknown {
  try {
    return require(name) as unknown;
  } catch {
    return null;
  }
}

function explained(name: string, error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  const missing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  // The package may exist but miss a dependency.
  if (!missing || !message.includes(`'${name}'`)) return error;
  return new SessionsConfigurationError(
    `The package ${name} is required but not installed. Run: npm install ${name}.`,
    { cause: error },
  );
}
