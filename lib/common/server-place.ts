import { commonMessages } from './common.messages.js';
import { isPlainObject } from './json.js';
import { SessionsConfigurationError } from './sessions.error.js';

const URLS = ['url', 'connectionString'];
/** Options besides `url` that identify a server. */
const PLACES = ['host', 'path', 'socketPath', 'sentinels', 'nodes'];

/**
 * Rejects an undefined URL. Otherwise an unset environment variable would select the server on this machine.
 * @param path the prefix in errors, for example `bullmqQueue: connection.`
 */
export function assertUrlIsSet(connection: unknown, path: string): void {
  if (!isPlainObject(connection)) return;
  if ([...URLS, ...PLACES].some((field) => connection[field] !== undefined && connection[field] !== '')) return;
  const field = URLS.find((name) => Object.hasOwn(connection, name));
  if (field === undefined) return;
  throw new SessionsConfigurationError(commonMessages.urlNotSet(path + field, connection[field] === ''));
}

/**
 * Returns `host:port` for logs, with `/database` if the options name one, and never a user or a password. Returns
 * `undefined` if the options name no server.
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

/** Parses a URL. A string that is not a URL may be a password. */
function partsOf(url: string): { readonly host?: unknown; readonly port?: unknown; readonly database?: unknown } {
  if (!URL.canParse(url)) return {};
  const { hostname: host, port, pathname, search, hash } = new URL(url);
  // A password that contains a slash looks like the end of the host.
  if ([pathname, search, hash].some((part) => part.includes('@'))) return {};
  return { host, port, database: pathname.slice(1) };
}
