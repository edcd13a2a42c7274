import { checkInput } from '../../common/check-input.js';
import { addressOf, type HttpRequest } from './http-request.js';

/**
 * The query of an address, checked by the rules of `type`, whatever the application's parser makes of queries. A key that comes
 * several times is a list.
 * @param numbers the keys whose digits are a number
 * @throws InvalidInputError
 */
export function readQuery<T extends object>(type: new () => T, request: HttpRequest, numbers: readonly string[]): T {
  const [, query = ''] = addressOf(request).split(/\?(.*)/s);
  const pairs = new URLSearchParams(query);
  const values = [...new Set(pairs.keys())].map((key): [string, unknown] => {
    const given = pairs.getAll(key);
    if (given.length > 1) return [key, given];
    return [key, numbers.includes(key) && /^\d{1,16}$/.test(given[0]) ? Number(given[0]) : given[0]];
  });
  return checkInput(type, Object.fromEntries(values), 'query');
}
