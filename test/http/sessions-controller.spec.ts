import 'reflect-metadata';
import { jest } from '@jest/globals';
import { memoryAdapter, type Session, type SessionsErrorBody } from 'nestjs-agent-sessions';
import { type SessionView } from 'nestjs-agent-sessions/http';
import { forgedCursors } from '../session/bad-inputs.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { type ClientApp, clientApp, desk, type Method } from './client-app.js';
import { PLATFORMS } from './http-app.js';
import { type Who } from './state-app.js';

const BOB: Who = { userId: 'bob' };
const ANN_AT_ACME: Who = { userId: 'ann', workspaceId: 'acme' };

/** Requests about one session: method and body. */
const OF_ONE: readonly (readonly [Method, object | undefined])[] = [
  ['get', undefined],
  ['patch', { metadata: { color: 'red' } }],
  ['delete', undefined],
];

interface List {
  readonly sessions: SessionView[];
  readonly nextCursor?: string;
}

describe.each(PLATFORMS)('the sessions controller on $name', (platform) => {
  const calls: string[] = [];
  let client: ClientApp;

  beforeAll(async () => {
    client = await clientApp({ platform, role: 'submit', adapter: recordingAdapter(memoryAdapter(), calls) });
  });

  afterAll(() => client.app.close());

  it('NST-16 creates a session of the principal, and returns only the user’s own data', async () => {
    const body = { surfaceId: 'web', metadata: { color: 'red' } };
    const created = await client.ask('post', '/sessions', { as: ANN_AT_ACME, body }).expect(201);
    const session = created.body as SessionView;

    const stored = (await client.sessions.get(session.id)) as Session;
    expect(stored).toMatchObject({ userId: 'ann', workspaceId: 'acme', state: 'created' });
    const { id, state, createdAt, lastActivityAt } = stored;
    const shown = { id, state, createdAt, lastActivityAt, attachedSurfaces: ['web'], metadata: { color: 'red' } };
    expect(session).toEqual(shown);
    const again: unknown = (await client.ask('get', '/sessions/current', { as: ANN_AT_ACME, sessionId: id })).body;
    expect(again).toEqual(shown);
  });

  it('NST-16 creates a session from an empty body', async () => {
    const body: unknown = (await client.ask('post', '/sessions', { body: {} }).expect(201)).body;

    expect(body).toMatchObject({ state: 'created', attachedSurfaces: [], metadata: {} });
    expect((body as SessionView).id).toMatch(/^[0-9a-f]{32}$/);
  });

  it('NST-17 rejects a client’s session id unless allowClientIds is true', async () => {
    const other = await clientApp({ platform, role: 'submit', allowClientIds: true });
    const refused = await client.ask('post', '/sessions', { body: { id: 'ann-1' } }).expect(400);
    expect((refused.body as SessionsErrorBody).message).toContain('body.id must not be set');
    expect(await client.sessions.get('ann-1')).toBeNull();

    const taken = await other.ask('post', '/sessions', { body: { id: 'ann-1' } }).expect(201);
    expect(taken.body).toMatchObject({ id: 'ann-1' });
    for (const as of [BOB, { userId: 'ann' }]) {
      const body: unknown = (await other.ask('post', '/sessions', { as, body: { id: 'ann-1' } }).expect(409)).body;
      expect(body).toMatchObject({ code: 'SESSION_CONFLICT' });
    }
    for (const id of ['', '*', 'ann-1/desk', 'x'.repeat(201), 7]) {
      await other.ask('post', '/sessions', { body: { id } }).expect(400);
    }
    await other.app.close();
  });

  it('NST-24 lists the principal’s own sessions of its workspace, page by page', async () => {
    const carol: Who = { userId: 'carol', workspaceId: 'acme' };
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push((await client.session({ userId: 'carol', workspaceId: 'acme' })).id);
    const withoutWorkspace = await client.session({ userId: 'carol' });
    await client.session({ userId: 'carol', workspaceId: 'other' });
    await client.session({ userId: 'dave', workspaceId: 'acme' });

    const found: string[] = [];
    for (let headers = {}; ;) {
      const asked = client.ask('get', '/sessions?limit=2', { as: carol }).set(headers);
      const body: unknown = (await asked.expect(200)).body;
      const { sessions, nextCursor } = body as List;
      found.push(...sessions.map(({ id }) => id));
      if (nextCursor === undefined) break;
      expect(sessions).toHaveLength(2);
      headers = { 'x-cursor': nextCursor };
    }
    expect([...found].sort()).toEqual([...ids].sort());
    const body: unknown = (await client.ask('get', '/sessions', { as: { userId: 'carol' } }).expect(200)).body;
    expect((body as List).sessions.map(({ id }) => id)).toEqual([withoutWorkspace.id]);
  });

  it('NST-16 lists by state and surface, without the sessions of orchestrators', async () => {
    const erin: Who = { userId: 'erin' };
    const web = await client.session({ userId: 'erin', initialSurfaceId: 'web' });
    const over = await client.session({ userId: 'erin' });
    await client.sessions.expire(over.id);
    await client.session({ userId: 'erin', id: `${web.id}/${desk.name}`, metadata: { parentSessionId: web.id } });
    const ids = async (query: string) => {
      const body: unknown = (await client.ask('get', `/sessions${query}`, { as: erin }).expect(200)).body;
      return (body as List).sessions.map(({ id }) => id).sort();
    };

    expect(await ids('')).toEqual([web.id, over.id].sort());
    expect(await ids('?state=expired')).toEqual([over.id]);
    expect(await ids('?state=expired&state=created')).toEqual([web.id, over.id].sort());
    expect(await ids('?surfaceId=web&limit=200')).toEqual([web.id]);
  });

  it.each([
    'limit=0',
    'limit=201',
    'limit=1.5',
    'limit=x',
    'limit=',
    'limit=1&limit=2',
    'state=',
    'state=awake',
    'state[]=created',
    'surfaceId=',
    'surfaceId=a%00',
    'cursor=x',
    'userId=bob',
    'workspaceId=acme',
    'activeAfter=2026-01-01T00:00:00Z',
    '__proto__=x',
    'constructor=x',
    '=',
  ])('NST-16 answers 400 to the query %s', async (query) => {
    calls.length = 0;
    const body: unknown = (await client.ask('get', `/sessions?${query}`).expect(400)).body;

    expect(body).toMatchObject({ statusCode: 400, code: 'INVALID_INPUT' });
    expect(calls).toEqual([]);
  });

  it.each(['x', '', 'a, b', Buffer.from('["2026","2026","a"]').toString('base64url')])(
    'NST-16 NST-17 answers 400 to the cursor %j in the x-cursor header',
    async (cursor) => {
      calls.length = 0;
      const body: unknown = (await client.ask('get', '/sessions').set('x-cursor', cursor).expect(400)).body;

      expect(body).toMatchObject({ statusCode: 400, code: 'INVALID_INPUT' });
      expect(calls).toEqual([]);
    },
  );

  it.each(forgedCursors)('FIX-52 answers 400 to a cursor with %s', async (_, cursor) => {
    calls.length = 0;
    const body: unknown = (await client.ask('get', '/sessions').set('x-cursor', cursor).expect(400)).body;

    expect(body).toMatchObject({ statusCode: 400, code: 'INVALID_INPUT' });
    expect(calls).toEqual([]);
  });

  it('NST-16 changes only the metadata', async () => {
    const { id } = await client.session({ metadata: { color: 'red', size: 2 } });
    const patch = (body: unknown) => client.ask('patch', '/sessions/current', { sessionId: id, body });

    const body: unknown = (await patch({ metadata: { size: null, shape: { round: true } } }).expect(200)).body;
    expect((body as SessionView).metadata).toEqual({ color: 'red', shape: { round: true } });
    for (const wrong of [{}, { metadata: null }, { metadata: [] }, { metadata: {}, state: 'active' }, '{"metadata":']) {
      await patch(wrong).expect(400);
    }
    await patch('{"metadata":{"a":{"__proto__":{"admin":true}}}}').expect(400);
    await patch('{"constructor":{"prototype":{"metadata":{}}}}').expect(400);
    await patch({ metadata: { text: 'x'.repeat(70_000) } }).expect(413);
    expect(await client.sessions.get(id)).toMatchObject({ version: 2, state: 'created' });
  });

  it('FIX-90 does not change a session that gets the id after the guard has read the user’s session', async () => {
    const { id } = await client.session();
    const replaced = replacedAfterRead();

    const patch = client.ask('patch', '/sessions/current', { sessionId: id, body: { metadata: { of: 'ann' } } });
    const body: unknown = (await patch.expect(404)).body;

    replaced.mockRestore();
    expect(body).toMatchObject({ code: 'SESSION_NOT_FOUND' });
    expect(await client.sessions.get(id)).toMatchObject({ userId: 'bob', metadata: {}, version: 1 });
  });

  it('FIX-90 does not end a session that gets the id after the guard has read the user’s session', async () => {
    const { id } = await client.session();
    const replaced = replacedAfterRead();

    const body: unknown = (await client.ask('delete', '/sessions/current', { sessionId: id }).expect(404)).body;

    replaced.mockRestore();
    expect(body).toMatchObject({ code: 'SESSION_NOT_FOUND' });
    expect(await client.sessions.get(id)).toMatchObject({ userId: 'bob', state: 'created', version: 1 });
    expect(await client.turns.list({ sessionId: id })).toMatchObject([{ status: 'queued' }]);
  });

  /** Gives the id of the next session that is read to a session of bob with a turn. */
  function replacedAfterRead(): { mockRestore(): void } {
    const get = client.sessions.get.bind(client.sessions);
    return jest.spyOn(client.sessions, 'get').mockImplementationOnce(async (id) => {
      const session = await get(id);
      await client.sessions.delete(id);
      await client.sessions.create({ id, userId: 'bob' });
      await client.turns.submit(desk.name, 'hello', { sessionId: id });
      return session;
    });
  }

  it('FIX-64 stores metadata with keys named like properties of every object', async () => {
    const { id } = await client.session();
    const metadata = { constructor: 'Team Nine', prototype: [1], deep: { constructor: { prototype: { x: 1 } } } };

    const patched = await client.ask('patch', '/sessions/current', { sessionId: id, body: { metadata } }).expect(200);
    expect((patched.body as SessionView).metadata).toEqual(metadata);
    expect((await client.sessions.get(id))?.metadata).toEqual(metadata);
  });

  it('FIX-47 removes the metadata keys of unset, with and without a patch', async () => {
    const { id } = await client.session({ metadata: { color: 'red', size: 2, shape: 'round' } });
    const patch = (body: unknown) => client.ask('patch', '/sessions/current', { sessionId: id, body });
    const metadataAfter = async (body: unknown): Promise<unknown> =>
      ((await patch(body).expect(200)).body as SessionView).metadata;

    expect(await metadataAfter({ unset: ['size', 'unknown'] })).toEqual({ color: 'red', shape: 'round' });
    expect(await metadataAfter({ metadata: { size: 3 }, unset: ['color'] })).toEqual({ size: 3, shape: 'round' });
    for (const wrong of [
      { unset: null },
      { unset: 'size' },
      { unset: [1] },
      { metadata: null, unset: ['size'] },
      { metadata: { size: 1 }, unset: ['size'] },
    ]) {
      const body: unknown = (await patch(wrong).expect(400)).body;
      expect(body).toMatchObject({ code: 'INVALID_INPUT' });
    }
    expect(await client.sessions.get(id)).toMatchObject({ metadata: { size: 3, shape: 'round' }, version: 3 });
  });

  it('NST-12 ends the session permanently, ignores a second end and answers 410 afterwards', async () => {
    const { id } = await client.session();
    const answer = await client.ask('delete', '/sessions/current', { sessionId: id }).expect(204);

    expect(answer.text).toBe('');
    expect(await client.sessions.get(id)).toMatchObject({ state: 'expired', version: 2 });
    await client.ask('delete', '/sessions/current', { sessionId: id }).expect(204);
    const body: unknown = (await client.ask('get', '/sessions/current', { sessionId: id }).expect(410)).body;
    expect(body).toMatchObject({ code: 'SESSION_STATE', sessionId: id });
    await client.ask('patch', '/sessions/current', { sessionId: id, body: { metadata: {} } }).expect(410);
    expect(await client.sessions.get(id)).toMatchObject({ version: 2 });
  });

  it('NST-18 ends all sessions of the user in its workspace, or all except the current one', async () => {
    const frank: Who = { userId: 'frank', workspaceId: 'acme' };
    const begin = async (workspaceId?: string) => (await client.session({ userId: 'frank', workspaceId })).id;
    const [here, there, third] = [await begin('acme'), await begin('acme'), await begin('acme')];
    const others = [await begin('other'), await begin(), (await client.session({ workspaceId: 'acme' })).id];
    const states = (ids: string[]) => Promise.all(ids.map(async (id) => (await client.sessions.get(id))?.state));
    const revoke = (body: unknown, sessionId?: string) =>
      client.ask('post', '/sessions/revoke', { as: frank, sessionId, body });

    await revoke({ exceptCurrent: true }).expect(400);
    await revoke({ exceptCurrent: true }, 'of-nobody').expect(404);
    await revoke({ exceptCurrent: true }, others[0]).expect(404);
    for (const wrong of [undefined, '', '[]', { exceptCurrent: 'yes' }, { except: here }, '{']) {
      await revoke(wrong, here).expect(400);
    }
    expect(await states([here, there, third])).toEqual(['created', 'created', 'created']);

    expect((await revoke({ exceptCurrent: true }, here).expect(200)).body).toEqual({ revoked: 2 });
    expect(await states([here, there, third])).toEqual(['created', 'expired', 'expired']);
    expect((await revoke({}).expect(200)).body).toEqual({ revoked: 1 });
    expect((await revoke({}, here).expect(200)).body).toEqual({ revoked: 0 });
    expect(await states(others)).toEqual(['created', 'created', 'created']);
    const withoutWorkspace = await client
      .ask('post', '/sessions/revoke', { as: { userId: 'frank' }, body: {} })
      .expect(200);
    expect(withoutWorkspace.body).toEqual({ revoked: 1 });
    expect(await states(others)).toEqual(['created', 'expired', 'created']);
  });

  it('NST-10 does not count reading a session as activity', async () => {
    const { id } = await client.session();
    await client.ask('get', '/sessions/current', { sessionId: id }).expect(200);
    await client.ask('get', '/sessions').expect(200);

    expect(await client.sessions.get(id)).toMatchObject({ state: 'created', version: 1 });
  });

  it.each(OF_ONE)(
    'NST-11 %s: answers alike to a foreign and an unknown session, with the same store calls',
    async (method, body) => {
      const bobs = await client.session({ userId: 'bob' });
      const elsewhere = await client.session({ workspaceId: 'acme' });
      const watched = async (sessionId: string) => {
        calls.length = 0;
        const { status, text } = await client.ask(method, '/sessions/current', { sessionId, body });
        return { status, text: text.replaceAll(sessionId, 'ID'), calls: [...calls] };
      };

      const unknown = await watched('of-nobody');
      expect(unknown).toMatchObject({ status: 404, calls: ['sessions.fetchById'] });
      expect(JSON.parse(unknown.text)).toMatchObject({ code: 'SESSION_NOT_FOUND' });
      for (const { id } of [bobs, elsewhere]) {
        expect(await watched(id)).toEqual(unknown);
        expect(await client.sessions.get(id)).toMatchObject({ version: 1 });
      }
    },
  );

  it.each([
    ['post', '/sessions', {}],
    ['get', '/sessions', undefined],
    ['post', '/sessions/revoke', {}],
    ...OF_ONE.map(([method, body]) => [method, '/sessions/current', body] as const),
  ] as const)('NST-11 %s %s: answers 401 without a user, before it queries the store', async (method, path, body) => {
    const { id } = await client.session();
    calls.length = 0;
    const answer = await client.ask(method, path, { as: {}, sessionId: id, body }).expect(401);

    expect(answer.body).toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(calls).toEqual([]);
  });

  it('NST-16 rejects a request without a body, which another site could send, and reports what to send', async () => {
    calls.length = 0;
    const nothing = await client.ask('post', '/sessions').expect(400);
    const empty = await client.ask('post', '/sessions').set('content-type', 'application/json').expect(400);

    const message =
      'body must be a JSON object. Send at least {} with Content-Type: application/json and its Content-Length.';
    expect(nothing.body).toMatchObject({ code: 'INVALID_INPUT', message });
    expect(empty.body).toMatchObject({ statusCode: 400 });
    expect(calls).toEqual([]);
    await client.ask('post', '/sessions', { body: {} }).expect(201);
  });

  it.each(OF_ONE)('NST-10 %s: answers 400 to a missing or malformed session id', async (method, body) => {
    calls.length = 0;
    const missing = await client.ask(method, '/sessions/current', { body }).expect(400);
    const malformed = await client.ask(method, '/sessions/current', { sessionId: '*', body }).expect(400);

    expect(missing.body).toMatchObject({ code: 'SESSION_ID_MISSING' });
    expect(malformed.body).toMatchObject({ code: 'INVALID_INPUT' });
    expect(calls).toEqual([]);
  });
});
