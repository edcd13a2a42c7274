import { jest } from '@jest/globals';
import { SessionStore } from 'nestjs-agent-sessions';
import { type ClaimedTurn, type TurnHold, type TurnSettlement } from 'nestjs-agent-sessions/adapter';
import { HEAD } from '../../lib/conversation/conversation-head.js';
import { claimRequest, turnRequest } from '../support/ledger-requests.js';
import { noteTrips, openMysql, type OpenMysql } from '../support/mysql-database.js';
import { describeMariadb } from '../support/servers.js';

const WINDOWS = { windows: { desk: 10 }, documents: { desk: [HEAD] } };
const RULES = { policy: 'move', maxSurfaces: 16 } as const;

/** Round trips of the MySQL store, on a lane that has been used before. */
describeMariadb('round trips of the MySQL store', () => {
  let store: OpenMysql;
  let count = 0;
  let idle = 0;
  let emitting: TurnHold;

  beforeAll(async () => {
    store = await openMysql(4);
    await new SessionStore(store.sessions).create({ id: 'e', userId: 'emil' });
    await new SessionStore(store.sessions).create({ id: 'r', userId: 'rita' });
    await store.ports.turns.accept(turnRequest('turn-e', { sessionId: 'e' }));
    emitting = ((await store.ports.turns.claim('e', claimRequest('worker'))) as ClaimedTurn).hold;
    await new SessionStore(store.sessions).create({ id: 'i', userId: 'ines' });
    for (let turn = 0; turn < 2; turn += 1) {
      await store.ports.turns.settle((await acceptAndClaim()).hold, answerOf(turn, 'i'));
    }
    await new SessionStore(store.sessions).create({ id: 's', userId: 'ann' });
    for (let turn = 0; turn < 20; turn += 1) {
      await accept();
      const claimed = await take();
      await store.ports.turns.settle(claimed.hold, answerOf(turn));
    }
  });

  afterEach(() => jest.restoreAllMocks());

  afterAll(() => store.close());

  it('PRF-05 accept takes 3', async () => {
    expect(await tripsOf(() => accept())).toBe(3);
    expect(await tripsOf(() => accept({ idempotency: { key: 'key', hash: 'hash', ttlMs: 1000 } }))).toBe(3);
  });

  it('PRF-05 claim with the checkpoint, the window and the steps takes 4', async () => {
    expect(await tripsOf(() => take())).toBe(4);
  });

  it('PRF-05 a turn that finds its lane idle takes 8: 5 to accept and claim it, and 3 to settle it', async () => {
    let claimed!: ClaimedTurn;
    const first = await tripsOf(async () => {
      claimed = await acceptAndClaim();
    });
    const second = await tripsOf(() =>
      store.ports.turns.settle(claimed.hold, answerOf(2, 'i'), claimRequest('next', WINDOWS)),
    );

    expect([first, second]).toEqual([5, 3]);
  });

  it('PRF-05 settle with the claim of the next turn takes 4', async () => {
    const { hold } = await take();
    const trips = await tripsOf(async () => {
      const { next } = await store.ports.turns.settle(hold, answerOf(20), claimRequest('next', WINDOWS));
      expect(next?.checkpoint?.turnIndex).toBe(20);
      expect(next?.history).toHaveLength(10);
    });

    expect(trips).toBe(4);
  });

  it('PRF-05 settle with appends, and a next claim with these and another document, takes 5', async () => {
    await accept();
    // The same holder receives the same turn.
    const { hold } = await take('next');
    const names = ['a', 'b', 'c'].map((key) => ({ namespace: 'n', scope: '', key }));
    const stateChanges = names.slice(1).map((name) => ({ name, append: { id: name.key, entries: [1], initial: [] } }));
    const request = claimRequest('next', { ...WINDOWS, documents: { desk: names } });
    const trips = await tripsOf(async () => {
      const { next } = await store.ports.turns.settle(hold, { ...answerOf(21), stateChanges }, request);
      const version = expect.any(Number) as number;
      expect(next?.documents).toMatchObject([null, { version }, { version }]);
    });

    expect(trips).toBe(5);
  });

  it.each<[string, number, () => Promise<unknown>]>([
    ['get of a turn', 1, () => store.ports.turns.get('turn-1')],
    ['list of turns', 1, () => store.ports.turns.list({ sessionId: 's' })],
    ['cancel', 2, () => store.ports.turns.cancel(`turn-${count}`, 'cancel')],
    ['control of a lane', 2, () => store.ports.turns.control({ sessionId: 's', mode: 'draining' })],
    ['control of all lanes', 2, () => store.ports.turns.control({ sessionId: null, mode: 'open' })],
    ['clear', 2, () => store.ports.turns.clear('s')],
    ['a lane', 1, () => store.ports.turns.lane('s')],
    ['lanes with open turns', 1, () => store.ports.turns.lanes({ limit: 10 })],
    ['fetchById', 1, () => store.sessions.fetchById('s')],
    ['fetchMany', 1, () => store.sessions.fetchMany({ userId: 'ann' })],
    ['touch', 2, () => store.sessions.touch('s')],
    ['revoke', 2, () => store.sessions.revoke('r')],
    ['attachSurface', 3, () => store.sessions.attachSurface('s', 'phone', RULES)],
    ['createOrAdopt beside another session', 5, () => store.sessions.createOrAdopt({ ...DRAFT, id: 't' }, RULES, 1000)],
    ['attachSurface that takes it from another session', 4, () => store.sessions.attachSurface('t', 'phone', RULES)],
    ['append of events', 3, () => emit(1)],
    ['append of more events', 3, () => emit(2)],
    ['read of events', 1, () => store.ports.events.read('turn-e', 0, 100)],
    ['the last event', 1, () => store.ports.events.last('turn-e')],
    ['deletion of expired events', 3, () => store.ports.events.deleteExpired(10)],
    ['window', 3, () => store.ports.conversations.window('s', 10)],
    ['append of messages', 2, () => store.ports.conversations.append('s', [MESSAGE])],
    ['set of a document', 3, () => store.ports.state.set(ADDRESS, 1)],
    ['set of a document without a session', 3, () => store.ports.state.set({ ...ADDRESS, sessionId: 'nobody' }, 1)],
    ['get of a document', 1, () => store.ports.state.get(ADDRESS)],
    ['get of a document that counts as an access', 2, () => store.ports.state.get(ADDRESS, { ttlMs: 1000 })],
    ['append to a document', 3, () => store.ports.state.append(ADDRESS, { id: 'batch', entries: [1] })],
    ['eviction of idle documents', 4, () => store.ports.state.evictIdle('n', 0, 10)],
    ['acquire of a lease', 2, () => store.ports.leases.acquire('sweep', 'me', 1000)],
    ['delete', 2, () => store.sessions.delete('t')],
    ['purge of settled turns', 3, () => store.ports.turns.purgeSettled(0, 100)],
    ['purge of nothing', 3, () => store.sessions.purgeExpired(86_400_000, 100)],
  ])('PRF-05 %s takes %i', async (_, trips, operation) => {
    expect(await tripsOf(operation)).toBe(trips);
  });

  async function tripsOf(operation: () => Promise<unknown>): Promise<number> {
    const trips = noteTrips();
    await operation();
    jest.restoreAllMocks();
    return trips.length;
  }

  function emit(number: number): Promise<number> {
    const event = { type: 'delta', data: number };
    return store.ports.events.append(emitting, { number, events: [event], restart: event }, 1000);
  }

  function accept(changes: Parameters<typeof turnRequest>[1] = {}): Promise<unknown> {
    return store.ports.turns.accept(turnRequest(`turn-${(count += 1)}`, changes));
  }

  async function acceptAndClaim(): Promise<ClaimedTurn> {
    const request = { sessionId: 'i', claim: claimRequest('worker', WINDOWS) };
    const { claimed } = await store.ports.turns.accept(turnRequest(`idle-${(idle += 1)}`, request));
    if (!claimed) throw new Error('The accept did not claim the turn.');
    return claimed;
  }

  async function take(holder = 'worker'): Promise<ClaimedTurn> {
    const claimed = await store.ports.turns.claim('s', claimRequest(holder, WINDOWS));
    if (!claimed) throw new Error('Nothing was claimed.');
    return claimed;
  }
});

const DRAFT = { userId: 'ann', attachedSurfaces: [], metadata: {} };
const MESSAGE = { id: 'message', role: 'user', content: 'hello' } as const;
const ADDRESS = { namespace: 'n', scope: '', sessionId: 's', key: 'k' };

function answerOf(turnIndex: number, sessionId = 's'): TurnSettlement {
  const checkpoint = {
    orchestrator: 'desk',
    sessionId,
    turnIndex,
    state: {},
    lastRoute: [],
    signature: '',
    version: '1',
    summarizedThrough: 0,
  };
  return { status: 'awaiting-input', messages: [MESSAGE], checkpoint, keepCheckpoints: 3 };
}
