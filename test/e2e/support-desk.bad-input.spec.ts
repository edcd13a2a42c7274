import { join } from 'node:path';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { type Answer, type AskOptions, SampleProcess } from '../support/sample-process.js';
import { temporaryFolder } from '../support/stores.js';
import { withLedger } from './stored-turns.js';
import { Customer } from './support-desk-client.js';

/** A request that must be refused: what is wrong with it, the request, and the answer. */
type Row = readonly [problem: string, ask: () => Promise<Answer>, status: number, code: string];

const LONG_ID = 'a'.repeat(10_000);
const MALFORMED_IDS = ['*', 'ann:*', '{}', '{"$gt":""}', '__proto__', '../session', LONG_ID];
const UNKNOWN_IDS = ['f'.repeat(32), 'agent:sessions', 'constructor'];
const nested = (depth: number): string => `{"input":${'['.repeat(depth)}${']'.repeat(depth)}}`;

/** Bodies that no endpoint takes. */
const BODIES: readonly [string, unknown, number, string][] = [
  ['is no JSON', '{"input": "hello"', 400, 'BAD_REQUEST'],
  ['is plain words', 'hello', 400, 'BAD_REQUEST'],
  ['is null', 'null', 400, 'BAD_REQUEST'],
  ['is a text', '"hello"', 400, 'BAD_REQUEST'],
  ['has an unknown key', { input: 'hello', role: 'system' }, 400, 'BAD_REQUEST'],
  ['has the key __proto__', '{"input":"hello","__proto__":{"admin":true}}', 400, 'BAD_REQUEST'],
  ['has the key constructor', '{"input":"hello","constructor":{"prototype":{}}}', 400, 'BAD_REQUEST'],
  ['is 10 MB', { input: 'a'.repeat(10 * 1024 * 1024) }, 413, 'PAYLOAD_TOO_LARGE'],
  ['is nested 100 times', nested(100), 400, 'BAD_REQUEST'],
  ['is nested 200,000 times', nested(200_000), 400, 'BAD_REQUEST'],
];

/** Bodies that are not a message. */
const MESSAGES: readonly [string, unknown, number, string][] = [
  ...BODIES,
  ['is missing', undefined, 400, 'BAD_REQUEST'],
  ['is empty', '', 400, 'BAD_REQUEST'],
  ['is an empty object', {}, 400, 'BAD_REQUEST'],
  ['is an array', [], 400, 'BAD_REQUEST'],
  ['has an empty input', { input: '' }, 400, 'BAD_REQUEST'],
  ['has a blank input', { input: ' \n\t ' }, 400, 'INVALID_INPUT'],
  ['has an input of 300,000 characters', { input: 'a'.repeat(300_000) }, 413, 'TOO_LARGE'],
  ['has an input of 262,144 bytes in few characters', { input: '\u{1f4a5}'.repeat(65_536) }, 413, 'TOO_LARGE'],
  ...[7, null, true, ['hello'], { text: 'hello' }].map((input): [string, unknown, number, string] => [
    `has ${JSON.stringify(input)} as input`,
    { input },
    400,
    'BAD_REQUEST',
  ]),
];

/** What a form on another site can send. */
const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain'];

const QUERIES = [
  'after=',
  'after=-1',
  'after=1.5',
  'after=one',
  'after=1e1',
  'after=1&after=2',
  'limit=0',
  'limit=501',
  'order=desc',
  '__proto__=1',
];

describe('what the support desk refuses', () => {
  const file = join(temporaryFolder(), 'support-desk.db');
  let sample: SampleProcess;
  let ann: Customer;
  let bob: Customer;
  let gone: Customer;
  let bobsTurn: string;

  beforeAll(async () => {
    sample = await SampleProcess.start(file);
    [ann, bob, gone] = [
      await Customer.arrive(sample, 'ann'),
      await Customer.arrive(sample, 'bob'),
      await Customer.arrive(sample, 'ann'),
    ];
    await ann.say('Where is order 7?', { 'idempotency-key': 'used' });
    await gone.say('bye');
    bobsTurn = (await bob.say('hello')).id;
    await withLedger(file, ({ sessions }) => (sessions as AtomicSessionStoreAdapter).expire(gone.sessionId));
  });

  afterAll(() => sample.stop('SIGKILL'));

  const start = (options: AskOptions) => sample.ask('/sessions', { method: 'POST', ...options });
  const open = (options: AskOptions) => sample.ask('/session', { method: 'POST', body: {}, ...options });
  const say = (options: AskOptions) =>
    sample.ask('/turns', { method: 'POST', body: { input: 'hello' }, headers: ann.headers, ...options });
  const asAnn = (sessionId: string) => ({ 'x-user-id': 'ann', 'x-session-id': sessionId });

  const signIn = (options: AskOptions) => sample.ask('/sign-in', { method: 'POST', ...options });
  const signIns: Row[] = [
    ['without a body', () => signIn({}), 400, 'BAD_REQUEST'],
    ['whose body is not JSON', () => signIn({ body: '{' }), 400, 'BAD_REQUEST'],
    ...FORMS.map((type): Row => [
      `by a form of ${type}`,
      () => signIn({ headers: { 'content-type': type }, body: '{}' }),
      400,
      'BAD_REQUEST',
    ]),
  ];

  const starts: Row[] = [
    ['without a user', () => start({}), 401, 'UNAUTHENTICATED'],
    ['with an empty user', () => start({ headers: { 'x-user-id': '' } }), 401, 'UNAUTHENTICATED'],
    ['with a user of 257 characters', () => start({ headers: { 'x-user-id': 'a'.repeat(257) } }), 400, 'INVALID_INPUT'],
    [
      'with an empty surface',
      () => start({ headers: { 'x-user-id': 'ann' }, body: { surface: '' } }),
      400,
      'BAD_REQUEST',
    ],
    ...BODIES.map(([problem, body, status, code]): Row => [
      `whose body ${problem}`,
      () => start({ headers: { 'x-user-id': 'ann' }, body }),
      status,
      code,
    ]),
  ];

  const turns: Row[] = [
    ...MESSAGES.map(([problem, body, status, code]): Row => [
      `whose body ${problem}`,
      () => say({ body }),
      status,
      code,
    ]),
    [
      'whose body is of another type',
      () => say({ headers: { ...ann.headers, 'content-type': 'text/plain' } }),
      400,
      'BAD_REQUEST',
    ],
    [
      'whose body has an unknown encoding',
      () => say({ headers: { ...ann.headers, 'content-encoding': 'rot13' } }),
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'with an empty idempotency key',
      () => say({ headers: { ...ann.headers, 'idempotency-key': '' } }),
      400,
      'INVALID_INPUT',
    ],
    [
      'with an idempotency key of 257 characters',
      () => say({ headers: { ...ann.headers, 'idempotency-key': 'k'.repeat(257) } }),
      400,
      'INVALID_INPUT',
    ],
    [
      'with the idempotency key of another message',
      () => say({ headers: { ...ann.headers, 'idempotency-key': 'used' } }),
      422,
      'IDEMPOTENCY_CONFLICT',
    ],
    ...ofSession((headers) => say({ headers })),
  ];

  const turnLooks: Row[] = [
    ['without a user', () => sample.ask(`/turns/${bobsTurn}`), 401, 'UNAUTHENTICATED'],
    ['of another user', () => ann.ask(`/turns/${bobsTurn}`), 404, 'TURN_NOT_FOUND'],
    ['with an id that is not a string', () => ann.ask('/turns/%E0%A4%A'), 400, 'BAD_REQUEST'],
    ...MALFORMED_IDS.map((id): Row => [
      `with the id ${shown(id)}`,
      () => ann.ask(`/turns/${encodeURIComponent(id)}`),
      400,
      'INVALID_INPUT',
    ]),
    ...UNKNOWN_IDS.map((id): Row => [`with the id ${id}`, () => ann.ask(`/turns/${id}`), 404, 'TURN_NOT_FOUND']),
  ];

  const messageLooks: Row[] = [
    ...QUERIES.map((query): Row => [`with ?${query}`, () => ann.ask(`/messages?${query}`), 400, 'BAD_REQUEST']),
    ...ofSession((headers) => sample.ask('/messages', { headers })),
  ];

  const overviews: Row[] = [
    ...QUERIES.map((query): Row => [`with ?${query}`, () => ann.ask(`/overview?${query}`), 400, 'BAD_REQUEST']),
    ...ofSession((headers) => sample.ask('/overview', { headers })),
  ];

  const questions: Row[] = [
    ['without a user', () => sample.ask('/ask', { method: 'POST', body: { input: 'hello' } }), 401, 'UNAUTHENTICATED'],
    ...BODIES.map(([problem, body, status, code]): Row => [
      `whose body ${problem}`,
      () => sample.ask('/ask', { method: 'POST', headers: { 'x-user-id': 'ann' }, body }),
      status,
      code,
    ]),
  ];

  const lists: Row[] = [
    ['without a user', () => sample.ask('/sessions'), 401, 'UNAUTHENTICATED'],
    ...['cursor=', 'cursor=1&cursor=2', 'limit=1'].map((query): Row => [
      `with ?${query}`,
      () => ann.ask(`/sessions?${query}`),
      400,
      'BAD_REQUEST',
    ]),
    ['with an unknown cursor', () => ann.ask('/sessions?cursor=one'), 400, 'INVALID_INPUT'],
  ];

  const openings: Row[] = [
    ['with an empty surface', () => open({ headers: ann.headers, body: { surface: '' } }), 400, 'BAD_REQUEST'],
    ...ofSession((headers) => open({ headers })),
  ];

  const sessionLooks = ofSession((headers) => sample.ask('/session', { headers }));

  const nowhere: Row[] = [
    ['nowhere', () => ann.ask('/nowhere'), 404, 'NOT_FOUND'],
    ['with another method', () => ann.ask('/turns', { method: 'DELETE' }), 404, 'NOT_FOUND'],
  ];

  describe.each([
    ['POST /sign-in', signIns],
    ['POST /sessions', starts],
    ['GET /sessions', lists],
    ['POST /session', openings],
    ['POST /turns', turns],
    ['GET /turns/:id', turnLooks],
    ['GET /messages', messageLooks],
    ['GET /session', sessionLooks],
    ['GET /overview', overviews],
    ['POST /ask', questions],
    ['a request', nowhere],
  ])('%s', (_, rows) => {
    it.each(rows)('NST-15 NST-17 %s', async (_problem, ask, status, code) => {
      const before = await everything();

      const answer = await ask();

      expect(answer).toMatchObject({ status, body: { statusCode: status, code } });
      const { message } = answer.body as { message: unknown };
      expect(message).toEqual(expect.stringMatching(/^[^\n]{1,500}$/));
      expect(await everything()).toEqual(before);
    });
  });

  it('NST-15 still answers after all of that', async () => {
    expect((await ann.say('Where is order 9?')).reply).toBe('Order 9 is being packed.');
    expect(sample.output).not.toContain('ERROR');
  });

  /** What every endpoint that names a session refuses. */
  function ofSession(ask: (headers: Record<string, string>) => Promise<Answer>): Row[] {
    return [
      ['without a user', () => ask({ 'x-session-id': ann.sessionId }), 401, 'UNAUTHENTICATED'],
      ['with an empty user', () => ask({ ...ann.headers, 'x-user-id': '' }), 401, 'UNAUTHENTICATED'],
      [
        'with a user of 10,000 characters',
        () => ask({ ...ann.headers, 'x-user-id': LONG_ID }),
        404,
        'SESSION_NOT_FOUND',
      ],
      ['without a session', () => ask({ 'x-user-id': 'ann' }), 400, 'SESSION_ID_MISSING'],
      ['with an empty session', () => ask(asAnn('')), 400, 'SESSION_ID_MISSING'],
      ['with the session of another user', () => ask(asAnn(bob.sessionId)), 404, 'SESSION_NOT_FOUND'],
      ['with an expired session', () => ask(gone.headers), 410, 'SESSION_STATE'],
      ...MALFORMED_IDS.map((id): Row => [`with the session ${shown(id)}`, () => ask(asAnn(id)), 400, 'INVALID_INPUT']),
      ...UNKNOWN_IDS.map((id): Row => [`with the session ${id}`, () => ask(asAnn(id)), 404, 'SESSION_NOT_FOUND']),
    ];
  }

  /** All that is stored: it must be the same before and after. */
  function everything(): Promise<object> {
    return withLedger(file, async ({ sessions, turns: ledger, conversations }) => {
      const all = await sessions.fetchMany({ limit: 1000 });
      const details = all.map(async ({ id }) => [await ledger.list({ sessionId: id }), await conversations.page(id)]);
      return { all, details: await Promise.all(details) };
    });
  }
});

function shown(id: string): string {
  return id.length > 40 ? `of ${id.length} characters` : id;
}
