import { setTimeout as delay } from 'node:timers/promises';
import {
  defineSessionManager,
  InvalidInputError,
  SessionConflictError,
  SessionManager,
  StateSerializationError,
} from 'nestjs-agent-sessions';
import { mintId } from '../../lib/common/ids.js';
import { clockGoesOn } from '../support/eventually.js';
import { anyText, textLike, describeStores } from '../support/orchestration.js';
import { rejection } from '../support/running-application.js';
import { whileSteady } from '../support/steady-clock.js';

interface Cart {
  items: string[];
  total: number;
}

const createDefault = (): Cart => ({ items: [], total: 0 });

describeStores('a session manager', (store) => {
  const carts = (options: object = {}) =>
    new SessionManager<Cart>(store().state, { namespace: 'carts', createDefault, ...options });

  it('ORC-16 creates with defaults, and with a state', async () => {
    const made = await carts().create();
    expect(made).toEqual({
      sessionId: textLike(/^[0-9a-f]{32}$/),
      state: { items: [], total: 0 },
      metadata: { createdAt: anyText(), lastAccessedAt: made.metadata.createdAt },
      version: expect.any(Number) as number,
    });
    expect(new Date(made.metadata.createdAt).toISOString()).toBe(made.metadata.createdAt);

    const sessionId = mintId();
    const state = { items: ['book'], total: 3 };
    expect(await carts().create(sessionId, { state })).toMatchObject({ sessionId, state });
    expect(await carts().get(sessionId)).toMatchObject({ sessionId, state });
    expect(await new SessionManager(store().state, { namespace: 'plain' }).create()).toMatchObject({ state: {} });
  });

  it('ORC-16 rejects the namespaces of this package', () => {
    expect(() => carts({ namespace: 'agent-sessions:tools' })).toThrow(
      'namespace must not begin with agent-sessions:, which is reserved for this package.',
    );
  });

  it('ORC-16 creates one for many who want the same', async () => {
    const sessionId = mintId();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 10 }, (_, total) => carts().create(sessionId, { state: { items: [], total } })),
    );
    const made = outcomes.filter((outcome) => outcome.status === 'fulfilled');
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');

    expect(made).toHaveLength(1);
    expect(refused.every(({ reason }) => reason instanceof SessionConflictError)).toBe(true);
    expect(await carts().get(sessionId)).toMatchObject({ state: made[0].value.state });
  });

  it('ORC-16 returns null without a state, and creates none', async () => {
    const sessionId = mintId();
    const asked: unknown[] = [];
    expect(await carts().get(sessionId)).toBeNull();
    expect(await carts().update(sessionId, (state) => (asked.push(state), state))).toBeNull();
    expect(await carts().delete(sessionId)).toBe(false);
    expect(asked).toEqual([]);
    expect(await carts().get(sessionId)).toBeNull();
  });

  it('ORC-16 loses none of many concurrent updates', async () => {
    const { sessionId, version: first } = await carts().create();
    const add = (n: number) => (state: Cart) => ({ items: [...state.items, `item ${n}`], total: state.total + n });
    await Promise.all(Array.from({ length: 10 }, (_, n) => carts().update(sessionId, add(n))));
    const { state, version } = (await carts().get(sessionId))!;

    expect(state.total).toBe(45);
    expect([...state.items].sort()).toEqual(Array.from({ length: 10 }, (_, n) => `item ${n}`));
    expect(version).toBe(first + 10);
  });

  it('ORC-16 repeats an update with the state that another writer committed meanwhile', async () => {
    const { sessionId, version } = await carts().create();
    const seen: number[] = [];
    const updated = await carts().update(sessionId, async (state) => {
      seen.push(state.total);
      if (seen.length === 1) await carts().update(sessionId, (other) => ({ ...other, total: 10 }));
      return { ...state, total: state.total + 1 };
    });

    expect(seen).toEqual([0, 10]);
    expect(updated).toMatchObject({ state: { total: 11 }, version: version + 2 });
  });

  it('ORC-16 an update of a session that is deleted meanwhile does not bring it back', async () => {
    const { sessionId } = await carts().create();
    const updated = await carts().update(sessionId, async (state) => {
      await carts().delete(sessionId);
      return state;
    });

    expect(updated).toBeNull();
    expect(await carts().get(sessionId)).toBeNull();
  });

  it('ORC-16 leaves the state unchanged if the function throws or does not return JSON', async () => {
    const { sessionId } = await carts().create();
    const problem = new Error('No.');
    const forge = (state: Cart): void => void state.items.push('forged');
    for (const change of [
      (state: Cart) => {
        forge(state);
        throw problem;
      },
      async (state: Cart) => {
        forge(state);
        return Promise.reject(problem);
      },
    ]) {
      await expect(carts().update(sessionId, change)).rejects.toBe(problem);
    }
    const unlike = () => ({ items: [], total: NaN });
    await rejection(carts().update(sessionId, unlike), StateSerializationError);

    expect(await carts().get(sessionId)).toMatchObject({ state: createDefault() });
  });

  it('ORC-16 updates the time of access, and keeps the time of creation', async () => {
    const { sessionId, metadata } = await carts().create();
    await clockGoesOn();
    const read = (await carts().get(sessionId))!.metadata;
    await clockGoesOn();
    const updated = (await carts().update(sessionId, (state) => state))!.metadata;

    expect([read.createdAt, updated.createdAt]).toEqual([metadata.createdAt, metadata.createdAt]);
    expect(read.lastAccessedAt > metadata.lastAccessedAt).toBe(true);
    expect(updated.lastAccessedAt > read.lastAccessedAt).toBe(true);
  });

  it('ORC-16 gives each session the TTL that was set at its creation', () =>
    whileSteady(100, async () => {
      const sessions = carts({ ttlMs: 300 });
      const [left, used, lasting] = [mintId(), mintId(), mintId()];
      await sessions.create(left);
      await sessions.create(used, { ttlMs: 400 });
      await sessions.create(lasting, { ttlMs: 'never' });
      for (let n = 0; n < 6; n += 1) {
        await delay(100);
        expect(await (n % 2 ? sessions.get(used) : sessions.update(used, (state) => state))).not.toBeNull();
      }

      expect(await sessions.get(left)).toBeNull();
      expect(await sessions.create(left)).toMatchObject({ sessionId: left });
      expect(await lifeOf(used)).toBe(400);
      await sessions.get(used);
      expect(await lifeOf(used)).toBe(400);
      await sessions.get(lasting);
      expect(await lifeOf(lasting)).toBe('never');
      await sessions.update(lasting, (state) => state);
      expect(await lifeOf(lasting)).toBe('never');
    }));

  it('ORC-16 keeps namespaces apart, and orchestration out', async () => {
    const { sessionId } = await carts().create();

    expect(await carts({ namespace: 'other' }).get(sessionId)).toBeNull();
    expect(await carts({ namespace: 'other' }).delete(sessionId)).toBe(false);
    expect(await carts().delete(sessionId)).toBe(true);
    expect(await carts().delete(sessionId)).toBe(false);
  });

  it.each([0, -1, 1.5, NaN, Infinity, '60', 3_153_600_000_001, null])('ORC-16 refuses ttlMs: %p', async (given) => {
    const ttlMs = given as number;
    if (given !== null) expect(() => carts({ ttlMs })).toThrow(InvalidInputError);
    await rejection(carts().create(undefined, { ttlMs }), InvalidInputError);
  });

  it('ORC-16 rejects unknown options, and options that are not an object', async () => {
    const allowed = 'Allowed: namespace, createDefault, ttlMs.';
    expect(() => carts({ ttlSeconds: 60 })).toThrow(
      `options.ttlSeconds is not a known key. ${allowed} Use ttlMs, in milliseconds.`,
    );
    expect(() => defineSessionManager({ namespace: 'carts', createDefautl: createDefault } as never)).toThrow(
      `options.createDefautl is not a known key. Did you mean createDefault? ${allowed}`,
    );
    const sessionId = mintId();
    const { message } = await rejection(carts().create(sessionId, { sate: {} } as never), InvalidInputError);
    expect(message).toBe('options.sate is not a known key. Did you mean state? Allowed: state, ttlMs.');
    await rejection(carts().create(sessionId, null as never), InvalidInputError);
    expect(await carts().get(sessionId)).toBeNull();

    for (const options of [undefined, null, [], 'carts']) {
      const make = () => new SessionManager(store().state, options as never);
      for (const each of [make, () => defineSessionManager(options as never)]) expect(each).toThrow(InvalidInputError);
    }
  });

  it('ORC-16 rejects invalid namespaces and ids', async () => {
    expect(() => carts({ namespace: '' })).toThrow(InvalidInputError);
    for (const call of [(id: string) => carts().get(id), (id: string) => carts().create(id)]) {
      await expect(async () => call('a b')).rejects.toThrow(InvalidInputError);
    }
  });

  /** Milliseconds from the last access on. */
  async function lifeOf(sessionId: string): Promise<number | 'never'> {
    const address = { namespace: 'carts', scope: '', sessionId, key: 'session' };
    const { accessedAt, expiresAt } = (await store().state.get(address))!;
    return expiresAt === undefined ? 'never' : Date.parse(expiresAt) - Date.parse(accessedAt);
  }
});
