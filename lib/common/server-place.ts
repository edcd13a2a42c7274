import { isPlainObject } from './json.js';
import { SessionsConfigurationError } from './sessions.error.js';

/**
 * Without this, an environment variable that is not set would mean the server of this machine.
 * @param path of the connection before its fields, as errors name it: `bullmqQueue: connection.`
 */
export function assertUrlIsSet(connection: unknown, path: string): void {
  if (!isPlainObject(connection)) return;
  for (const field of ['url', 'connectionString']) {
    const value = connection[field];
    if (!Object.hasOwn(connection, field) || (value !== undefined && value !== '')) continue;
    throw new SessionsConfigurationError(
      `${path}${field} is ${value === '' ? 'empty' : 'undefined'}; give it a URL, or leave it out. Is its environment variable set?`,
    );
  }
}

/**
 * `host:port`, with `/database` where the options name one, as a log may say it: never a user or a password. `undefined` where
 * the options name no server.
 */
export function serverPlace(connection: unknown, defaultPort: number): string | undefined {
  if (!isPlainObject(connection)) return undefined;
  const { url, connectionString = url } = connection;
  const { host, port, database } = typeof connectionString === 'string' ? partsOf(connectionString) : connection;
  const name = typeof host === 'string' ? host : '';
  const number = Number(port) || 0;
  if (name === '' && number === 0) return undefined;
  const path = typeof database === 'string' && database !== '' ? `/${database}` : '';
  return `${name || 'localhost'}:${number || defaultPort}${path}`;
}

/** A text that is no URL may be a password. */
function partsOf(url: string): { readonly host?: unknown; readonly port?: unknown; readonly database?: unknown } {
  if (!URL.canParse(url)) return {};
  const { hostname: host, port, pathname } = new URL(url);
  return { host, port, database: pathname.slice(1) };
}
