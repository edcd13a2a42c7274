import { createRequire } from 'node:module';
import { SessionsConfigurationError } from './sessions.error.js';

let requireHere: NodeJS.Require | undefined;

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

/**
 * Loads an installed package when it is needed, synchronously. Bundlers cannot see this: the package must stay external.
 * @throws the error of `require`
 */
export function requireInstalled(name: string): unknown {
  // In a CommonJS bundle, `import.meta.url` is empty or the path of the source, and `__filename` exists (FIX-74).
  requireHere ??= createRequire(typeof __filename === 'string' ? __filename : import.meta.url);
  return requireHere(name) as unknown;
}

/** Works like {@link loadPeer}, synchronously. */
export function requirePeer(name: string): unknown {
  try {
    return requireInstalled(name);
  } catch (error) {
    throw explained(name, error);
  }
}

/** Returns a package if it can be loaded, or `null`. For optional features. */
export function optionalPeer(name: string): unknown {
  try {
    return requireInstalled(name);
  } catch {
    return null;
  }
}

function explained(name: string, error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  const missing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
  // The package may exist but miss a dependency.
  if (!missing || !message.includes(`'${name}'`)) return error;
  return missingPeer(name, error);
}

/** Returns the error for a package that is not installed, with the command to install it. */
export function missingPeer(name: string, cause: unknown): SessionsConfigurationError {
  return new SessionsConfigurationError(
    `The package ${name} is required but not installed. Run: npm install ${name}.`,
    { cause },
  );
}
