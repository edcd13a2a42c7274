import { type IncomingHttpHeaders } from 'node:http';
import { assertKnownKey, checkInput } from '../../common/check-input.js';
import { isFields } from '../../common/json.js';
import { InvalidInputError } from '../../common/sessions.error.js';
import { unsupportedMediaType } from '../http.errors.js';

/** The part of a request that the controllers of this package read. */
export interface HttpRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body?: unknown;
  readonly method: string;
  readonly params?: Readonly<Record<string, string>>;
  readonly url: string;
  /** The original URL in Express, before routers shortened it. */
  readonly originalUrl?: string;
}

/** Returns the requested path and query. */
export function addressOf({ url, originalUrl = url }: HttpRequest): string {
  return originalUrl;
}

/**
 * Parses and validates the query of a URL by the rules of `type`, independent of the application's query parser. A
 * repeated key becomes a list. Takes linear time and stops at the first unknown key.
 * @param numbers keys whose digits are parsed as numbers
 * @throws InvalidInputError
 */
export function readQuery<T extends object>(type: new () => T, request: HttpRequest, numbers: readonly string[]): T {
  const [, query = ''] = addressOf(request).split(/\?(.*)/s);
  const given = new Map<string, string[]>();
  for (const [key, value] of new URLSearchParams(query)) {
    assertKnownKey(type, key, 'query');
    const values = given.get(key);
    if (values) values.push(value);
    else given.set(key, [value]);
  }
  const read = [...given].map(([key, values]): [string, unknown] => {
    const [first] = values;
    if (values.length > 1) return [key, values];
    return [key, numbers.includes(key) && /^-?\d{1,16}$/.test(first) ? Number(first) : first];
  });
  return checkInput(type, Object.fromEntries(read), 'query');
}

/**
 * Returns the request's Idempotency-Key.
 * @throws InvalidInputError if it is malformed or repeated
 */
export function readIdempotencyKey({ headers }: HttpRequest): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined || (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key))) return key;
  throw new InvalidInputError('Idempotency-Key', 'must be 1 to 255 visible ASCII characters without spaces.');
}

const MAX_DEPTH = 100;

/**
 * Validates the JSON object of a body by the rules of `type`, independent of the application's parsers and pipes.
 * @throws InvalidInputError
 */
export function readBody<T extends object>(type: new () => T, { headers, body }: HttpRequest): T {
  // A page of another site can send a form or an empty body. Only JSON makes the browser send a preflight request.
  const media = headers['content-type'];
  if (media !== undefined && !/^application\/json\s*(;|$)/i.test(String(media))) throw unsupportedMediaType();
  if (media === undefined || !isFields(body) || isNoBody(headers, body)) {
    throw new InvalidInputError(
      'body',
      'must be a JSON object. Send at least {} with Content-Type: application/json and its Content-Length.',
    );
  }
  assertPlain(body, 0);
  return checkInput(type, body, 'body');
}

/** Returns whether the request has no body, for which parsers return `{}`. */
function isNoBody(headers: HttpRequest['headers'], body: object): boolean {
  if (Object.keys(body).length > 0) return false;
  return !(Number(headers['content-length']) > 0) || headers['content-encoding'] !== undefined;
}

/** Rejects the key `__proto__`, and JSON that is nested too deep. @throws InvalidInputError */
export function assertPlain(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > MAX_DEPTH) throw new InvalidInputError('body', `must not be nested more than ${MAX_DEPTH} levels deep.`);
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') throw new InvalidInputError('body', `must not have a key named ${key}.`);
    assertPlain(item, depth + 1);
  }
}
