import fc from 'fast-check';
import { STATE_CAPABILITIES } from 'nestjs-agent-sessions';
import { BROKEN_JSON } from './broken-json.js';

export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** ID0, ID1 and so on stand for the ids of sessions that there are. */
  readonly body: string | Uint8Array | null;
}

const operation = fc.constantFrom('describe', 'reset', 'compact');

const path = fc.oneof(
  { weight: 20, arbitrary: operation.map((name) => `/state/${name}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '/state/reset?all=true',
      '/state/reset/',
      '/STATE/Reset',
      '/state//reset',
      '/state/%72eset',
      '/state/reset%00',
      '/state/reset/../describe',
      '/state',
      '/state/wipe',
    ),
  },
);

const id = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('ID0', 'ID1', 'ID2', 'ID3') },
  { weight: 1, arbitrary: fc.string() },
  { weight: 1, arbitrary: fc.constantFrom('of-nobody', '', ' ', 'x'.repeat(201)) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
);

const names = fc.oneof(
  { weight: 4, arbitrary: fc.subarray(['conversation', 'tools', 'task', 'flow'], { minLength: 1 }) },
  { weight: 1, arbitrary: fc.array(fc.string(), { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 1 }) },
);

const flag = fc.oneof({ weight: 4, arbitrary: fc.boolean() }, { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 1 }) });
const number = fc.oneof({ weight: 4, arbitrary: fc.integer({ min: -1, max: 200 }) }, fc.double(), fc.jsonValue());

/** Right, nearly right, or wrong in one place. */
const request = fc.oneof(
  fc.record(
    { sessionId: id, stores: names, metadata: fc.dictionary(fc.string(), fc.jsonValue()) },
    { requiredKeys: [] },
  ),
  fc.record({ sessionId: id, stores: names, all: flag, dryRun: flag }, { requiredKeys: [] }),
  fc.record(
    { sessionId: id, stores: names, includeData: flag, limit: number, after: fc.oneof(fc.string(), fc.jsonValue()) },
    { requiredKeys: ['sessionId'] },
  ),
  fc.record(
    {
      sessionId: id,
      stores: names,
      strategy: fc.oneof(fc.constantFrom('recent', 'tokens', 'summary'), fc.string()),
      maxMessages: number,
      maxTokens: number,
      preserveRecent: number,
      summaryMaxTokens: number,
      dryRun: flag,
    },
    { requiredKeys: ['sessionId'] },
  ),
  fc.constant({ all: true }),
  fc.tuple(fc.record({ sessionId: id }), fc.dictionary(fc.string(), fc.jsonValue())).map(([a, b]) => ({ ...b, ...a })),
);

const known = fc.constantFrom('ID0', 'ID1');

/** Right for one operation at least. */
const right = fc.oneof(
  fc.record(
    { sessionId: known, stores: fc.subarray(['conversation', 'tools', 'task', 'flow'], { minLength: 1 }) },
    { requiredKeys: ['sessionId'] },
  ),
  fc.record(
    { sessionId: known, dryRun: fc.boolean(), metadata: fc.dictionary(fc.string(), fc.string()) },
    { requiredKeys: ['sessionId'] },
  ),
  fc.record({ sessionId: known, includeData: fc.constant(true), limit: fc.integer({ min: 1, max: 50 }) }),
  fc.record({ sessionId: known, maxMessages: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ sessionId: known, strategy: fc.constant('tokens'), maxTokens: fc.integer({ min: 1, max: 200 }) }),
);

/** A text with one place changed. */
const damaged = fc
  .tuple(
    fc.oneof(request, right),
    fc.nat(),
    fc.integer({ min: 0, max: 3 }),
    fc.string({ unit: 'binary', maxLength: 3 }),
  )
  .map(([value, place, cut, put]) => {
    const text = JSON.stringify(value);
    const at = place % (text.length + 1);
    return text.slice(0, at) + put + text.slice(at + cut);
  });

const body = fc.oneof(
  { weight: 10, arbitrary: request.map((value) => JSON.stringify(value)) },
  { weight: 8, arbitrary: right.map((value) => JSON.stringify(value)) },
  { weight: 4, arbitrary: damaged },
  { weight: 4, arbitrary: fc.constantFrom(...BROKEN_JSON).map((text) => text.replaceAll('ID', 'ID0')) },
  { weight: 1, arbitrary: fc.jsonValue().map((value) => JSON.stringify(value)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  { weight: 1, arbitrary: fc.constantFrom('sessionId=ID0', 'sessionId=ID0&all=true', 'all=true') },
  { weight: 1, arbitrary: fc.constant(null) },
);

/** What HTTP lets through. */
const headerText = fc
  .array(fc.integer({ min: 0x20, max: 0xff }), { maxLength: 30 })
  .map((codes) => String.fromCharCode(...codes.filter((code) => code < 0x7f || code > 0x9f)));

const identity = fc.oneof(
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

const contentType = fc.oneof(
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

/** Mostly without what few requests have. */
const extra = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  { weight: 2, arbitrary: fc.constantFrom('a', 'b', 'c').map((key) => ({ 'idempotency-key': key })) },
  { weight: 1, arbitrary: others },
);

export const fuzzRequest: fc.Arbitrary<FuzzRequest> = fc.record({
  method: fc.oneof({ weight: 30, arbitrary: fc.constant('POST') }, fc.constantFrom('PUT', 'PATCH', 'DELETE', 'GET')),
  path,
  headers: fc.tuple(identity, contentType, extra).map((some) => Object.assign({}, ...some) as Record<string, string>),
  body,
});
