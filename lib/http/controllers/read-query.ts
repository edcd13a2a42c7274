import { assertKnownKey, checkInput } from '../../common/check-input.js';
import { addressOf, type HttpRequest } from './http-request.js';

/**
 * The query of an address, checked by the rules of `type`, whatever the application's parser makes of queries. A key that comes
 * several times is a list. Costs linear time, and ends at the first key that `type` does not have.
 * @param numbers the keys whose digits are a number
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
    return [key, numbers.includes(key) && /^\d{1,16}$/.test(first) ? Number(first) : first];
  });
  return checkInput(type, Object.fromEntries(read), 'query');
}
