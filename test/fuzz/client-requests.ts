import fc from 'fast-check';
import { bodyOf } from './bodies.js';
import { contentType, extra, headerText, identity, merged } from './headers.js';
import { type FuzzRequest } from './fuzz-request.js';

const turn = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('TURN0', 'TURN1', 'TURN2', 'TURN4') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('of-nobody', '%00', '%zz', '..', '*', 'ID0', 'x'.repeat(201), '%F0%9F%A6%84'),
  },
);

const limit = fc.oneof(fc.integer({ min: -1, max: 201 }).map(String), fc.string());

const query = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  {
    weight: 3,
    arbitrary: fc
      .record(
        {
          limit,
          after: limit,
          before: fc.oneof(limit, fc.base64String()),
          state: fc.constantFrom('created', 'active', 'expired', 'x', ''),
          status: fc.constantFrom('queued', 'failed', 'x'),
          surfaceId: fc.oneof(fc.constant('web'), fc.string()),
        },
        { requiredKeys: [] },
      )
      .map((given) => `?${new URLSearchParams(given as Record<string, string>).toString()}`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('?__proto__[a]=1', '?limit=1&limit=2', '?state[]=created', '?state[$ne]=x', '?%', '??'),
  },
  { weight: 1, arbitrary: fc.webQueryParameters().map((text) => `?${text}`) },
);

type Place = Pick<FuzzRequest, 'method' | 'path'>;

const listing = fc.record({ base: fc.constantFrom('/sessions', '/turns', '/turns/messages'), query });
const single = fc.record({ turn, part: fc.constantFrom('', '/cancel', '/events') });

/** The body of requests that read or need no body. */
const place: fc.Arbitrary<Place> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom('GET', 'DELETE').map((method) => ({ method, path: '/sessions/current' })) },
  { weight: 5, arbitrary: listing.map((given) => ({ method: 'GET', path: given.base + given.query })) },
  {
    weight: 8,
    arbitrary: single.map((given) => ({
      method: given.part === '/cancel' ? 'POST' : 'GET',
      path: `/turns/${given.turn}${given.part}`,
    })),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'),
      path: fc.constantFrom(
        '/sessions/',
        '/SESSIONS/Current',
        '/sessions//current',
        '/sessions/%63urrent',
        '/sessions/current/../revoke',
        '/sessions/ID0',
        '/turns/',
        '/turns/TURN0/signal',
        '/turns/TURN0/events/',
        '/turns//events',
        '//turns',
      ),
    }),
  },
);

const sessionHeader = fc.oneof(
  { weight: 8, arbitrary: fc.constant({ 'x-session-id': 'ID0' }) },
  { weight: 4, arbitrary: fc.constantFrom('ID1', 'ID2', 'ID3').map((id) => ({ 'x-session-id': id })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('of-nobody', '', '*', 'ID0, ID1', 'ID0/desk').map((id) => ({ 'x-session-id': id })),
  },
  { weight: 1, arbitrary: headerText.map((id) => ({ 'x-session-id': id })) },
  { weight: 1, arbitrary: fc.constant({}) },
);

const lastEvent = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.oneof(fc.nat().map(String), headerText).map((id) => ({ 'last-event-id': id })) },
);

const cursor = fc.oneof(
  { weight: 6, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc
      .oneof(
        headerText,
        fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value)).toString('base64url')),
      )
      .map((text) => ({ 'x-cursor': text })),
  },
);

const metadata = fc.dictionary(fc.string(), fc.jsonValue());

const turnBody = fc.oneof(
  fc.record({ text: fc.string({ minLength: 1 }) }),
  fc.record(
    { text: fc.string(), content: fc.array(fc.record({ type: fc.constant('text'), text: fc.string() })), metadata },
    { requiredKeys: ['text'] },
  ),
  fc.record({
    text: fc.constant('hi'),
    whenBusy: fc.constantFrom('enqueue', 'reject', 'interrupt', 'rollback', 'latest', 'replace'),
  }),
);
const sessionBody = fc.record({ surfaceId: fc.constantFrom('web', 'phone'), metadata }, { requiredKeys: [] });
const revokeBody = fc.record({ exceptCurrent: fc.boolean() }, { requiredKeys: [] });

const anything = fc.jsonValue({ maxDepth: 2 });

/** Valid, nearly valid, or invalid in one place. */
const nearly = fc.oneof(
  fc.record(
    {
      text: fc.oneof(fc.string(), anything),
      content: anything,
      metadata: fc.oneof(metadata, anything),
      orchestrator: fc.oneof(fc.constantFrom('desk', 'back-office', 'of-nobody', '__proto__'), anything),
      whenBusy: fc.oneof(fc.constantFrom('reject', 'replace', 'x'), anything),
    },
    { requiredKeys: [] },
  ),
  fc.record(
    {
      id: fc.oneof(fc.constantFrom('ID1', 'mine'), anything),
      surfaceId: fc.oneof(fc.string(), anything),
      metadata: anything,
    },
    { requiredKeys: [] },
  ),
  fc.record({ exceptCurrent: anything }),
  fc.tuple(fc.oneof(turnBody, sessionBody, revokeBody), metadata).map(([a, b]) => ({ ...b, ...a })),
);

const to = (method: string, path: string, right: fc.Arbitrary<unknown>): fc.Arbitrary<Omit<FuzzRequest, 'headers'>> =>
  bodyOf(right, nearly).map((body) => ({ method, path, body }));

const said = fc.record({
  request: fc.oneof(
    { weight: 3, arbitrary: to('POST', '/turns', turnBody) },
    { weight: 2, arbitrary: to('POST', '/sessions', sessionBody) },
    { weight: 2, arbitrary: to('PATCH', '/sessions/current', fc.record({ metadata })) },
    { weight: 1, arbitrary: to('POST', '/sessions/revoke', revokeBody) },
    { weight: 1, arbitrary: fc.tuple(place, bodyOf(turnBody, nearly)).map(([one, body]) => ({ ...one, body })) },
  ),
  headers: merged(identity, contentType, extra, sessionHeader, lastEvent),
});

const asked = fc.record({
  request: place.map((one) => ({ ...one, body: null })),
  // Few requests without a body have a content type.
  headers: merged(
    identity,
    fc.oneof({ weight: 5, arbitrary: fc.constant({}) }, contentType),
    extra,
    sessionHeader,
    lastEvent,
    cursor,
  ),
});

/** Requests to the controllers of sessions and turns. */
export const clientRequest: fc.Arbitrary<FuzzRequest> = fc
  .oneof(said, asked)
  .map(({ request, headers }) => ({ ...request, headers }));
