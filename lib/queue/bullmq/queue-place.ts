import { isPlainObject } from '../../common/json.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';

/**
 * Without this, an environment variable that is not set would mean the server of this machine.
 * @param where the connection comes from, as errors name it
 */
export function assertUrlIsSet(connection: unknown, where: string): void {
  if (!isPlainObject(connection)) return;
  for (const field of ['url', 'connectionString']) {
    const value = connection[field];
    if (!Object.hasOwn(connection, field) || (value !== undefined && value !== '')) continue;
    throw new SessionsConfigurationError(
      `${where}: connection.${field} is ${value === '' ? 'empty' : 'undefined'}; give it a URL, or leave it out. Is its environment variable set?`,
    );
  }
}

/** `host:port` as a log may say it, so never a user or a password; `undefined` where the options name neither. */
export function placeOf(connection: unknown, defaultPort: number): string | undefined {
  if (!isPlainObject(connection)) return undefined;
  const { url, connectionString = url } = connection;
  const { host, port } = typeof connectionString === 'string' ? hostAndPort(connectionString) : connection;
  const name = typeof host === 'string' ? host : '';
  const number = Number(port) || 0;
  return name === '' && number === 0 ? undefined : `${name || 'localhost'}:${number || defaultPort}`;
}

/** A text that is no URL may be a password. */
function hostAndPort(url: string): { readonly host?: unknown; readonly port?: unknown } {
  if (!URL.canParse(url)) return {};
  const { hostname: host, port } = new URL(url);
  return { host, port };
}
