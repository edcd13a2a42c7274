import { stringifyWithin, toJson, toJsonObject } from '../../common/json.js';
import { InvalidInputError } from '../../common/sessions.error.js';
import { type StateOperation } from '../../state/state-report.js';
import {
  CompactStateRequest,
  DescribeStateRequest,
  ResetStateRequest,
  type StateRequest,
} from '../../state/state-request.js';
import { type HttpRequest, readBody } from '../controllers/http-request.js';

const MAX_BYTES = 65_536;

const TYPES = { describe: DescribeStateRequest, reset: ResetStateRequest, compact: CompactStateRequest } as const;

/**
 * Reads and validates the request in a body.
 * @throws InvalidInputError, StateSerializationError, TooLargeError
 */
export function readRequest(operation: StateOperation, http: HttpRequest): StateRequest {
  const request = readBody<StateRequest>(TYPES[operation], http);
  if (request.metadata !== undefined) toJsonObject(request.metadata, 'body.metadata');
  stringifyWithin(toJson(http.body, 'body'), MAX_BYTES, 'The body');
  assertScope(operation, request);
  return request;
}

function assertScope(operation: StateOperation, request: StateRequest): void {
  const { sessionId, all = false } = request as ResetStateRequest;
  if (operation === 'compact' && sessionId === undefined)
    throw new InvalidInputError('body.sessionId', 'is missing. Add it to the request.');
  if (operation === 'reset' && all === (sessionId !== undefined)) {
    throw new InvalidInputError('body', 'must have either a sessionId or all: true.');
  }
}
