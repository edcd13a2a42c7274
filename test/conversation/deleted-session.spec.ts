import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { type AtomicSessionStoreAdapter } from 'nestjs-agent-sessions/adapter';
import { earlierName, HEAD } from '../../lib/conversation/conversation-head.js';
import { ConversationHeads } from '../../lib/conversation/conversation-heads.js';
import { HeadLostError, HeldHead } from '../../lib/conversation/held-head.js';
import { eventually } from '../support/eventually.js';
import { LASTING_STORES, rejection } from '../support/running-application.js';
import { headOf, readThroughHead, speak, startProcess, task } from './compactors.js';

/** Short enough for a test to wait for. */
const LEASE_MS = 300;

describe.each(LASTING_STORES)('compaction of deleted sessions over $name', ({ create }) => {
  const sessionId = 's';

  const remove = ({ sessions }: SessionsAdapter, id = sessionId): Promise<unknown> =>
    (sessions as AtomicSessionStoreAdapter).delete(id);

  it('BOT-43 leaves no documents of a session that is deleted before or after any store call', async () => {
    const adapter = create()();
    const { compactor } = await startProcess(adapter);
    // Delete before or after the nth call; then the process continues or dies.
    for (const done of [false, true]) {
      for (const dies of [false, true]) {
        for (let at = 1; ; at += 1) {
          const id = `s-${done}-${dies}-${at}`;
          await speak(adapter, id, 1, 6);
          await compactor.compact(task(id));
          await speak(adapter, id, 7, 8);
          const names: { namespace: string; scope: string; key: string }[] = [HEAD];
          let calls = 0;
          let over = false;
          const state = proxied(adapter.state, async (work, args) => {
            if (over) throw new Error('This process is dead.');
            // A lease may be renewed during another call.
            const call = (calls += 1);
            const name = args[0] as (typeof names)[0];
            names.push({ namespace: name.namespace, scope: name.scope, key: name.key });
            if (call === at && !done) await remove(adapter, id);
            const result = await work();
            if (call === at && done) await remove(adapter, id);
            if (call === at) over = dies;
            return result;
          });
          const other = await startProcess(adapter, { adapter: { state }, leaseMs: LEASE_MS });
          await other.compactor.compact(task(id)).catch(() => undefined);
          if (calls < at) await remove(adapter, id);
          await eventually(async () => {
            const left = await Promise.all(names.map((name) => adapter.state.get({ ...name, sessionId: id })));
            return left.every((document) => document === null);
          });
          if (calls < at) break;
        }
      }
    }
  }, 60_000);

  it('BOT-43 leaves no head after a turn of a deleted session', async () => {
    const { adapter, compactor } = await startProcess(create()(), { leaseMs: LEASE_MS });
    const history = await speak(adapter, sessionId, 1, 6);
    await remove(adapter);
    const seen = { turnIndex: 5, history, from: 1, added: [] };
    compactor.consider(task(sessionId, { afterTurns: 1 }), null, seen, new Date().toISOString());
    await compactor.idle();
    await eventually(async () => (await adapter.state.get({ ...HEAD, sessionId })) === null);
  });

  it('BOT-43 keeps a replaced head unchanged when a frozen process writes later', async () => {
    const connect = create();
    const adapter = connect();
    let freeze = (): void => undefined;
    const frozen = new Promise<void>((resolve) => (freeze = resolve));
    let thaw = (): void => undefined;
    const thawed = new Promise<void>((resolve) => (thaw = resolve));
    let refuse = (): void => undefined;
    const refused = new Promise<void>((resolve) => (refuse = resolve));
    const before = await startProcess(adapter);
    await speak(adapter, sessionId, 1, 6);
    await before.compactor.compact(task(sessionId));
    const earlier = await headOf(adapter, sessionId);
    await speak(adapter, sessionId, 7, 8);
    // The process freezes just before it stores the head that it has replaced.
    const state = proxied(adapter.state, async (call, args) => {
      const { key } = args[0] as { key: string };
      if (key === earlierName(earlier).key) {
        freeze();
        await thawed;
      }
      const result = await call();
      if (key === HEAD.key && result === null) refuse();
      return result;
    });
    const first = await startProcess(adapter, { adapter: { state }, leaseMs: LEASE_MS });
    const finished = first.compactor.compact(task(sessionId)).catch((error: unknown) => error);
    await frozen;
    const second = await startProcess(connect());
    // The frozen process still renews its lease. Deleting the session makes the next renewal fail.
    await remove(adapter);
    await refused;
    await speak(adapter, sessionId, 1, 6);
    await second.compactor.compact(task(sessionId, { summarize: () => 'anew' }));
    await speak(adapter, sessionId, 7, 8);
    await second.compactor.compact(task(sessionId));
    thaw();
    await finished;

    expect(await readThroughHead(adapter, sessionId)).toEqual(['(anew) 5 6', '7', '8']);
    expect(await second.compactor.restore(sessionId)).toEqual({ through: 4 });
    expect(await readThroughHead(adapter, sessionId)).toEqual(['anew', '5', '6', '7', '8']);
    await eventually(async () => (await adapter.state.get({ ...earlierName(earlier), sessionId })) === null);
  });

  it('BOT-41 never writes a lost head again, even if another one reaches the same version', async () => {
    const { adapter } = await startProcess(create()());
    const heads = new ConversationHeads(adapter.state);
    const read = await heads.read(sessionId);
    const held = await HeldHead.take(heads, sessionId, read, 'first', 600_000, () => undefined);
    await remove(adapter);
    await rejection(
      held!.change((head) => head),
      HeadLostError,
    );
    // Another process creates and takes it: two versions, like the lost one.
    for (const holder of ['', 'second']) await adapter.state.set({ ...HEAD, sessionId }, { id: holder });
    await rejection(
      held!.change((head) => head),
      HeadLostError,
    );
    await rejection(held!.end(), HeadLostError);
    expect(await adapter.state.get({ ...HEAD, sessionId })).toMatchObject({ value: { id: 'second' } });
  });

  it('BOT-43 does not restore to a compaction that contains undone messages', async () => {
    const { adapter, compactor } = await startProcess(create()());
    await speak(adapter, sessionId, 1, 6);
    await compactor.compact(task(sessionId));
    await adapter.state.append({ ...HEAD, sessionId }, { id: 'undo', entries: [{ from: 3 }] });
    await compactor.compact(task(sessionId, { keep: 1 }));
    const through: unknown[] = [];
    for (let last: { through: number } | null; (last = await compactor.restore(sessionId));) through.push(last.through);
    expect(through.every((position) => position === 0)).toBe(true);
    expect(await readThroughHead(adapter, sessionId)).toEqual(['1', '2', '3', '4', '5', '6']);
  });

  it('BOT-43 stores the previous head in the next process if one died before storing it', async () => {
    const connect = create();
    const adapter = connect();
    const { compactor } = await startProcess(adapter);
    await speak(adapter, sessionId, 1, 6);
    await compactor.compact(task(sessionId));
    await speak(adapter, sessionId, 7, 8);
    const former = await headOf(adapter, sessionId);
    const state = proxied(adapter.state, async (call, args) => {
      if ((args[0] as { key: string }).key === earlierName(former).key) throw new Error('This process is dead.');
      return call();
    });
    const second = await startProcess(connect(), { adapter: { state } });
    await second.compactor.compact(task(sessionId));
    expect((await headOf(adapter, sessionId)).former?.number).toBe(1);
    expect(await readThroughHead(adapter, sessionId)).toEqual(['(1 2 3 4) 5 6', '7', '8']);
    await speak(adapter, sessionId, 9, 10);
    await compactor.compact(task(sessionId));
    expect((await headOf(adapter, sessionId)).former).toBeNull();
    expect([await compactor.restore(sessionId), await compactor.restore(sessionId)]).toEqual([
      { through: 6 },
      { through: 4 },
    ]);
  });
});

/** Wraps a store so that each call goes through a function. */
function proxied(
  state: SessionsAdapter['state'],
  through: (call: () => Promise<unknown>, args: unknown[]) => Promise<unknown>,
): SessionsAdapter['state'] {
  return new Proxy(state, {
    get(target, method) {
      const value: unknown = Reflect.get(target, method);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => through(() => Reflect.apply(value, target, args) as Promise<unknown>, args);
    },
  });
}
