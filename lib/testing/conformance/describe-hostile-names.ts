import { type NewCheckpoint } from '../../ledger/checkpoint.js';
import { type NewSession } from '../../ledger/session.js';
import { type StateAddress } from '../../ledger/state.store.js';
import { create, draft, HOSTILE_NAMES, HOUR, idsOf, lookalikeIds, RULES } from './session-fixtures.js';
import { LONG_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Characters that ids may contain and that a store may use between the parts of a key. */
const SEPARATORS = [':', '/', '.', '_', '~', '@', '+', '=', '-'];

/** Tests that every key of every port distinguishes ids and names that look alike or have the maximum length. */
export function describeHostileNames(context: ConformanceContext): void {
  describe('hostile names', () => {
    let lane: TestLane;

    beforeEach(async () => {
      lane = await TestLane.open(context);
    });

    it('SES-03 distinguishes sessions by every character of their ids', async () => {
      const [deleted, erased, ...kept] = lookalikeIds(context.id());
      for (const id of [deleted, erased, ...kept]) await create(context, { id, metadata: { id } });
      for (const id of kept) expect(await context.sessions.fetchById(id)).toMatchObject({ id, metadata: { id } });
      await context.sessions.delete(deleted);
      await context.sessions.erase(erased);

      for (const id of kept) {
        const { turn } = await lane.accept(id, { sessionId: id });
        expect(turn).toMatchObject({ sessionId: id, position: 1 });
        expect(await context.adapter.turns.list({ sessionId: id })).toEqual([turn]);
        expect((await context.sessions.expire(id)).session).toMatchObject({ id, metadata: { id } });
      }
      await create(context, { id: deleted });
      expect(await context.sessions.fetchById(erased)).toBeNull();
    });

    it.each([
      ['users', (userId: string) => ({ userId, attachedSurfaces: ['web'] })],
      ['workspaces', (workspaceId: string) => ({ workspaceId, attachedSurfaces: ['web'] })],
      ['surfaces', (surface: string) => ({ attachedSurfaces: [surface] })],
    ] as const)('SES-07 SES-16 never moves surfaces or adopts sessions between %s that look alike', async (_, part) => {
      const owner = { userId: context.id(), workspaceId: context.id() };
      const slots = HOSTILE_NAMES.map((name): Partial<NewSession> => ({ ...owner, ...part(name) }));
      const ids: string[] = [];
      for (const slot of slots) {
        const made = await context.sessions.createOrAdopt(draft(context, slot), RULES, HOUR);
        expect(made).toMatchObject({ created: true, movedFrom: [], session: slot });
        ids.push(made.session.id);
      }

      for (const [index, slot] of slots.entries()) {
        const again = await context.sessions.createOrAdopt(draft(context, slot), RULES, HOUR);
        expect(again).toMatchObject({ created: false, session: { id: ids[index], ...slot } });
        const { movedFrom } = await context.sessions.create(draft(context, slot), RULES);
        expect(idsOf(movedFrom)).toEqual([ids[index]]);
      }
    });

    it('TRN-01 distinguishes turns by every character of their ids', async () => {
      const ids = lookalikeIds(context.id());
      for (const id of ids) expect(await lane.accept(id, { id })).toMatchObject({ turn: { id }, duplicate: false });
      for (const id of ids) expect(await lane.get(id)).toMatchObject({ id, request: { input: { text: id } } });
      const [cancelled, ...others] = ids;
      await lane.adapter.turns.cancel(cancelled, 'cancel');
      await lane.adapter.turns.signal(others[0], 'go', 'go');

      for (const id of others) expect(await lane.get(id)).toMatchObject({ status: 'queued' });
      for (const id of others.slice(1)) {
        expect(await lane.adapter.turns.signal(id, 'go', id)).toMatchObject({ accepted: true });
      }
      expect(await lane.drain()).toEqual(others);
    });

    it('TRN-05 distinguishes idempotency keys by every character', async () => {
      const keyed = (key: string) => ({ idempotency: { key, hash: 'hash', ttlMs: LONG_MS } });
      const ids: string[] = [];
      for (const key of HOSTILE_NAMES) {
        const { turn, duplicate } = await lane.accept(key, keyed(key));
        expect({ duplicate, idempotencyKey: turn.idempotencyKey }).toEqual({ duplicate: false, idempotencyKey: key });
        ids.push(turn.id);
      }
      for (const [index, key] of HOSTILE_NAMES.entries()) {
        expect(await lane.accept(key, keyed(key))).toMatchObject({ duplicate: true, turn: { id: ids[index] } });
      }
    });

    it('BOT-20 distinguishes orchestrators, and returns the checkpoint and window of each', async () => {
      const { checkpoints } = context.adapter;
      for (const name of HOSTILE_NAMES) await checkpoints.append(checkpointOf(name), 'all');
      await context.adapter.conversations.append(lane.sessionId, [{ id: context.id(), role: 'user', content: 'hi' }]);
      for (const name of HOSTILE_NAMES) {
        await lane.queue(name, { orchestrator: name, version: name });
        const { hold, turn, checkpoint, history } = await lane.take({ windows: { [name]: 1 } });
        expect(turn).toMatchObject({ orchestrator: name, version: name });
        expect(checkpoint).toMatchObject(checkpointOf(name));
        expect(history).toHaveLength(1);
        await lane.settle(hold, { checkpoint: { ...checkpointOf(name), turnIndex: 1 } });
      }
      // Names of inherited properties must not select a window.
      await lane.queue('hello', { orchestrator: 'constructor' });
      expect((await lane.take()).history).toEqual([]);

      const [deleted, ...kept] = HOSTILE_NAMES;
      await checkpoints.delete(deleted, lane.sessionId);
      for (const name of kept) {
        const history = await checkpoints.history(name, lane.sessionId);
        expect(history).toMatchObject([{ ...checkpointOf(name), turnIndex: 1 }, checkpointOf(name)]);
        expect(await checkpoints.list(name, { prefix: lane.sessionId })).toEqual([lane.sessionId]);
        expect(await checkpoints.prune(name, lane.sessionId, 1)).toBe(1);
      }
    });

    it('BOT-20 distinguishes the checkpoints of sessions by every character of their ids', async () => {
      const { checkpoints } = context.adapter;
      const [deleted, ...kept] = lookalikeIds(context.id());
      const orchestrator = context.id();
      for (const sessionId of [deleted, ...kept]) {
        await checkpoints.append({ ...checkpointOf(orchestrator), sessionId, state: { sessionId } }, 'all');
      }
      await checkpoints.delete(orchestrator, deleted);

      for (const sessionId of kept) {
        expect(await checkpoints.load(orchestrator, sessionId)).toMatchObject({ sessionId, state: { sessionId } });
      }
      expect(await checkpoints.list(orchestrator)).toEqual([...kept].sort());
    });

    it('BOT-30 distinguishes steps by name and intent', async () => {
      const { hold } = await lane.run('hello');
      const steps = HOSTILE_NAMES.flatMap((name) => [
        { ...lane.step(name, [name]) },
        { ...lane.step('ask', [name]), intent: name },
      ]);
      for (const step of steps) expect(await lane.adapter.turns.saveStep(hold, step)).toEqual(step);
      await lane.adapter.turns.release(hold, 0);
      const stored = (await lane.take()).steps;

      expect(stored).toHaveLength(steps.length);
      expect(stored).toEqual(expect.arrayContaining(steps));
    });

    it('TRN-13 distinguishes signals by every character', async () => {
      const { turns } = lane.adapter;
      const [last, ...early] = HOSTILE_NAMES;
      const { hold, turn } = await lane.run('hello');
      for (const name of early) expect(await turns.signal(turn.id, name, name)).toMatchObject({ accepted: true });
      for (const name of early) {
        const { received } = await turns.wait(hold, { signal: name, step: lane.step(name, null) });
        expect(received).toEqual({ payload: name });
      }

      const suspended = await turns.wait(hold, { signal: last, step: lane.step(last, null) });
      expect(suspended.turn.waitingFor).toEqual({ signal: last });
      expect(await turns.signal(turn.id, last, last)).toMatchObject({ accepted: true, turn: { status: 'queued' } });
    });

    it('TRN-03 distinguishes the holders of a lane by every character', async () => {
      const [mine, ...others] = HOSTILE_NAMES;
      await lane.queue('hello');
      const claimed = await lane.take({ holder: mine });

      for (const holder of others) expect(await lane.claim({ holder })).toBeNull();
      expect(await lane.claim({ holder: mine })).toEqual(claimed);
    });

    it('distinguishes leases and their holders by every character', async () => {
      const { leases } = context.adapter;
      const holder = context.id();
      for (const name of HOSTILE_NAMES) {
        const lease = await leases.acquire(name, holder, HOUR);
        expect(lease).toEqual({ name, holder, fence: lease?.fence });
      }
      for (const name of HOSTILE_NAMES) expect(await leases.acquire(name, 'another', HOUR)).toBeNull();

      const [mine, ...others] = HOSTILE_NAMES;
      const name = context.id();
      const lease = await leases.acquire(name, mine, HOUR);
      for (const other of others) expect(await leases.acquire(name, other, HOUR)).toBeNull();
      expect(await leases.acquire(name, mine, HOUR)).toEqual(lease);
    });

    it.each(['namespace', 'scope', 'key'] as const)(
      'tells documents apart by every character of the %s',
      async (part) => {
        const { state } = context.adapter;
        const address = addressOf(lane.sessionId);
        const versions = new Map<string, number>();
        for (const name of HOSTILE_NAMES) {
          const stored = await state.set({ ...address, [part]: name }, name, { ifVersion: 0 });
          versions.set(name, stored?.version ?? NaN);
        }
        const [deleted, ...kept] = HOSTILE_NAMES;
        await state.delete({ ...address, [part]: deleted });
        for (const name of kept) expect(await state.get({ ...address, [part]: name })).toMatchObject({ value: name });
        for (const name of kept) {
          const ifVersion = versions.get(name) ?? NaN;
          const append = { id: context.id(), entries: [name], ifVersion };
          const appended = await state.append({ ...address, [part]: name }, append);
          expect(appended).toMatchObject({ value: name, batches: [{ entries: [name] }], version: ifVersion + 1 });
        }
      },
    );

    it('STA-03 keeps the ids of messages, and distinguishes the logs of sessions', async () => {
      const { conversations } = context.adapter;
      const ids = lookalikeIds(context.id());
      for (const id of ids) await conversations.append(id, [{ id, role: 'user', content: id }]);
      for (const id of ids) expect(await conversations.page(id)).toMatchObject([{ id, content: id, position: 1 }]);

      const drafts = ids.map((id) => ({ id, role: 'user', content: id }) as const);
      await conversations.append(lane.sessionId, drafts);
      expect(await conversations.page(lane.sessionId)).toMatchObject(drafts);
    });

    it.each(SEPARATORS)('distinguishes keys whose parts are equal when joined by %s', async (separator) => {
      const { checkpoints, state, turns } = context.adapter;
      const unique = context.id();
      const [short, long] = [unique, `${unique}${separator}b`];
      const [tail, rest] = [`b${separator}c`, 'c'];
      for (const id of [short, long]) await create(context, { id });
      const pairs = [
        [short, tail],
        [long, rest],
      ] as const;

      for (const [id, name] of pairs) {
        const idempotency = { key: name, hash: id, ttlMs: LONG_MS };
        expect(await lane.accept(id, { id, sessionId: id, idempotency })).toMatchObject({ duplicate: false });
        expect(await turns.signal(id, name, id)).toMatchObject({ accepted: true });
        await checkpoints.append({ ...checkpointOf(id), sessionId: name }, 'all');
        await state.set({ ...addressOf(id), key: name }, id);
        await state.set({ ...addressOf('session'), namespace: id, scope: name }, id);
      }
      const { hold } = await lane.run('hello');
      for (const [intent, name] of pairs) {
        const step = { ...lane.step(name, intent), intent };
        expect(await turns.saveStep(hold, step)).toEqual(step);
      }

      for (const [id, name] of pairs) {
        expect(await checkpoints.load(id, name)).toMatchObject({ orchestrator: id, sessionId: name });
        expect(await state.get({ ...addressOf(id), key: name })).toMatchObject({ value: id, batches: [] });
        const scoped = { ...addressOf('session'), namespace: id, scope: name };
        expect(await state.get(scoped)).toMatchObject({ value: id, batches: [] });
      }
    });

    it('accepts ids and names of the maximum length in all keys at once', async () => {
      const { checkpoints, state, turns } = context.adapter;
      const longest = (character: string): string => context.id() + character.repeat(256 - 32);
      const id = (): string => context.id() + 'x'.repeat(200 - 32);
      const [userId, workspaceId, surface] = [longest('日'), longest('é'), longest('ü')];
      const session = await create(context, { id: id(), userId, workspaceId, attachedSurfaces: [surface] });
      const sessionId = session.id;
      const orchestrator = longest('本');
      const signal = longest('語');
      const step = { ...lane.step(longest('ß'), true), intent: longest('€') };
      const idempotency = { key: longest('ж'), hash: 'h'.repeat(64), ttlMs: LONG_MS };
      const { turn } = await lane.accept('hello', {
        id: id(),
        sessionId,
        orchestrator,
        version: longest('1'),
        idempotency,
      });
      const claimed = await turns.claim(sessionId, lane.claimRequest({ holder: longest('h') }));
      if (!claimed) throw new Error('The turn could not be claimed.');
      const { hold } = claimed;
      await turns.saveStep(hold, step);
      await turns.wait(hold, { signal, step: { ...step, name: longest('w') } });
      const { waitingFor } = (await turns.get(turn.id)) ?? {};
      await turns.signal(turn.id, signal, true);
      const resumed = await turns.claim(sessionId, lane.claimRequest());
      const checkpoint = { ...checkpointOf(orchestrator), sessionId, version: longest('v'), turnId: turn.id };
      const messages = [{ id: id(), role: 'user', content: 'hello' } as const];
      await lane.settle(resumed?.hold ?? hold, { messages, checkpoint });

      expect(await context.sessions.fetchMany({ userId, workspaceId, surfaceId: surface })).toMatchObject([
        { id: sessionId, userId, workspaceId, attachedSurfaces: [surface] },
      ]);
      expect(waitingFor).toEqual({ signal });
      expect(await turns.get(turn.id)).toMatchObject({
        ...turn,
        status: 'awaiting-input',
        turnIndex: 0,
      });
      expect(resumed?.steps).toEqual(expect.arrayContaining([step]));
      expect(resumed?.steps).toHaveLength(2);
      expect(await checkpoints.load(orchestrator, sessionId)).toMatchObject(checkpoint);
      expect(await context.adapter.conversations.page(sessionId)).toMatchObject([
        { ...messages[0], turnId: turn.id, orchestrator },
      ]);
      const address = { namespace: longest('n'), scope: longest('s'), sessionId, key: longest('日') };
      const written = await state.set(address, 'here');
      expect(await state.get(address, { ttlMs: HOUR })).toMatchObject({ value: 'here' });
      const { version } = written ?? {};
      expect(await state.append(address, { id: longest('b'), entries: [] })).toMatchObject({ version });
      expect(await state.evictIdle(address.namespace, 0, 1)).toBe(1);
      const [name, holder] = [longest('l'), longest('日')];
      expect(await context.adapter.leases.acquire(name, holder, HOUR)).toMatchObject({ name, holder });
    });

    function checkpointOf(name: string): NewCheckpoint {
      return { ...lane.checkpoint(0, 'turn'), orchestrator: name, version: name, signature: name, lastRoute: [name] };
    }
  });
}

function addressOf(sessionId: string): StateAddress {
  return { namespace: 'namespace', scope: '', sessionId, key: 'key' };
}
