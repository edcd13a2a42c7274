import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { type AtomicSessionStoreAdapter, type SessionsAdapter, StoreUnavailableError } from 'nestjs-agent-sessions';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { eventually } from '../support/eventually.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { describeServers } from '../support/servers.js';
import { TcpProxy } from '../support/tcp-proxy.js';

describeServers('a server that fails', ({ type, url }) => {
  let proxy: TcpProxy;
  let store: SessionsAdapter;
  let sessionId: string;

  beforeEach(async () => {
    Logger.overrideLogger(false);
    sessionId = randomUUID();
    proxy = await TcpProxy.start(url);
    store = newStore();
  });

  afterEach(async () => {
    proxy.restore();
    await store.close?.();
    await proxy.stop();
  });

  it('NST-05 stops the start with a typed error while it is down', async () => {
    proxy.cut();
    await expect(store.init?.()).rejects.toThrow(StoreUnavailableError);

    proxy.restore();
    await expect(store.init?.()).resolves.toBeUndefined();
  });

  it('NST-05 is never taken for "not found" while it is gone, and goes on where it was when it is back', async () => {
    await openWithTurn();
    proxy.cut();

    const calls = [
      () => store.ping(),
      () => store.sessions.fetchById(sessionId),
      () => store.turns.get('first'),
      () => store.turns.list({ sessionId }),
      () => store.turns.claim(sessionId, claimRequest('a')),
      () => store.checkpoints.load('desk', sessionId),
      () => store.conversations.page(sessionId),
      () => store.state.get({ namespace: 'n', scope: '', sessionId, key: 'k' }),
      () => store.leases.acquire(randomUUID(), 'a', 1000),
    ];
    for (const call of calls) await expect(call()).rejects.toThrow(StoreUnavailableError);

    proxy.restore();
    await succeeds(() => store.ping());
    expect(await store.turns.claim(sessionId, claimRequest('a'))).toMatchObject({ turn: { status: 'running' } });
    expect(await store.turns.list({ sessionId })).toHaveLength(1);
  });

  it('TRN-01 an accept whose answer was lost is sent again without harm', async () => {
    await openWithTurn();
    const request = { ...turnRequest(randomUUID()), sessionId };
    await loseAnswerOf(
      () => store.turns.accept(request),
      async (control) => (await control.turns.get(request.id)) !== null,
    );

    expect(await store.turns.accept(request)).toMatchObject({ turn: { id: request.id, position: 2 } });
    expect(await store.turns.list({ sessionId })).toHaveLength(2);
  });

  it('TRN-01 a settle whose answer was lost is sent again without harm', async () => {
    const { hold } = await openWithTurn();
    const message = { id: randomUUID(), role: 'assistant' as const, content: 'hi' };
    const settlement = { status: 'completed' as const, messages: [message], keepCheckpoints: 'all' as const };
    await loseAnswerOf(
      () => store.turns.settle(hold, settlement),
      async (control) => (await control.turns.get(hold.turnId))?.status === 'completed',
    );

    expect(await store.turns.settle(hold, settlement)).toMatchObject({ turn: { status: 'completed' } });
    expect(await store.conversations.page(sessionId)).toHaveLength(1);
  });

  it('TRN-10 hints are heard again after the connection was lost', async () => {
    const { turnId } = (await openWithTurn()).hold;
    proxy.cut();
    proxy.restore();
    await succeeds(() => store.ping());
    const heard: string[] = [];
    store.hints.subscribe((id) => heard.push(id));

    await succeeds(async () => {
      await store.turns.cancel(turnId, 'cancel');
      expect(heard).toContain(turnId);
    });
  });

  it('NST-05 a pool that is smaller than the work makes it wait, not fail', async () => {
    store = newStore(proxy.url, 2);
    await openWithTurn();

    const turns = Array.from({ length: 60 }, () => store.turns.accept({ ...turnRequest(randomUUID()), sessionId }));
    expect(new Set((await Promise.all(turns)).map(({ turn }) => turn.position)).size).toBe(60);
  });

  /** The connection breaks between what is sent and its answer. */
  async function loseAnswerOf(call: () => Promise<unknown>, isDone: (control: SessionsAdapter) => Promise<boolean>) {
    const control = newStore(url);
    await control.init?.();
    proxy.swallowAnswers();
    const lost = call();
    // One round trip: it is done, and nobody could know. Where there are several, the first answer is missed.
    if (type === 'postgres') await eventually(() => isDone(control));
    proxy.cut();
    await expect(lost).rejects.toThrow(StoreUnavailableError);
    await control.close?.();
    proxy.restore();
    await succeeds(() => store.ping());
  }

  /** Tries until it does. */
  async function succeeds(work: () => Promise<unknown>, limitMs = 10_000): Promise<void> {
    const attempt = (): Promise<boolean> =>
      work().then(
        () => true,
        () => false,
      );
    await eventually(attempt, { limitMs });
  }

  const prefix = `f${randomUUID().slice(0, 8)}_`;

  function newStore(at = proxy.url, poolSize = 5): SessionsAdapter {
    return typeormAdapter({ dataSource: { type, url: at, poolSize }, tablePrefix: prefix, migrationsRun: true });
  }

  /** A session with a turn that runs. */
  async function openWithTurn() {
    await store.init?.();
    const draft = { id: sessionId, userId: 'ann', attachedSurfaces: [], metadata: {} };
    await (store.sessions as AtomicSessionStoreAdapter).create(draft, { policy: 'share', maxSurfaces: 1 });
    await store.turns.accept({ ...turnRequest(randomUUID()), sessionId });
    const claimed = await store.turns.claim(sessionId, claimRequest('a'));
    if (!claimed) throw new Error('Nothing was claimed.');
    return claimed;
  }
});
