import { checkInput } from '../../common/check-input.js';
import { isFields } from '../../common/json.js';
import { InvalidInputError } from '../../common/sessions.error.js';
import { UnsupportedMediaTypeError } from '../http.errors.js';
import { type HttpRequest } from './http-request.js';

const MAX_DEPTH = 100;
const PROTOTYPE_KEYS = ['__proto__', 'constructor', 'prototype'];

/**
 * The JSON object in a body, checked by the rules of `type`, whatever the application's parsers and pipes make of bodies.
 * @throws UnsupportedMediaTypeError, InvalidInputError
 */
export function readBody<T extends object>(type: new () => T, { headers, body }: HttpRequest): T {
  // A form, or a request without a body, could come from another site's page: only JSON makes a browser ask first.
  const media = headers['content-type'];
  if (media !== undefined && !/^application\/json\s*(;|$)/i.test(String(media))) throw new UnsupportedMediaTypeError();
  if (media === undefined || !isFields(body) || isNoBody(headers, body)) {
    throw new InvalidInputError(
      'body',
      'must be a JSON object. Send at least {} with Content-Type: application/json and its Content-Length.',
    );
  }
  assertPlain(body, 0);
  return checkInput(type, body, 'body');
}

/** Parsers make `{}` of no body at all. */
function isNoBody(headers: HttpRequest['headers'], body: object): boolean {
  if (Object.keys(body).length > 0) return false;
  return !(Number(headers['content-length']) > 0) || headers['content-encoding'] !== undefined;
}

/** Keys that could reach a prototype are dropped elsewhere; who sends them here is told so. */
function assertPlain(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > MAX_DEPTH) throw new InvalidInputError('body', `is nested more than ${MAX_DEPTH} levels deep.`);
  for (const [key, item] of Object.entries(value)) {
    if (PROTOTYPE_KEYS.includes(key)) throw new InvalidInputError('body', `must not have a key named ${key}.`);
    assertPlain(item, depth + 1);
  }
}
