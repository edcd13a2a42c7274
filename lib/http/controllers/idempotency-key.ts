import { InvalidInputError } from '../../common/sessions.error.js';
import { type HttpRequest } from './http-request.js';

/** The request's Idempotency-Key. @throws InvalidInputError for a malformed one, and for several */
export function idempotencyKeyOf({ headers }: HttpRequest): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined || (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key))) return key;
  throw new InvalidInputError('Idempotency-Key', 'must be 1 to 255 visible ASCII characters without spaces.');
}
