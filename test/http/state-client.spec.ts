import 'reflect-metadata';
import { SessionStateService } from 'nestjs-agent-sessions';
import { type FetchAnswer, ResponseError, stateClient, type StateClient } from 'nestjs-agent-sessions/client';
import { rejection } from '../support/running-application.js';
import { PLATFORMS } from './http-app.js';
import { ANN, fill, filled, headersOf, OpenGuard, type StateApp, stateApp } from './state-app.js';

describe.each(PLATFORMS)('the client of the control plane with $name', (platform) => {
  let desk: StateApp;
  let baseUrl: string;
  let client: StateClient;
  let sessionId: string;

  beforeAll(async () => {
    desk = await stateApp({ platform });
    await desk.app.listen(0, '127.0.0.1');
    baseUrl = await desk.app.getUrl();
    client = stateClient({ baseUrl, headers: headersOf(ANN) });
  });

  beforeEach(async () => {
    sessionId = (await desk.session()).id;
    await fill(desk.adapter, sessionId);
  });

  afterAll(() => desk.app.close());

  it('STA-21 describes, resets and compacts', async () => {
    const described = await client.describe({ sessionId, stores: ['tools', 'nothing'] });
    const reset = await client.reset({ sessionId, metadata: { ticket: 7 } });
    const compacted = await client.compact({ sessionId, stores: ['tools'] });

    expect(described).toMatchObject({ operation: 'describe', sessionId, missing: ['nothing'] });
    expect(described.stores).toMatchObject([{ name: 'tools', exists: true, itemCount: 1, cleared: false }]);
    expect(reset).toMatchObject({ operation: 'reset', cleared: ['tools', 'flow'], metadata: { ticket: 7 } });
    expect(compacted).toMatchObject({ operation: 'compact', compacted: [] });
    expect(await filled(desk.adapter, sessionId)).toEqual([0, 0]);
  });

  it('STA-26 rejects with the status and the code of the error response', async () => {
    const unknown = await rejection(client.reset({ sessionId: 'of-nobody' }), ResponseError);
    const wrong = await rejection(client.reset({ sessionId: '' }), ResponseError);
    const nobody = await rejection(stateClient({ baseUrl }).describe({ sessionId }), ResponseError);

    expect(unknown).toMatchObject({ status: 404, code: 'SESSION_NOT_FOUND', name: 'ResponseError' });
    expect(wrong).toMatchObject({ status: 400, code: 'INVALID_INPUT' });
    expect(wrong.message).toMatch(/^body\.sessionId must be/);
    expect(nobody).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
  });

  it('STA-27 sends an idempotency key', async () => {
    const first = await client.reset({ sessionId }, { idempotencyKey: 'once' });
    await fill(desk.adapter, sessionId);

    expect(await client.reset({ sessionId }, { idempotencyKey: 'once' })).toEqual(first);
    expect(await filled(desk.adapter, sessionId)).toEqual([1, 1]);
    const other = client.reset({ sessionId, stores: ['tools'] }, { idempotencyKey: 'once' });
    expect(await rejection(other, ResponseError)).toMatchObject({ status: 422, code: 'IDEMPOTENCY_CONFLICT' });
  });

  it('STA-21 calls a function for the headers of each request, and accepts another path and a trailing slash', async () => {
    const admin = await stateApp({ platform, path: 'admin/state', configure: (app) => app.setGlobalPrefix('api') });
    await admin.app.listen(0, '127.0.0.1');
    const { id } = await admin.session();
    let asked = 0;
    const other = stateClient({
      baseUrl: `${await admin.app.getUrl()}/api/`,
      path: '/admin/state/',
      headers: async () => {
        asked += 1;
        return headersOf(ANN);
      },
    });

    await other.describe({ sessionId: id });
    await other.describe({ sessionId: id });

    expect(asked).toBe(2);
    await admin.app.close();
  });

  it('STA-21 is aborted by its signal', async () => {
    const aborted = AbortSignal.abort(new Error('No longer needed.'));

    await expect(client.describe({ sessionId }, { signal: aborted })).rejects.toThrow('No longer needed.');
  });

  it('STA-26 rejects with the partial result when some modules fail', async () => {
    const failing = await stateApp({ platform, guards: [new OpenGuard()] });
    await failing.app.listen(0, '127.0.0.1');
    const { id } = await failing.session();
    const state = failing.app.get(SessionStateService);
    const reset = state.reset.bind(state);
    state.reset = async (request) => ({
      ...(await reset(request)),
      errors: [{ store: 'flow', code: 'COMPACTION_BUSY', message: 'Somebody else is at it.', retryAfterMs: 1500 }],
    });
    await fill(failing.adapter, id);
    const other = stateClient({ baseUrl: await failing.app.getUrl(), headers: headersOf(ANN) });

    const error = await rejection(other.reset({ sessionId: id, stores: ['tools'] }), ResponseError);

    // Modules were cleared: 409 would mean that nothing was done.
    expect(error).toMatchObject({ status: 500, code: 'COMPACTION_BUSY', message: 'flow: Somebody else is at it.' });
    expect(error).toMatchObject({ retryAfter: 2 });
    expect(error.result).toMatchObject({ operation: 'reset', cleared: ['tools'] });
    expect(failing.events).toMatchObject([{ outcome: 'failed', code: 'COMPACTION_BUSY', cleared: ['tools'] }]);

    const refused = await rejection(other.reset({ sessionId: id, stores: ['task'] }), ResponseError);
    expect(refused).toMatchObject({ status: 409, code: 'COMPACTION_BUSY' });
    state.reset = async (request) => ({
      ...(await reset(request)),
      errors: [
        { store: 'task', code: 'STATE_CONFLICT', message: 'Others changed it.' },
        { store: 'cart', code: 'STATE_CONFLICT', message: 'Others changed it.' },
      ],
    });
    const unsure = await rejection(other.reset({ sessionId: id, stores: ['task'] }), ResponseError);
    expect(unsure).toMatchObject({ status: 500, code: 'STATE_CONFLICT' });
    state.reset = async (request) => ({
      ...(await reset(request)),
      errors: [
        { store: 'task', code: 'STATE_CONFLICT', message: 'Others changed it.' },
        { store: 'flow', code: 'STORE_UNAVAILABLE', message: 'The store is not available.' },
      ],
    });
    const unavailable = await rejection(other.reset({ sessionId: id, stores: ['task'] }), ResponseError);
    expect(unavailable).toMatchObject({ status: 503, code: 'STORE_UNAVAILABLE', retryAfter: 1 });
    await failing.app.close();
  });
});

describe('the client of the control plane', () => {
  const answering = (status: number, text: string) =>
    stateClient({ baseUrl: 'http://desk', fetch: async () => answer(status, text) });

  it.each([
    [502, '<html>Bad gateway</html>'],
    [200, '<html>Please sign in</html>'],
    [200, '{}'],
    [200, 'null'],
    [200, '{"operation":"describe"}'],
    [500, '{"message":{"text":"no text"},"code":5}'],
    [204, ''],
  ])('STA-26 rejects %i %j as an unexpected answer', async (status, text) => {
    const error = await rejection(answering(status, text).reset({ sessionId: 's1' }), ResponseError);

    expect(error).toMatchObject({ status, code: 'UNEXPECTED_ANSWER' });
  });

  it('STA-26 reports when to retry', async () => {
    const busy = answering(409, '{"code":"REQUEST_IN_PROGRESS","message":"Later.","retryAfter":1}');

    expect(await rejection(busy.reset({ sessionId: 's1' }), ResponseError)).toMatchObject({ retryAfter: 1 });
  });
});

function answer(status: number, text: string): FetchAnswer {
  return { status, text: async () => text };
}
