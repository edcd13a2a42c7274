import 'reflect-metadata';
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { type SessionsAdapter, SessionStateService } from 'nestjs-agent-sessions';
import { type DocumentStore, type StateEntry } from 'nestjs-agent-sessions/adapter';
import { type StateOperationResult } from 'nestjs-agent-sessions/http';
import { RequestKeys } from '../../lib/http/state/request-keys.js';
import { StateRequestError } from '../../lib/http/state/state-http.errors.js';
import { gate, LASTING_STORES, rejection } from '../support/running-application.js';
import { eventually } from '../support/eventually.js';
import { PLATFORMS } from './http-app.js';
import { fill, filled, OPERATOR, type StateApp, stateApp } from './state-app.js';

const RESULT: StateOperationResult = {
  operation: 'reset',
  sessionId: 's1',
  stores: [],
  cleared: ['tools'],
  compacted: [],
  missing: [],
  errors: [],
  metadata: { note: 'NUL \u0000, lone \ud83d surrogate' },
};
/** Leaves enough time to renew on a machine that pauses for two seconds. */
const RESERVED_MS = 3600;
/** Short enough for a test to wait until it expires. */
const BRIEF_MS = 300;
const ann = { userId: 'ann' };
const asked = (key: string, content = '{}', principal: { userId: string; workspaceId?: string } = ann) => ({
  principal,
  key,
  content,
});

beforeAll(() => void Logger.overrideLogger(false));
afterAll(() => void Logger.overrideLogger(true));

describe.each(LASTING_STORES)('Idempotency-Keys on $name', ({ create }) => {
  let adapters: SessionsAdapter[];

  beforeAll(async () => {
    const open = create();
    adapters = [open(), open()];
    for (const adapter of adapters) await adapter.init?.();
  });

  afterAll(async () => {
    for (const adapter of adapters) await adapter.close?.();
  });

  /** Returns when the entries of a key expire, in milliseconds since 1970. */
  const endOf = async (key: string): Promise<number> => {
    const kept = await keptFor(adapters[1], key);
    return Math.min(...kept.map(({ document }) => Date.parse(document.expiresAt ?? '')));
  };

  it('STA-27 runs the work once and returns the result again, also in another process', async () => {
    let done = 0;
    const act = async (): Promise<StateOperationResult> => {
      done += 1;
      return RESULT;
    };
    const [one, two] = adapters.map(({ state }) => new RequestKeys(state));

    expect(await one.once(asked('k1'), act)).toEqual({ result: RESULT, repeated: false });
    expect(await one.once(asked('k1'), act)).toEqual({ result: RESULT, repeated: true });
    expect(await two.once(asked('k1'), act)).toEqual({ result: RESULT, repeated: true });
    expect(done).toBe(1);
  });

  it('STA-27 rejects a key with other content, and separates the keys of principals', async () => {
    const [one, two] = adapters.map(({ state }) => new RequestKeys(state));
    const act = async () => RESULT;
    await one.once(asked('k2', 'a'), act);

    await rejection(two.once(asked('k2', 'b'), act), StateRequestError, 'IDEMPOTENCY_CONFLICT');
    await rejection(two.bind(asked('k2', 'b')), StateRequestError, 'IDEMPOTENCY_CONFLICT');
    expect(await two.once(asked('k2', 'b', { userId: 'bob' }), act)).toMatchObject({ repeated: false });
    expect(await two.once(asked('k2', 'b', { userId: 'ann', workspaceId: 'w' }), act)).toMatchObject({
      repeated: false,
    });
  });

  it('STA-27 runs the work once for concurrent requests in two processes', async () => {
    for (let round = 0; round < 10; round += 1) {
      let done = 0;
      const act = async (): Promise<StateOperationResult> => {
        done += 1;
        await delay(2);
        return RESULT;
      };
      const racers = Array.from({ length: 8 }, (_, index) => new RequestKeys(adapters[index % 2].state));

      const outcomes = await Promise.allSettled(racers.map((keys) => keys.once(asked(`race-${round}`), act)));

      expect(done).toBe(1);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'REQUEST_IN_PROGRESS' });
        else expect(outcome.value.result).toEqual(RESULT);
      }
      expect(outcomes.filter((one) => one.status === 'fulfilled' && !one.value.repeated)).toHaveLength(1);
    }
  });

  it('STA-27 holds a key for as long as the work runs', async () => {
    const [one, two] = adapters.map(({ state }) => new RequestKeys(state, RESERVED_MS));
    const work = gate();
    const begun = gate();
    const first = one.once(asked('long'), async () => {
      begun.open();
      await work.pass();
      return RESULT;
    });
    await begun.pass();
    const firstEnd = await endOf('long');
    // Wait until the reservation was renewed.
    await eventually(async () => (await endOf('long')) > firstEnd + RESERVED_MS / 2);
    const refused = await rejection(
      two.once(asked('long'), async () => RESULT),
      StateRequestError,
      'REQUEST_IN_PROGRESS',
    );
    expect(refused.retryAfterMs).toBe(1000);

    work.open();

    expect(await first).toMatchObject({ repeated: false });
    expect(await two.once(asked('long'), async () => RESULT)).toMatchObject({ repeated: true });
  });

  it('STA-27 keeps the next holder’s reservation when a holder that slept past its own wakes up', async () => {
    const [one, two] = adapters.map(({ state }) => state);
    const asleep = sleeper(one);
    const works = [gate(), gate()];
    const begun = [gate(), gate()];
    const work = (index: number) => async (): Promise<StateOperationResult> => {
      begun[index].open();
      await works[index].pass();
      if (index === 0) throw new Error('The sleeper failed.');
      return { ...RESULT, cleared: [`by ${index}`] };
    };
    const first = new RequestKeys(asleep.store, BRIEF_MS).once(asked('three'), work(0));
    await begun[0].pass();
    asleep.sleep();
    const keys = new RequestKeys(two);
    const second = eventually(() => keys.once(asked('three'), work(1)).catch(() => null));
    await begun[1].pass();

    // The first holder wakes up, renews and fails. The second one's reservation must not change.
    const slept = asleep.answers();
    asleep.wake();
    await eventually(() => asleep.answers() > slept + 1);
    works[0].open();
    await rejection(first, Error);
    await rejection(
      keys.once(asked('three'), () => Promise.reject(new Error('A third one did it.'))),
      StateRequestError,
      'REQUEST_IN_PROGRESS',
    );
    works[1].open();

    const done = { ...RESULT, cleared: ['by 1'] };
    expect(await second).toEqual({ result: done, repeated: false });
    expect(await keys.once(asked('three'), async () => RESULT)).toEqual({ result: done, repeated: true });
  });

  it('STA-27 does not replace the next holder’s result with that of a late holder', async () => {
    const [one, two] = adapters.map(({ state }) => state);
    const asleep = sleeper(one);
    const work = gate();
    const begun = gate();
    const first = new RequestKeys(asleep.store, BRIEF_MS).once(asked('late'), async () => {
      begun.open();
      await work.pass();
      return { ...RESULT, cleared: ['late'] };
    });
    await begun.pass();
    asleep.sleep();
    const keys = new RequestKeys(two);
    await eventually(() => keys.once(asked('late'), async () => RESULT).catch(() => null));
    asleep.wake();
    work.open();

    expect(await first).toMatchObject({ result: { cleared: ['late'] } });
    expect(await keys.once(asked('late'), async () => RESULT)).toEqual({ result: RESULT, repeated: true });
  });

  it('STA-27 frees the key of a process that died when its reservation expires', async () => {
    const dying = mortal(adapters[0].state);
    const reached = gate();
    const end = gate();
    const begins = performance.now();
    const first = new RequestKeys(dying.store, BRIEF_MS).once(asked('dead'), async () => {
      reached.open();
      await end.pass();
      return RESULT;
    });
    await reached.pass();
    dying.die();
    const keys = new RequestKeys(adapters[1].state);

    const done = await eventually(() => keys.once(asked('dead'), async () => RESULT).catch(() => null));

    expect(done).toEqual({ result: RESULT, repeated: false });
    // Stores count whole milliseconds.
    expect(performance.now() - begins).toBeGreaterThan(BRIEF_MS - 1);
    end.open();
    await first;
  });

  it('STA-27 frees the key at once when the work fails', async () => {
    const keys = new RequestKeys(adapters[0].state);
    const failing = keys.once(asked('failing'), () => Promise.reject(new Error('It broke.')));

    expect((await rejection(failing, Error)).message).toBe('It broke.');
    await eventually(() => keys.once(asked('failing'), async () => RESULT).catch(() => null));
  });

  it('STA-27 returns a result even if it cannot be stored', async () => {
    const { store, die } = mortal(adapters[0].state);
    const keys = new RequestKeys(store);

    const answered = await keys.once(asked('lost'), async () => {
      die();
      return RESULT;
    });

    expect(answered).toEqual({ result: RESULT, repeated: false });
  });
});

describe.each(PLATFORMS)('Idempotency-Key over HTTP on $name', (platform) => {
  let desk: StateApp;
  let sessionId: string;

  beforeAll(async () => {
    desk = await stateApp({ platform, state: { summarize: () => 'they talked of secrets' } });
  });

  beforeEach(async () => {
    sessionId = (await desk.session()).id;
    await fill(desk.adapter, sessionId);
  });

  afterAll(() => desk.app.close());

  const reset = (key: string, body: object = {}) =>
    desk.post('/state/reset', { sessionId, ...body }).set('idempotency-key', key);

  it('STA-27 returns the result again for a repeated request, and clears nothing', async () => {
    const first = await reset('r1', { metadata: { a: 1, b: 2 } }).expect(200);
    await fill(desk.adapter, sessionId);

    // The same content with the keys in another order.
    const repeat = await desk
      .post('/state/reset', { metadata: { b: 2, a: 1 }, sessionId })
      .set('idempotency-key', 'r1')
      .expect(200);

    expect(repeat.body).toEqual(first.body);
    expect(repeat.body).toMatchObject({ cleared: ['tools', 'flow'] });
    expect(await filled(desk.adapter, sessionId)).toEqual([1, 1]);
    expect(desk.events.slice(-2)).toMatchObject([
      { outcome: 'done', cleared: ['tools', 'flow'] },
      { outcome: 'repeated', cleared: [] },
    ]);
  });

  it('STA-27 answers 422 to the key with another body or path', async () => {
    await reset('r2', { stores: ['tools'] }).expect(200);

    const body = await reset('r2', { stores: ['flow'] }).expect(422);
    const path = await desk
      .post('/state/describe', { sessionId, stores: ['tools'] })
      .set('idempotency-key', 'r2')
      .expect(422);

    expect(body.body).toMatchObject({ statusCode: 422, code: 'IDEMPOTENCY_CONFLICT' });
    expect(path.body).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    expect(await filled(desk.adapter, sessionId)).toEqual([0, 1]);
  });

  it('STA-27 checks the session’s owner first, and separates the keys of principals', async () => {
    await reset('r3').expect(200);

    await desk
      .post('/state/reset', { sessionId }, { ...OPERATOR, userId: 'bob', capabilities: ['state.reset'] })
      .set('idempotency-key', 'r3')
      .expect(404);
    const operator = await desk
      .post('/state/reset', { sessionId, stores: ['flow'] }, OPERATOR)
      .set('idempotency-key', 'r3')
      .expect(200);
    expect(operator.body).toMatchObject({ cleared: [] });
  });

  it('STA-27 describes the current state for a repeated key', async () => {
    const describe = () => desk.post('/state/describe', { sessionId }).set('idempotency-key', 'r4').expect(200);
    const before = await describe();
    await reset('r5').expect(200);
    const after = await describe();

    expect(after.body).not.toEqual(before.body);
    await desk
      .post('/state/describe', { sessionId, stores: ['tools'] })
      .set('idempotency-key', 'r4')
      .expect(422);
  });

  it.each([[''], ['a b'], ['a, b'], ['x'.repeat(256)], ['schlüssel']])(
    'STA-27 answers 400 to the key %j',
    async (key) => {
      const answer = await reset(key);

      expect([answer.status, answer.body]).toEqual([400, expect.objectContaining({ code: 'INVALID_INPUT' })]);
      expect(await filled(desk.adapter, sessionId)).toEqual([1, 1]);
    },
  );

  it('STA-27 stores no message text for a key', async () => {
    const state = desk.app.get(SessionStateService);
    const texts = ['the first secret', 'the second secret', 'the third secret'];
    for (const content of texts) await state.conversation.append(sessionId, [{ role: 'user', content }]);
    const body = { sessionId, includeData: true };
    const describe = await desk.post('/state/describe', body).set('idempotency-key', 'd1').expect(200);
    const compact = { sessionId, strategy: 'summary', preserveRecent: 1 };
    const compacted = await desk.post('/state/compact', compact).set('idempotency-key', 'c1').expect(200);

    expect(describe.text).toContain('the first secret');
    expect(compacted.body).toMatchObject({ compacted: ['conversation'] });
    const kept = [...(await keptFor(desk.adapter, 'd1')), ...(await keptFor(desk.adapter, 'c1'))];
    expect(kept).toHaveLength(4);
    expect(JSON.stringify(kept)).not.toMatch(/secret|they talked/);
  });

  it('STA-27 leaves the key free after a rejection', async () => {
    await desk.post('/state/reset', { sessionId, other: 1 }).set('idempotency-key', 'r6').expect(400);
    await reset('r6').expect(200);
  });
});

/** Returns all entries that are stored for a key of Ann's. */
function keptFor({ state }: SessionsAdapter, key: string): Promise<StateEntry[]> {
  const sessionId = createHash('sha256')
    .update(JSON.stringify(['ann', null, key]))
    .digest('hex');
  return state.list({ namespace: 'agent-sessions:state-requests', sessionId, limit: 10 });
}

/** A store of a process that can sleep. Calls during the sleep run when it wakes up. */
function sleeper(store: DocumentStore) {
  let awake = gate();
  awake.open();
  let answers = 0;
  const proxy = new Proxy(store, {
    get(target, method) {
      const value: unknown = Reflect.get(target, method);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]): Promise<unknown> => {
        await awake.pass();
        return Promise.resolve(Reflect.apply(value, target, args)).finally(() => (answers += 1));
      };
    },
  });
  return { store: proxy, answers: () => answers, sleep: () => (awake = gate()), wake: () => awake.open() };
}

/** A store whose calls fail after its process died. */
function mortal(store: DocumentStore): { readonly store: DocumentStore; readonly die: () => void } {
  let dead = false;
  const proxy = new Proxy(store, {
    get(target, method) {
      const value: unknown = Reflect.get(target, method);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown =>
        dead ? Promise.reject(new Error('The process is dead.')) : Reflect.apply(value, target, args);
    },
  });
  return {
    store: proxy,
    die: () => {
      dead = true;
    },
  };
}
