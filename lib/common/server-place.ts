import { isPlainObject } from './json.js';
import { SessionsConfigurationError } from './sessions.error.js';

const URLS = ['url', 'connectionString'];
/** What else says where a server is. */
const PLACES = ['host', 'path', 'socketPath', 'sentinels', 'nodes'];

/**
 * Without this, an environment variable that is not set would mean the server of this machine.
 * @param path of the connection before its fields, as errors name it: `bullmqQueue: connection.`
 */
export function assertUrlIsSet(connection: unknown, path: string): void {
  if (!isPlainObject(connection)) return;
  if ([...URLS, ...PLACES].some((field) => connection[field] !== undefined && connection[field] !== '')) return;
  const field = URLS.find((name) => Object.hasOwn(connection, name));
  if (field === undefined) return;
  throw new SessionsConfigurationError(
    `${path}${field} is ${connection[field] === '' ? 'empty' : 'undefined'}; give it a URL, or leave it out. Is its environment variable set?`,
  );
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
  const { hostname: host, port, pathname, search, hash } = new URL(url);
  // A password with a slash in it looks like the end of the server.
  if ([pathname, search, hash].some((part) => part.includes('@'))) return {};
  return { host, port, database: pathname.slice(1) };
}
