import fc from 'fast-check';
import { STATE_CAPABILITIES } from 'nestjs-agent-sessions/http';

type Headers = Readonly<Record<string, string>>;

/** Characters that HTTP allows in headers. */
export const headerText = fc
  .array(fc.integer({ min: 0x20, max: 0xff }), { maxLength: 30 })
  .map((codes) => String.fromCharCode(...codes.filter((code) => code < 0x7f || code > 0x9f)));

export const identity = fc.oneof(
  { weight: 6, arbitrary: fc.constant({ 'x-user-id': 'ann', 'x-capabilities': STATE_CAPABILITIES.join(' ') }) },
  {
    weight: 3,
    arbitrary: fc
      .record(
        {
          'x-user-id': fc.constantFrom('ann', 'bob', 'olga'),
          'x-workspace-id': fc.constantFrom('acme', 'other'),
          'x-capabilities': fc.subarray([...STATE_CAPABILITIES, 'state', '*']).map((some) => some.join(' ')),
        },
        { requiredKeys: [] },
      )
      .map((headers) => headers as Record<string, string>),
  },
);

export const contentType = fc.oneof(
  { weight: 12, arbitrary: fc.constant({ 'content-type': 'application/json' }) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(
        'application/json; charset=utf-8',
        'application/json;charset=utf-16',
        'application/json; charset=koi8-x',
        'APPLICATION/JSON',
        'application/jsonp',
        'application/problem+json',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'multipart/form-data',
        'text/plain',
        '*/*',
        ';',
        '',
      )
      .map((type) => ({ 'content-type': type })),
  },
  { weight: 1, arbitrary: headerText.map((type) => ({ 'content-type': type })) },
  { weight: 1, arbitrary: fc.constant({}) },
);

const others = fc.record(
  {
    'idempotency-key': fc.oneof(fc.constantFrom('a', 'b', 'c'), headerText),
    accept: fc.constantFrom('application/problem+json', 'text/html', '*/*', ''),
    'content-encoding': fc.constantFrom('gzip', 'deflate', 'br', 'identity', 'x'),
    'transfer-encoding': fc.constant('chunked'),
    'accept-version': fc.constantFrom('1', 'x'),
    'x-http-method-override': fc.constant('DELETE'),
  },
  { requiredKeys: [] },
);

/** Optional headers, which most requests omit. */
export const extra = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  { weight: 2, arbitrary: fc.constantFrom('a', 'b', 'c').map((key) => ({ 'idempotency-key': key })) },
  { weight: 1, arbitrary: others },
);

/** Headers of all requests. */
export const merged = (...some: readonly fc.Arbitrary<Headers>[]): fc.Arbitrary<Headers> =>
  fc.tuple(...some).map((parts) => Object.assign({}, ...parts) as Headers);
