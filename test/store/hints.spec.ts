import { Logger } from '@nestjs/common';
import { type AtomicSessionStoreAdapter, SessionStore, type SessionsAdapter } from 'nestjs-agent-sessions';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { STORES } from '../support/stores.js';

/** Stores of one process hint at the end of a turn and at a wish to stop it, so that nobody has to wait for a poll. */
describe.each(STORES)('hints of the store: $name', ({ open }) => {
  let store: SessionsAdapter;
  let sessions: AtomicSessionStoreAdapter;
  const heard: string[] = [];
  let unsubscribe: () => void;

  beforeEach(async () => {
    store = open().adapter;
    await store.init?.();
    sessions = store.sessions as AtomicSessionStoreAdapter;
    await new SessionStore(sessions).create({ id: 's', userId: 'ann' });
    await store.turns.accept(turnRequest('first'));
    await store.turns.accept(turnRequest('second'));
    heard.length = 0;
    unsubscribe = store.hints.subscribe((turnId) => heard.push(turnId));
  });

  afterEach(async () => {
    unsubscribe();
    await store.close?.();
  });

  it.each<[string, () => Promise<unknown>, string[]]>([
    ['is cancelled', () => store.turns.cancel('second', 'cancel'), ['second']],
    ['is superseded', () => store.turns.accept(turnRequest('new', { whenBusy: 'latest' })), ['first', 'second']],
    ['ends with its session', () => sessions.expire('s'), ['first', 'second']],
    ['is deleted with its session', () => sessions.delete('s'), ['first', 'second']],
    ['is erased with its session', () => sessions.erase('s'), ['first', 'second']],
  ])('TRN-10 a turn that %s', async (_, change, expected) => {
    await change();

    expect([...new Set(heard)].sort()).toEqual(expected);
  });

  it('TRN-10 a listener that throws harms neither the write nor other listeners', async () => {
    Logger.overrideLogger(false);
    unsubscribe();
    const end = store.hints.subscribe(() => {
      throw new Error('a listener of the application');
    });
    unsubscribe = store.hints.subscribe((turnId) => heard.push(turnId));

    expect((await store.turns.cancel('second', 'cancel')).turn.status).toBe('cancelled');
    expect(heard).toContain('second');
    expect(await store.turns.get('second')).toMatchObject({ status: 'cancelled' });
    end();
  });

  it.each<[string, () => Promise<unknown>]>([
    ['settles', async () => settle(await take())],
    ['is asked to stop', async () => [await take(), await store.turns.cancel('first', 'cancel')]],
    [
      'is interrupted',
      async () => [await take(), await store.turns.accept(turnRequest('n', { whenBusy: 'interrupt' }))],
    ],
    ['is put back', async () => store.turns.release(await take(), 0)],
  ])('TRN-10 a running turn that %s', async (_, change) => {
    await change();

    // The claim is nobody's news.
    expect(heard).toEqual(['first']);
  });

  it('TRN-10 nothing is heard of a change that was refused', async () => {
    const hold = await take();
    heard.length = 0;
    await expect(store.turns.release({ ...hold, fence: hold.fence - 1 }, 0)).rejects.toThrow();

    expect(heard).toEqual([]);
  });

  async function take() {
    const claimed = await store.turns.claim('s', claimRequest('a'));
    if (!claimed) throw new Error('Nothing was claimed.');
    return claimed.hold;
  }

  function settle(hold: Awaited<ReturnType<typeof take>>) {
    return store.turns.settle(hold, { status: 'completed', messages: [], keepCheckpoints: 'all' });
  }
});
