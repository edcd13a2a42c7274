import { SessionsConfigurationError } from './sessions.error.js';

/**
 * Loads a package that only some users need.
 * @throws SessionsConfigurationError with the command that installs it, when it is missing (NST-04)
 */
export async function loadPeer<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND';
    if (!missing) throw error;
    throw new SessionsConfigurationError(
      `The package ${name} is needed here and is not installed. Run: npm install ${name}`,
      {
        cause: error,
      },
    );
  }
}
