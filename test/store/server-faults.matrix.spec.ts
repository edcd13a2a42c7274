import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { ClosingPostgres } from '../support/closing-postgres.js';
import { eventually } from '../support/eventually.js';
import { openWithTurn, succeeds, unavailable } from '../support/faults.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { describeServers } from '../support/servers.js';
import { adapterOf, optionsOn } from '../support/stores.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const COMMIT = /\bCOMMIT\b/;
const SETTLED = { status: 'completed', keepCheckpoints: 'all' } as const;

describeServers('a server that fails', (server) => {
  const { type, url } = server;
  const itOfSql: (title: string, test: () => Promise<void>) => void = type === 'redis' ? () => {} : it;
  let proxy: TcpProxy;
  let store: SessionsAdapter;
  /** A store with a direct connection, without the proxy. */
  let control: SessionsAdapter;
  let sessionId: string;

  beforeEach(async () => {
    Logger.overrideLogger(false);
    sessionId = randomUUID();
    proxy = await TcpProxy.start(url);
    store = newStore();
    control = newStore({ url });
  });

  afterEach(async () => {
    proxy.restore();
    await store.close?.();
    await control.close?.();
    await proxy.stop();
  });

  it('NST-05 fails the start with a typed error while it is down', async () => {
    proxy.cut();
    await expect(store.init?.()).rejects.toMatchObject(unavailable(false));

    proxy.restore();
    await expect(store.init?.()).resolves.toBeUndefined();
  });

  if (type === 'postgres') {
    it('NST-05 rejects a call and does not crash the process when it stops just after a connect', async () => {
      const { turn } = await openWithTurn(store, sessionId);
      const closing = await ClosingPostgres.start();
      proxy.leadTo(closing.url);
      proxy.cut();
      proxy.restore();
      for (let call = 0; call < 5; call += 1) await Promise.allSettled([store.ping(), store.ping()]);
      expect(closing.connections).toBeGreaterThan(5);

      proxy.leadTo(url);
      await succeeds(() => store.ping());
      expect(await store.turns.get(turn.id)).toMatchObject({ id: turn.id });
      await closing.stop();
    });
  }

  it('NST-05 never causes "not found" while it is down, and continues when it is back', async () => {
    const { turn } = await openWithTurn(store, sessionId);
    proxy.cut();
    // The first calls find the open connections broken; later calls get no connection.
    await Promise.allSettled(Array.from({ length: 5 }, () => store.ping()));

    const calls = [
      () => store.ping(),
      () => store.sessions.fetchById(sessionId),
      () => store.turns.get(turn.id),
      () => store.turns.list({ sessionId }),
      () => store.turns.claim(sessionId, claimRequest('a')),
      () => store.checkpoints.load('desk', sessionId),
      () => store.conversations.page(sessionId),
      () => store.state.get({ namespace: 'n', scope: '', sessionId, key: 'k' }),
      () => store.leases.acquire(randomUUID(), 'a', 1000),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject(unavailable(false));

    proxy.restore();
    await succeeds(() => store.ping());
    expect(await store.turns.get(turn.id)).toMatchObject({ status: 'running' });
    expect(await store.turns.list({ sessionId })).toHaveLength(1);
  });

  it('TRN-01 an accept can be sent again after a lost answer', async () => {
    await openWithTurn(store, sessionId);
    const request = turnRequest(randomUUID(), { sessionId });
    await loseAnswerOf(
      () => store.turns.accept(request),
      async () => (await control.turns.get(request.id)) !== null,
    );

    expect(await store.turns.accept(request)).toMatchObject({ duplicate: true, turn: { position: 2 } });
    expect(await store.turns.list({ sessionId })).toHaveLength(2);
  });

  it('TRN-01 a settle can be sent again after a lost answer', async () => {
    const { hold } = await openWithTurn(store, sessionId);
    const messages = [{ id: randomUUID(), role: 'assistant' as const, content: 'hi' }];
    await loseAnswerOf(
      () => store.turns.settle(hold, { ...SETTLED, messages }),
      async () => (await control.turns.get(hold.turnId))?.status === 'completed',
    );

    expect(await store.turns.settle(hold, { ...SETTLED, messages })).toMatchObject({ turn: { status: 'completed' } });
    expect(await store.conversations.page(sessionId)).toHaveLength(1);
  });

  itOfSql('TRN-01 reports whether the write may have happened, when the commit is a separate statement', async () => {
    store = newStore(severalStatements);
    await openWithTurn(store, sessionId);
    const [before, at] = ['before', 'at'].map((id) => turnRequest(`${id} ${sessionId}`, { sessionId }));
    await breakDuring(() => store.turns.accept(before), false);
    expect(await store.turns.get(before.id)).toBeNull();

    await breakDuring(() => store.turns.accept(at), true, COMMIT);
    expect(await store.turns.accept(at)).toMatchObject({ turn: { position: 2 } });
  });

  it('TRN-01 reports that nothing was written when the connection breaks during a read', async () => {
    const { turn } = await openWithTurn(store, sessionId);
    await breakDuring(() => store.turns.get(turn.id), false);
    await breakDuring(() => store.turns.list({ sessionId }), false);
    await breakDuring(() => store.sessions.fetchById(sessionId), false);
  });

  it('TRN-10 notifications arrive again after a lost connection, also in a store that was opened again', async () => {
    await store.init?.();
    await store.close?.();
    const { turnId } = (await openWithTurn(store, sessionId)).hold;
    proxy.cut();
    proxy.restore();
    await succeeds(() => store.ping());
    const heard: string[] = [];
    store.changes.subscribe((id) => heard.push(id));
    // A process receives its own changes without the server.
    const other = store.changes.reach === 'store' ? control : store;
    await other.init?.();

    await succeeds(async () => {
      await other.turns.cancel(turnId, 'cancel');
      expect(heard).toContain(turnId);
    });
  });

  itOfSql('NST-05 a pool that is smaller than the load delays calls, and fails none', async () => {
    store = newStore({ poolSize: 2 });
    await openWithTurn(store, sessionId);

    const turns = Array.from({ length: 60 }, () => store.turns.accept(turnRequest(randomUUID(), { sessionId })));
    expect(new Set((await Promise.all(turns)).map(({ turn }) => turn.position)).size).toBe(60);
  });

  /** Breaks the connection between the commit and its answer. */
  async function loseAnswerOf(call: () => Promise<unknown>, isDone: () => Promise<boolean>) {
    await control.init?.();
    // Other stores commit in one round trip; MySQL commits in the last one.
    proxy.swallowAnswers(type === 'mysql' ? COMMIT : undefined);
    const lost = call();
    void lost.catch(() => {});
    await eventually(() => isDone());
    proxy.cut();
    await expect(lost).rejects.toMatchObject(unavailable(true));
    proxy.restore();
    await succeeds(() => store.ping());
  }

  /** @param at matches the message on which the connection breaks before the answer; default: the first */
  async function breakDuring(call: () => Promise<unknown>, maybeApplied: boolean, at?: RegExp): Promise<void> {
    const { withheld } = proxy;
    proxy.swallowAnswers(at);
    const lost = call();
    void lost.catch(() => {});
    await eventually(() => proxy.withheld > withheld);
    proxy.cut();
    await expect(lost).rejects.toMatchObject(unavailable(maybeApplied));
    proxy.restore();
    await succeeds(() => store.ping());
  }

  /** Makes PostgreSQL commit in a separate statement: another default isolation level. */
  const severalStatements =
    type === 'postgres' ? { extra: { options: '-c default_transaction_isolation=serializable' } } : {};
  const prefix = `f${randomUUID().slice(0, 8)}_`;

  function newStore({ url: at = proxy.url, ...pool }: { url?: string; poolSize?: number; extra?: object } = {}) {
    return adapterOf(optionsOn({ ...server, url: at }, prefix, { poolSize: 5, ...pool }));
  }
});
