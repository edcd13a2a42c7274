import { SessionsConfigurationError } from './sessions.error.js';

/**
 * Refuses what the options do not have: a slip of the pen would otherwise mean the default.
 * @param known every key of the options
 * @param path of the options before their keys, as errors name it: `redisAdapter: `
 * @throws SessionsConfigurationError
 */
export function assertKnownKeys<Options extends object>(
  options: Options,
  known: Readonly<Record<keyof Required<Options>, true>>,
  path: string,
): void {
  const unknown = Object.keys(options).find((key) => !Object.hasOwn(known, key));
  if (unknown === undefined) return;
  throw new SessionsConfigurationError(
    `${path}${unknown} is not a known key. There are: ${Object.keys(known).join(', ')}.`,
  );
}
