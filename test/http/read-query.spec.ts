import { checkInput, Must, MustBeInteger, Optional } from '../../lib/common/check-input.js';
import { readQuery } from '../../lib/http/controllers/http-request.js';
import { expectLinear } from '../support/linear-cost.js';

let validated = 0;

class Query {
  @Optional()
  @MustBeInteger(1, 200)
  limit?: number;

  @Optional()
  @Must(() => (validated += 1) > 0, 'is never wrong.')
  state?: string | string[];
}

const read = (query: string): Query =>
  readQuery(Query, { headers: {}, method: 'GET', url: `/list?${query}` }, ['limit']);

describe('readQuery', () => {
  beforeEach(() => {
    validated = 0;
  });

  it('FIX-51 reads values, numbers and lists', () => {
    expect({ ...read('limit=20&state=a%20b') }).toEqual({ limit: 20, state: 'a b' });
    expect({ ...read('state=a&limit=1&state=b&state=') }).toEqual({ limit: 1, state: ['a', 'b', ''] });
    expect({ ...read('') }).toEqual({});
  });

  it.each(['state=a&x=1', 'x=1&state=a', 'limit=x&x=1&state=a', '__proto__=1&state=a', 'constructor=1&state=a'])(
    'FIX-51 rejects an unknown key before it validates a value: %s',
    (query) => {
      expect(() => read(query)).toThrow(/^query\.(x|__proto__|constructor) is not a known key\./);
      expect(validated).toBe(0);
    },
  );

  it('FIX-51 costs linear time for unknown keys', () => {
    const query = (size: number) => Array.from({ length: size }, (_, n) => `k${n}`).join('&');
    expectLinear((size) => {
      const asked = query(size);
      return () => expect(() => read(asked)).toThrow('is not a known key');
    });
  });

  it('FIX-51 costs linear time for a known key that is repeated many times', () => {
    expectLinear((size) => {
      const asked = 'state=a&'.repeat(size);
      return () => expect(read(asked).state).toHaveLength(size);
    });
  });
});

describe('checkInput', () => {
  it('FIX-51 reads only the value of the first unknown key', () => {
    const fields: Record<string, unknown> = { state: 'a', first: 1 };
    for (let n = 0; n < 1000; n += 1) fields[`k${n}`] = n;
    const values: PropertyKey[] = [];
    const input = new Proxy(fields, {
      get: (of, key) => {
        if (typeof key === 'string') values.push(key);
        return Reflect.get(of, key) as unknown;
      },
    });

    expect(() => checkInput(Query, input, 'body')).toThrow('body.first is not a known key.');
    expect(values).toEqual(['first']);
  });

  it('FIX-51 costs linear time for unknown keys', () => {
    expectLinear((size) => {
      const input = Object.fromEntries(Array.from({ length: size }, (_, n) => [`k${n}`, n]));
      return () => expect(() => checkInput(Query, input, 'body')).toThrow('is not a known key');
    });
  });
});
