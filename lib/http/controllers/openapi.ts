import { applyDecorators } from '@nestjs/common';
import { optionalPeer } from '../../common/load-peer.js';

export type Schema = Readonly<Record<string, unknown>>;

/** The part of @nestjs/swagger that is used. */
interface Swagger {
  readonly ApiTags: (tag: string) => MethodDecorator;
  readonly ApiOperation: (options: Schema) => MethodDecorator;
  readonly ApiHeader: (options: Schema) => MethodDecorator;
  readonly ApiParam: (options: Schema) => MethodDecorator;
  readonly ApiQuery: (options: Schema) => MethodDecorator;
  readonly ApiBody: (options: Schema) => MethodDecorator;
  readonly ApiResponse: (options: Schema) => MethodDecorator;
}

/** The OpenAPI description of a route. */
export interface RouteDoc {
  /** The tag of the controller. */
  readonly tag: string;
  readonly id: string;
  readonly summary: string;
  readonly headers?: readonly Schema[];
  readonly params?: readonly Schema[];
  readonly query?: readonly Schema[];
  readonly body?: Schema;
  /** Default: false. */
  readonly isBodyOptional?: boolean;
  /** The successful response. */
  readonly answer: { readonly status: number } & Schema;
  /** The descriptions of other statuses. */
  readonly refusals: Readonly<Record<number, string>>;
  /** The schema of their bodies. */
  readonly error: Schema;
}

export const text = (description: string): Schema => ({ type: 'string', description });
export const time = (description: string): Schema => ({ type: 'string', format: 'date-time', description });
export const flag = (description: string): Schema => ({ type: 'boolean', description });
export const count = (minimum: number, description: string): Schema => ({ type: 'integer', minimum, description });
export const anything = (description: string): Schema => ({ type: 'object', additionalProperties: true, description });
export const oneOf = (values: readonly string[]): Schema => ({ type: 'string', enum: values });
export const listOf = (items: Schema, description?: string): Schema => ({ type: 'array', items, description });
export const object = (properties: Schema, required: readonly string[] = Object.keys(properties)): Schema => ({
  type: 'object',
  properties,
  ...(required.length === 0 ? {} : { required }),
});
/** Returns the schema of an object without other keys. */
export const body = (properties: Schema, required: readonly string[] = []): Schema => ({
  ...object(properties, required),
  additionalProperties: false,
});
export const NAME: Schema = { type: 'string' };

export const ERROR = {
  statusCode: { type: 'integer' },
  code: text('Stable.'),
  message: NAME,
  sessionId: NAME,
  turnId: NAME,
  retryAfter: count(1, 'Seconds.'),
};
export const ERROR_KEYS: readonly string[] = ['statusCode', 'code', 'message'];
export const ERROR_SCHEMA = object(ERROR, ERROR_KEYS);

/** Error responses of every route. */
export const REFUSALS: Readonly<Record<number, string>> = {
  401: 'The request is not authenticated.',
  403: 'A guard rejected the request.',
  503: 'The store is unavailable. Retry later.',
};
/** Additional error responses of routes with a body. */
export const BODY_REFUSALS: Readonly<Record<number, string>> = {
  413: 'The body is too large.',
  415: 'The body is not JSON.',
};
/** Additional error responses of routes with an Idempotency-Key. */
export const KEY_REFUSALS: Readonly<Record<number, string>> = {
  422: 'The Idempotency-Key was already used for a different request.',
};

export const SESSION_HEADER: Schema = { name: 'x-session-id', required: true, description: 'The session id.' };
export const IDEMPOTENCY_HEADER: Schema = {
  name: 'Idempotency-Key',
  required: false,
  description: 'A key of 1 to 255 visible ASCII characters. A retry with the same key is not executed again.',
};

/** Describes a handler to @nestjs/swagger, if it is installed. */
export function documented(doc: RouteDoc): MethodDecorator {
  const swagger = optionalPeer('@nestjs/swagger') as Swagger | null;
  if (!swagger) return applyDecorators();
  const { ApiTags, ApiOperation, ApiHeader, ApiParam, ApiQuery, ApiBody, ApiResponse } = swagger;
  const { tag, id, summary, headers = [], params = [], query = [], answer, refusals, error } = doc;
  const required = doc.isBodyOptional !== true;
  return applyDecorators(
    ApiTags(tag),
    ApiOperation({ summary, operationId: id }),
    ...headers.map(ApiHeader),
    ...params.map(ApiParam),
    ...query.map(ApiQuery),
    ...(doc.body ? [ApiBody({ schema: doc.body, required })] : []),
    ApiResponse(answer),
    ...Object.entries(refusals).map(([status, description]) =>
      ApiResponse({ status: Number(status), description, schema: error }),
    ),
  );
}
