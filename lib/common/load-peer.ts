import { createRequire } from 'node:module';
import { SessionsConfigurationError } from './sessions.error.js';

const require = createRequire(import.meta.url);

/**
 * Loads a package that only some users need.
 * @throws SessionsConfigurationError with the command that installs it, when it is missing (NST-04)
 */
export async function loadPeer<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw explained(name, error);
  }
}

/** As {@link loadPeer}, for functions that cannot wait. */
export function requirePeer(name: string): unknown {
  try {
    return require(name) as unknown;
  } catch (error) {
    throw explained(name, error);
  }
}

/** For what only adds something where the package can be loaded: `null` where it cannot. */
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
  // The package may be there and lack something itself.
  if (!missing || !message.includes(`'${name}'`)) return error;
  return new SessionsConfigurationError(
    `The package ${name} is needed here and is not installed. Run: npm install ${name}`,
    { cause: error },
  );
}
