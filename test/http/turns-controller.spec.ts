import 'reflect-metadata';
import { Agent, request as send } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { jest } from '@jest/globals';
import { memoryAdapter, type SessionsErrorBody, type Turn } from 'nestjs-agent-sessions';
import { type TurnView } from 'nestjs-agent-sessions/http';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/running-application.js';
import { recordingAdapter } from '../support/recording-adapter.js';
import { backOffice, type ClientApp, clientApp, desk, doors, type Method } from './client-app.js';
import { PLATFORMS } from './http-app.js';
import { type Who } from './state-app.js';

/** Requests about one turn: method and the end of the path. */
const OF_ONE: readonly (readonly [Method, string])[] = [
  ['get', ''],
  ['post', '/cancel'],
  ['get', '/events'],
];

/** The store calls of requests, without those of workers that poll for work. */
const ASKED = /^(sessions|events|state|checkpoints|conversations)\.|^turns\.(get|list|cancel|accept|signal)$/;

interface List {
  readonly turns: TurnView[];
  readonly nextAfter?: number;
}

interface Said extends Record<string, unknown> {
  readonly as?: Who;
  readonly key?: string;
}

describe.each(PLATFORMS)('the turns controller on $name', (platform) => {
  const calls: string[] = [];
  let client: ClientApp;
  let sessionId: string;
  let url: string | undefined;

  beforeAll(async () => {
    client = await clientApp({
      platform,
      adapter: recordingAdapter(memoryAdapter(), calls),
      whenBusy: ['reject', 'interrupt'],
    });
  });

  beforeEach(async () => {
    sessionId = (await client.session()).id;
  });

  afterAll(() => client.app.close());

  it('NST-16 accepts a turn at once and returns it at its location after it ended', async () => {
    const accepted = await say({ text: 'hello there' }).expect(202);
    const { id } = accepted.body as TurnView;
    const [{ acceptedAt }] = await client.turns.list({ sessionId });
    const input = { text: 'hello there' };
    const before = { id, sessionId, position: 1, orchestrator: 'desk', status: 'queued', input, acceptedAt };
    expect(accepted.body).toEqual(before);
    expect(accepted.headers.location).toBe(`/turns/${id}`);
    await client.turns.result(id);

    const body: unknown = (await client.ask('get', accepted.headers.location, { sessionId }).expect(200)).body;
    const { startedAt, settledAt } = (await client.turns.get(id))!;
    const end = { status: 'awaiting-input', turnIndex: 0, reply: 'You said hello there.', data: { words: 2 } };
    expect(body).toEqual({ ...before, ...end, startedAt, settledAt });
  });

  it('NST-16 counts an accepted turn as activity of its session, but not a rejected one or a read', async () => {
    await say({ text: '' }).expect(400);
    await client.ask('get', '/turns', { sessionId }).expect(200);
    expect(await client.sessions.get(sessionId)).toMatchObject({ state: 'created', version: 1 });

    await say({ text: 'fail' }).expect(202);
    expect(await client.sessions.get(sessionId)).toMatchObject({ state: 'active' });
  });

  it('FIX-90 accepts no turn for a session that gets the id after the guard has read the user’s session', async () => {
    const get = client.sessions.get.bind(client.sessions);
    const replaced = jest.spyOn(client.sessions, 'get').mockImplementationOnce(async (id) => {
      const session = await get(id);
      await client.sessions.delete(id);
      await client.sessions.create({ id, userId: 'bob' });
      return session;
    });

    const body: unknown = (await say({ text: 'secret of ann' }).expect(404)).body;

    replaced.mockRestore();
    expect(body).toMatchObject({ code: 'SESSION_NOT_FOUND' });
    expect(await client.turns.list({ sessionId })).toEqual([]);
    expect(await client.sessions.get(sessionId)).toMatchObject({ userId: 'bob', state: 'created', version: 1 });
  });

  it('NST-16 passes the text, content and metadata of a message to the turn', async () => {
    const input = { text: '', content: [{ type: 'image', url: 'cat.png' }], metadata: { tab: 7 } };
    const body: unknown = (await say({ ...input, orchestrator: 'desk' }).expect(202)).body;

    const turn = await client.turns.get((body as TurnView).id);
    expect(turn?.request).toEqual({ input });
    expect(body).toMatchObject({ input });
  });

  it('AIS-11 passes no instructions to a provider to the turn', async () => {
    const own = { providerOptions: { openai: { store: true } }, providerMetadata: { openai: { store: true } } };
    const parts = [
      { type: 'text', text: 'hi' },
      { type: 'file', mediaType: 'image/png', url: 'https://example.org/cat.png' },
      { type: 'data-place', data: { city: 'Rome' } },
      { type: 'image', url: 'cat.png' },
      { type: 'tool-result', toolCallId: 'call-1', output: { city: 'Rome' } },
    ];
    const content = parts.map((part) => ({ ...part, ...own }));
    const body: unknown = (await say({ text: 'hi', content }).expect(202)).body;

    expect(body).toMatchObject({ input: { content: parts } });
    expect((await client.turns.get((body as TurnView).id))?.request.input.content).toEqual(parts);
  });

  it('NST-15 returns only the code of a failure, and no fields for operators', async () => {
    const body: unknown = (await say({ text: 'fail' }).expect(202)).body;
    const { id } = body as TurnView;
    const shown = await eventually(async () => {
      const answer = await client.ask('get', `/turns/${id}`, { sessionId }).expect(200);
      return (answer.body as TurnView).status === 'failed' ? answer : undefined;
    });

    expect(await client.turns.get(id)).toMatchObject({ error: { message: 'hunter2' } });
    expect(shown.body).toMatchObject({ status: 'failed', code: 'TURN_FAILED' });
    expect(Object.keys(shown.body as object).sort()).toEqual([
      'acceptedAt',
      'code',
      'id',
      'input',
      'orchestrator',
      'position',
      'sessionId',
      'settledAt',
      'startedAt',
      'status',
    ]);
    const { text } = await client.ask('get', `/turns/${id}/events`, { sessionId }).expect(200);
    expect(text).toContain(`data: ${JSON.stringify({ id, sessionId, status: 'failed', code: 'TURN_FAILED' })}\n`);
    expect(text).not.toContain('hunter2');
  });

  it('NST-16 returns the signal that a turn waits for, and cancels the turn', async () => {
    const { id } = await waiting();
    const suspended = await client.ask('get', `/turns/${id}`, { sessionId }).expect(200);
    expect(suspended.body).toMatchObject({ status: 'waiting', waitingFor: { signal: 'approval' } });

    const cancelled = await client.ask('post', `/turns/${id}/cancel`, { sessionId }).expect(200);
    expect(cancelled.body).toMatchObject({ id, status: 'cancelled', code: 'TURN_CANCELLED' });
    const again = await client.ask('post', `/turns/${id}/cancel`, { sessionId, body: {} }).expect(200);
    expect(again.body).toEqual(cancelled.body);
  });

  it('NST-16 lists the turns of the session, page by page and by status', async () => {
    const { id } = await waiting();
    const queued: string[] = [];
    for (const text of ['a', 'b', 'c']) queued.push(((await say({ text }).expect(202)).body as TurnView).id);
    const list = async (query: string): Promise<List> =>
      (await client.ask('get', `/turns${query}`, { sessionId }).expect(200)).body as List;

    const first = await list('?limit=3');
    expect(first).toMatchObject({ turns: [{ id }, { id: queued[0] }, { id: queued[1] }], nextAfter: 3 });
    expect(await list(`?limit=3&after=${first.nextAfter}`)).toEqual({
      turns: [expect.objectContaining({ id: queued[2] })],
    });
    expect((await list('?status=queued&limit=200')).turns.map((turn) => turn.id)).toEqual(queued);
    expect((await list('?status=queued&status=waiting')).turns).toHaveLength(4);
    expect(await list('?status=failed')).toEqual({ turns: [] });
  });

  it.each([
    'limit=0',
    'limit=201',
    'limit=x',
    'after=-1',
    'after=1.5',
    'after=',
    'status=done',
    'status=',
    'sessionId=x',
    '__proto__=1',
  ])('NST-16 answers 400 to the query %s', async (query) => {
    const body: unknown = (await client.ask('get', `/turns?${query}`, { sessionId }).expect(400)).body;
    expect(body).toMatchObject({ code: 'INVALID_INPUT' });
  });

  it('NST-16 rejects and hides orchestrators that are not enabled for clients, and their turns', async () => {
    const refused = await Promise.all(
      [backOffice.name, 'of-nobody', 'toString'].map((orchestrator) => say({ text: 'hi', orchestrator }).expect(400)),
    );
    expect(new Set(refused.map(({ text }) => text)).size).toBe(1);
    expect(refused[0].text).not.toContain('desk');

    const inner = await client.turns.submit(backOffice.name, 'hi', { sessionId });
    await client.turns.result(inner.id);
    const outer = (await say({ text: 'hi' }).expect(202)).body as TurnView;
    const body: unknown = (await client.ask('get', '/turns', { sessionId }).expect(200)).body;
    expect((body as List).turns.map(({ id }) => id)).toEqual([outer.id]);
    for (const [method, part] of OF_ONE) {
      const answer = await client.ask(method, `/turns/${inner.id}${part}`, { sessionId }).expect(404);
      expect(answer.body).toMatchObject({ code: 'TURN_NOT_FOUND' });
    }
  });

  it('TRN-05 returns the same turn for the same Idempotency-Key, and rejects another message with it', async () => {
    const first = await say({ text: 'hello', key: 'k1' }).expect(202);
    const again = await say({ text: 'hello', key: 'k1' }).expect(202);
    const other = await say({ text: 'goodbye', key: 'k1' }).expect(422);

    expect((again.body as TurnView).id).toBe((first.body as TurnView).id);
    expect(again.headers.location).toBe(first.headers.location);
    expect(other.body).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    for (const key of ['', 'a b', 'x'.repeat(256)]) await say({ text: 'hello', key }).expect(400);
    expect(await client.turns.list({ sessionId })).toHaveLength(1);
  });

  it('TRN-06 TRN-07 applies the client’s whenBusy to a busy session, and answers 503 while a lane drains', async () => {
    const { id } = await waiting();
    const busy = await say({ text: 'hi', whenBusy: 'reject' }).expect(409);
    expect(busy.body).toMatchObject({ code: 'SESSION_BUSY', turnId: id });

    const next = (await say({ text: 'hi', whenBusy: 'interrupt' }).expect(202)).body as TurnView;
    expect((await client.turns.get(id))?.status).toBe('cancelled');
    await client.turns.result(next.id);
    await client.turns.lanes.drain({ sessionId });
    const draining = await say({ text: 'hi' }).expect(503);
    expect(draining.headers['retry-after']).toBe('5');
  });

  it('NST-16 reveals nothing about hidden turns, not even their ids', async () => {
    await client.turns.lanes.pause({ sessionId });
    const hidden = await client.turns.submit('back-office', 'audit', { sessionId, idempotencyKey: 'k1' });

    const answers = [
      (await say({ text: 'hi', whenBusy: 'reject' }).expect(409)).body as SessionsErrorBody,
      (await say({ text: 'hi', key: 'k1' }).expect(422)).body as SessionsErrorBody,
    ];
    expect(answers).toMatchObject([{ code: 'SESSION_BUSY' }, { code: 'IDEMPOTENCY_CONFLICT' }]);
    for (const answer of answers) {
      expect(answer.sessionId).toBe(sessionId);
      expect(JSON.stringify(answer)).not.toContain(hidden.id);
    }
    await client.turns.cancel(hidden.id);
  });

  it.each([
    ['no text', '{}'],
    ['a blank text', '{"text":" "}'],
    ['a number as text', '{"text":7}'],
    ['null as text', '{"text":null}'],
    ['a list', '[{"text":"hi"}]'],
    ['a string as body', '"hi"'],
    ['null as body', 'null'],
    ['a truncated body', '{"text":"hi"'],
    ['parts without types', '{"text":"","content":[{}]}'],
    ['content that is not a list', '{"text":"hi","content":"hi"}'],
    ['a text that is not a string', '{"text":"hi","content":[{"type":"text","text":{"$type":"url","value":"x"}}]}'],
    ['a file of the server', '{"text":"hi","content":[{"type":"file","mediaType":"text/plain","url":"file:///etc"}]}'],
    ['a file without a media type', '{"text":"hi","content":[{"type":"file","url":"https://example.org/a"}]}'],
    ['a part of an assistant', '{"text":"hi","content":[{"type":"tool-call","toolCallId":"a","toolName":"b"}]}'],
    ['the mark of model messages', '{"text":"hi","metadata":{"modelMessage":{}}}'],
    ['the mark of UI messages', '{"text":"hi","metadata":{"ui":{"id":"m1"}}}'],
    ['metadata that is not an object', '{"text":"hi","metadata":[]}'],
    ['__proto__', '{"text":"hi","__proto__":{"whenBusy":"replace"}}'],
    ['nested __proto__', '{"text":"hi","metadata":{"__proto__":{"a":1}}}'],
    ['a session', '{"text":"hi","sessionId":"x"}'],
    ['state', '{"text":"hi","state":{"admin":true}}'],
    ['history', '{"text":"hi","history":[]}'],
    ['attributes', '{"text":"hi","attributes":{}}'],
    ['force', '{"text":"hi","force":true}'],
    ['an empty orchestrator name', '{"text":"hi","orchestrator":""}'],
    ['a list of orchestrators', '{"text":"hi","orchestrator":["desk"]}'],
    ['a policy that clients may not use', '{"text":"hi","whenBusy":"replace"}'],
    ['an unknown policy', '{"text":"hi","whenBusy":"panic"}'],
    ['a number outside the range of JSON numbers', '{"text":"hi","metadata":{"n":1e999}}'],
    ['nesting that is too deep', `{"text":"hi","metadata":{"a":${'['.repeat(5000)}${']'.repeat(5000)}}}`],
  ])('NST-16 answers 400 to %s', async (_, body) => {
    const answer = await client.ask('post', '/turns', { sessionId, body }).expect(400);

    expect(['INVALID_INPUT', 'STATE_NOT_SERIALIZABLE']).toContain((answer.body as SessionsErrorBody).code);
    expect((answer.body as SessionsErrorBody).message).not.toContain('input.');
    expect(await client.turns.list({ sessionId })).toEqual([]);
  });

  it('NST-16 answers 413 to an input above maxInputBytes', async () => {
    const other = await clientApp({ platform, turns: { maxInputBytes: 1000 } });
    const { id } = await other.session();
    const body: unknown = (
      await other.ask('post', '/turns', { sessionId: id, body: { text: 'x'.repeat(2000) } }).expect(413)
    ).body;

    expect(body).toMatchObject({ code: 'TOO_LARGE' });
    await other.app.close();
  });

  it.each(OF_ONE)(
    'NST-11 %s %s: answers alike to an unknown turn and one of another session, with the same store calls',
    async (method, part) => {
      const own = await client.session();
      const bobs = await client.session({ userId: 'bob' });
      const ids = await Promise.all(
        [own.id, bobs.id].map(async (other) => (await client.turns.submit(desk.name, 'wait', { sessionId: other })).id),
      );
      await eventually(async () => (await Promise.all(ids.map(statusOf))).every((status) => status === 'waiting'));
      const watched = async (turnId: string) => {
        calls.length = 0;
        const { status, text } = await client.ask(method, `/turns/${turnId}${part}`, { sessionId });
        return { status, text: text.replaceAll(turnId, 'ID'), calls: calls.filter((call) => ASKED.test(call)) };
      };

      const unknown = await watched('of-nobody');
      expect(unknown).toMatchObject({ status: 404 });
      expect(unknown.calls).toEqual(['sessions.fetchById', 'turns.get']);
      expect(JSON.parse(unknown.text)).toMatchObject({ code: 'TURN_NOT_FOUND', turnId: 'ID' });
      for (const id of ids) expect(await watched(id)).toEqual(unknown);
      expect(await Promise.all(ids.map(statusOf))).toEqual(['waiting', 'waiting']);
      for (const id of ids) await client.turns.cancel(id);
    },
  );

  it.each([['post', ''], ['get', ''], ...OF_ONE.map(([method, part]) => [method, `/ID${part}`] as const)] as const)(
    'NST-11 %s /turns%s: answers 404 to a foreign session, 401 without a user, 400 without a session, 410 after its end',
    async (method, path) => {
      const bobs = await client.session({ userId: 'bob' });
      const { id } = await client.turns.submit(desk.name, 'wait', { sessionId: bobs.id });
      await eventually(async () => (await statusOf(id)) === 'waiting');
      const over = await client.session();
      await client.sessions.expire(over.id);
      const body = method === 'post' && path === '' ? { text: 'hi' } : undefined;
      const ask = async (as: Who, session?: string) => {
        const asked = client.ask(method, `/turns${path.replace('ID', id)}`, { as, sessionId: session, body });
        const { status, text } = await asked;
        return [status, text.replaceAll(session ?? '-', 'SESSION')];
      };
      const ann = { userId: 'ann' };

      const unknown = await ask(ann, 'of-nobody');
      expect(unknown).toEqual([404, expect.stringContaining('SESSION_NOT_FOUND')]);
      expect(await ask(ann, bobs.id)).toEqual(unknown);
      expect(await ask({ userId: 'bob', workspaceId: 'acme' }, bobs.id)).toEqual(unknown);
      expect(await ask({}, bobs.id)).toEqual([401, expect.stringContaining('UNAUTHENTICATED')]);
      expect(await ask(ann)).toEqual([400, expect.stringContaining('SESSION_ID_MISSING')]);
      expect(await ask(ann, over.id)).toEqual([410, expect.stringContaining('SESSION_STATE')]);
      expect(await statusOf(id)).toBe('waiting');
      await client.turns.cancel(id);
    },
  );

  it('TRN-32 streams what a turn emits, resumes after Last-Event-ID across a reconnect, and ends with 204', async () => {
    const door = gate();
    doors.set('count on', door);
    const address = await listening();
    const { id } = (await say({ text: 'count on' }).expect(202)).body as TurnView;
    const connect = async (after?: string) => {
      const leaving = new AbortController();
      const headers = { 'x-user-id': 'ann', 'x-session-id': sessionId, ...(after ? { 'last-event-id': after } : {}) };
      const response = await fetch(`${address}/turns/${id}/events`, { headers, signal: leaving.signal });
      return { response, leave: () => leaving.abort() };
    };
    const first = await connect();
    expect(first.response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    let seen = '';
    for await (const part of first.response.body as ReadableStream<Uint8Array>) {
      seen += Buffer.from(part).toString();
      if (seen.includes('id: 2\n')) break;
    }
    first.leave();
    door.open();

    const rest = await (await connect('2')).response.text();
    expect(idsIn(seen)).toEqual(['1', '2']);
    expect(idsIn(rest)).toEqual(['3', '4']);
    expect(rest).toContain('event: settled');
    expect((await connect('4')).response.status).toBe(204);
    expect((await connect('x')).response.status).toBe(400);
  });

  it('FIX-76 refuses a stream by its status, although interceptors let Nest send headers early', async () => {
    const memory = memoryAdapter();
    const get = async (turnId: string): Promise<Turn | null> => {
      await delay(50);
      return memory.turns.get(turnId);
    };
    const turns = new Proxy(memory.turns, {
      get: (target, name) => (name === 'get' ? get : (Reflect.get(target, name) as unknown)),
    });
    const slow = await clientApp({ platform, adapter: { ...memory, turns } });
    const { id } = await slow.session();
    await slow.ask('get', '/turns/of-nobody/events', { sessionId: id }).expect(404);
    await slow.app.close();
  });

  it('TRN-32 answers a HEAD of a stream at once, and keeps the connection usable', async () => {
    const { id } = await waiting();
    const { hostname, port } = new URL(await listening());
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const headers = { 'x-user-id': 'ann', 'x-session-id': sessionId };
    const ask = (method: string, path: string): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const sent = send({ agent, hostname, port, method, path, headers }, (answer) => {
          answer.on('data', () => undefined).on('end', () => resolve(answer.statusCode));
        });
        sent.setTimeout(5000, () => sent.destroy(new Error('No answer.')));
        sent.on('error', reject).end();
      });

    expect(await ask('HEAD', `/turns/${id}/events`)).toBe(200);
    expect(await ask('GET', `/turns/${id}`)).toBe(200);
    expect(await ask('HEAD', '/turns/of-nobody/events')).toBe(404);
    expect(await statusOf(id)).toBe('waiting');
    agent.destroy();
    await client.turns.cancel(id);
  });

  async function listening(): Promise<string> {
    if (!url) {
      await client.app.listen(0, '127.0.0.1');
      url = await client.app.getUrl();
    }
    return url;
  }

  function say({ as, key, ...body }: Said) {
    const sent = client.ask('post', '/turns', { as, sessionId, body });
    return key === undefined ? sent : sent.set('idempotency-key', key);
  }

  async function waiting(): Promise<TurnView> {
    const turn = (await say({ text: 'wait' }).expect(202)).body as TurnView;
    await eventually(async () => (await statusOf(turn.id)) === 'waiting');
    return turn;
  }

  async function statusOf(turnId: string): Promise<string | undefined> {
    return (await client.turns.get(turnId))?.status;
  }
});

it('NST-16 rejects whenBusy unless the application allows it', async () => {
  const { app, session, turns, ask } = await clientApp();
  const { id: sessionId } = await session();
  const body: unknown = (
    await ask('post', '/turns', { sessionId, body: { text: 'hi', whenBusy: 'enqueue' } }).expect(400)
  ).body;

  expect(body).toMatchObject({ code: 'INVALID_INPUT', message: 'body.whenBusy must not be set for this controller.' });
  expect(await turns.list({ sessionId })).toEqual([]);
  await app.close();
});

it('NST-16 TRN-01 returns the accepted turn even if touching its session fails', async () => {
  const { app, session, sessions, turns, ask } = await clientApp();
  const { id: sessionId } = await session();
  const warnings: unknown[][] = [];
  app.useLogger({ log() {}, error() {}, warn: (...told: unknown[]) => void warnings.push(told) });
  sessions.touch = () => Promise.reject(new Error('The store is away.'));
  await ask('post', '/turns', { sessionId, body: { text: 'hi' } }).expect(202);

  expect(await turns.list({ sessionId })).toHaveLength(1);
  expect(String(warnings[0]?.[0])).toBe(`Could not touch session ${sessionId} after its turn was accepted.`);
  await app.close();
});

function idsIn(stream: string): string[] {
  return [...stream.matchAll(/^id: (.*)$/gm)].map(([, id]) => id);
}
