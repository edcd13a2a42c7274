import { checkInput } from '../../common/check-input.js';
import { isPlainObject, stringifyWithin, toJson, toJsonObject } from '../../common/json.js';
import { InvalidInputError } from '../../common/sessions.error.js';
import { type StateOperation } from '../../state/state-report.js';
import {
  CompactStateRequest,
  DescribeStateRequest,
  ResetStateRequest,
  type StateRequest,
} from '../../state/state-request.js';
import { type StateHttpRequest } from './state-call.js';
import { UnsupportedMediaTypeError } from './state-http.errors.js';

const MAX_BYTES = 65_536;
const MAX_DEPTH = 100;
const PROTOTYPE_KEYS = ['__proto__', 'constructor', 'prototype'];

const TYPES = { describe: DescribeStateRequest, reset: ResetStateRequest, compact: CompactStateRequest } as const;

/**
 * The request in a body, whatever the application's parsers and pipes make of bodies.
 * @throws UnsupportedMediaTypeError, InvalidInputError, StateSerializationError, TooLargeError
 */
export function readRequest(operation: StateOperation, { headers, body }: StateHttpRequest): StateRequest {
  // A form could come from another site's page.
  const type = headers['content-type'];
  if (type !== undefined && !/^application\/json\s*(;|$)/i.test(String(type))) throw new UnsupportedMediaTypeError();
  if (type === undefined || !isPlainObject(body) || isNoBody(headers, body)) {
    throw new InvalidInputError('body', 'must be a JSON object; an empty one must come with its length.');
  }
  assertPlain(body, 0);
  const request: StateRequest = checkInput(TYPES[operation], body, 'body');
  if (request.metadata !== undefined) toJsonObject(request.metadata, 'body.metadata');
  stringifyWithin(toJson(body, 'body'), MAX_BYTES, 'The body');
  assertScope(operation, request);
  return request;
}

/** Parsers make `{}` of no body at all. */
function isNoBody(headers: StateHttpRequest['headers'], body: object): boolean {
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

function assertScope(operation: StateOperation, request: StateRequest): void {
  const { sessionId, all = false } = request as ResetStateRequest;
  if (operation === 'compact' && sessionId === undefined)
    throw new InvalidInputError('body.sessionId', 'must be given.');
  if (operation === 'reset' && all === (sessionId !== undefined)) {
    throw new InvalidInputError('body', 'must have either a sessionId or all: true.');
  }
}
