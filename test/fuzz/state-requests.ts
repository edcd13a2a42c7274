import fc from 'fast-check';
import { bodyOf } from './bodies.js';
import { contentType, extra, identity, merged } from './headers.js';
import { type FuzzRequest } from './fuzz-request.js';

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

/** Valid, nearly valid, or invalid in one place. */
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

/** Valid for at least one operation. */
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

export const stateRequest: fc.Arbitrary<FuzzRequest> = fc.record({
  method: fc.oneof({ weight: 30, arbitrary: fc.constant('POST') }, fc.constantFrom('PUT', 'PATCH', 'DELETE', 'GET')),
  path,
  headers: merged(identity, contentType, extra),
  body: bodyOf(right, request),
});
