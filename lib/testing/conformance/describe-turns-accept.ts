import { SessionNotFoundError, SessionStateError } from '../../ledger/session.errors.js';
import { LaneFullError } from '../../ledger/turn.errors.js';
import { type TurnQuery } from '../../ledger/turn.store.js';
import { TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests of TurnLedger.accept, get and list. */
export function describeTurnsAccept(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-01 accepts a turn as queued, with the time of the store', async () => {
    const before = await lane.sessionTime();
    await lane.elapse(5);

    const { turn, duplicate } = await lane.accept('hello', { attributes: { channel: 'web' }, version: '2' });

    expect(duplicate).toBe(false);
    expect(turn).toMatchObject({
      sessionId: lane.sessionId,
      position: 1,
      orchestrator: 'desk',
      version: '2',
      request: { input: { text: 'hello' } },
      attributes: { channel: 'web' },
      status: 'queued',
      failures: 0,
      lost: 0,
    });
    expect(turn.acceptedAt > before).toBe(true);
    expect(turn).not.toHaveProperty('startedAt');
    expect(turn).not.toHaveProperty('settledAt');
    expect(await lane.get(turn.id)).toEqual(turn);
  });

  it('TRN-02 numbers the turns of a lane in the order of acceptance', async () => {
    const other = await TestLane.open(context);
    const first = await lane.queue('first');
    const elsewhere = await other.queue('elsewhere');
    const second = await lane.queue('second');

    expect([first.position, elsewhere.position, second.position]).toEqual([1, 1, 2]);
    expect(await lane.statuses()).toEqual(['first: queued', 'second: queued']);
  });

  it('TRN-02 returns turns in the order of acceptance, independent of their ids and times', async () => {
    const ids = Array.from({ length: 6 }, () => context.id()).sort((a, b) => (a < b ? 1 : -1));
    for (const [index, id] of ids.entries()) await lane.queue(`turn ${index}`, { id });

    expect(await lane.drain()).toEqual(ids.map((_, index) => `turn ${index}`));
  });

  it('TRN-02 assigns positions without gaps to concurrently accepted turns', async () => {
    const accepted = await Promise.all(Array.from({ length: 20 }, (_, index) => lane.queue(`turn ${index}`)));

    const positions = accepted.map((turn) => turn.position).sort((a, b) => a - b);
    expect(positions).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });

  it('TRN-01 requests a notification for a new head only', async () => {
    expect((await lane.accept('first')).notify).toBe(true);
    expect((await lane.accept('second')).notify).toBe(false);

    const claimed = await lane.take();
    expect((await lane.accept('third')).notify).toBe(false);
    await lane.settle(claimed.hold);
    await lane.drain();
    expect((await lane.accept('fourth')).notify).toBe(true);
  });

  it('TRN-01 accepts a repeated call once', async () => {
    const id = context.id();
    const first = await lane.accept('hello', { id });
    const second = await lane.accept('hello', { id });

    expect(second).toEqual({ turn: first.turn, duplicate: true, notify: true });
    expect(await lane.statuses()).toEqual(['hello: queued']);
  });

  it('TRN-01 rejects a turn of a missing, expired or erased session, and stores nothing', async () => {
    const expired = await TestLane.open(context);
    await context.sessions.expire(expired.sessionId);
    const erased = await TestLane.open(context);
    await context.sessions.erase(erased.sessionId);

    await expect(lane.accept('hello', { sessionId: context.id() })).rejects.toBeInstanceOf(SessionNotFoundError);
    await expect(erased.accept('hello')).rejects.toBeInstanceOf(SessionNotFoundError);
    const refused = expect(expired.accept('hello')).rejects;
    await refused.toBeInstanceOf(SessionStateError);
    await expect(expired.accept('hello')).rejects.toMatchObject({ currentState: 'expired' });

    expect(await expired.list()).toEqual([]);
    expect(await erased.list()).toEqual([]);
  });

  it('SES-15 accepts a turn of a session in an external store, unless the session was erased here', async () => {
    const sessionId = context.id();
    await lane.accept('hello', { sessionId, foreignSession: true });

    const claimed = await context.adapter.turns.claim(sessionId, lane.claimRequest());
    expect(claimed).toMatchObject({ session: null, turn: { sessionId, status: 'running' } });

    await context.sessions.erase(sessionId);
    await expect(lane.accept('hello', { sessionId, foreignSession: true })).rejects.toBeInstanceOf(
      SessionNotFoundError,
    );
  });

  it('TRN-07 rejects a turn when the lane has the maximum of queued turns', async () => {
    await lane.run('running');
    await lane.queue('first', { maxQueued: 2 });
    await lane.queue('second', { maxQueued: 2 });

    const refused = lane.accept('third', { maxQueued: 2 });

    await expect(refused).rejects.toBeInstanceOf(LaneFullError);
    await expect(refused).rejects.toMatchObject({
      sessionId: lane.sessionId,
      limit: 2,
      retryAfterMs: expect.any(Number) as number,
    });
    expect(await lane.statuses()).toEqual(['running: running', 'first: queued', 'second: queued']);
  });

  it('TRN-07 does not count running and waiting turns as queued', async () => {
    const { hold } = await lane.run('holder');
    await lane.queue('queued', { maxQueued: 1 });
    await lane.adapter.turns.wait(hold, { signal: 'approval', step: lane.step('approval', null) });

    await expect(lane.accept('too many', { maxQueued: 1 })).rejects.toBeInstanceOf(LaneFullError);
    await expect(lane.accept('fits', { maxQueued: 2 })).resolves.toMatchObject({ turn: { status: 'queued' } });
  });

  it.each(Object.keys(WAYS_OUT))('TRN-07 frees the slot of a turn that %s', async (way) => {
    await WAYS_OUT[way](lane);

    for (let turns = 0; turns < 3; turns += 1) await lane.queue(`turn ${turns}`, { maxQueued: 3 });
    await expect(lane.accept('one more', { maxQueued: 3 })).rejects.toBeInstanceOf(LaneFullError);
    expect(await lane.drain()).toEqual(['turn 0', 'turn 1', 'turn 2']);
  });

  it('TRN-01 preserves every character of the input, and returns copies', async () => {
    const text = 'nul \u0000, half a pair \ud83d, a pair \ud83d\ude00, \u2028, \u202e';
    const attributes = { tags: ['a'] };
    const turn = await lane.queue(text, { attributes });
    attributes.tags.push('b');
    (turn.attributes as { tags: string[] }).tags.push('c');

    const stored = await lane.get(turn.id);
    expect(stored?.request.input.text).toBe(text);
    expect(stored?.attributes).toEqual({ tags: ['a'] });
  });

  it('TRN-01 lists the turns of a lane in order, by status and in pages', async () => {
    await lane.queue('first');
    await lane.settle((await lane.take()).hold);
    await lane.queue('second');
    await lane.take();
    for (const text of ['third', 'fourth', 'fifth']) await lane.queue(text);
    const texts = async (query: Omit<TurnQuery, 'sessionId'>) =>
      (await context.adapter.turns.list({ sessionId: lane.sessionId, ...query })).map(
        ({ request }) => request.input.text,
      );

    expect(await texts({})).toEqual(['first', 'second', 'third', 'fourth', 'fifth']);
    expect(await texts({ status: 'queued' })).toEqual(['third', 'fourth', 'fifth']);
    expect(await texts({ status: ['running', 'queued'], limit: 2 })).toEqual(['second', 'third']);
    expect(await texts({ status: ['awaiting-input', 'running'] })).toEqual(['first', 'second']);
    expect(await texts({ status: ['failed'] })).toEqual([]);
    expect(await texts({ status: 'queued', after: 3, limit: 1 })).toEqual(['fourth']);
    expect(await texts({ after: 4 })).toEqual(['fifth']);
    expect(await texts({ limit: 0 })).toEqual([]);

    const order = 'desc';
    expect(await texts({ order })).toEqual(['fifth', 'fourth', 'third', 'second', 'first']);
    expect(await texts({ order, limit: 2 })).toEqual(['fifth', 'fourth']);
    expect(await texts({ order, after: 4, limit: 2 })).toEqual(['third', 'second']);
    expect(await texts({ order, status: ['running', 'queued'], after: 4 })).toEqual(['third', 'second']);
    expect(await texts({ order, status: ['awaiting-input', 'running'], limit: 1 })).toEqual(['second']);
    expect(await texts({ order, status: 'queued', after: 2 })).toEqual([]);
    expect(await texts({ order, after: 1 })).toEqual([]);
    expect(await context.adapter.turns.list({ sessionId: context.id() })).toEqual([]);
    expect(await context.adapter.turns.get(context.id())).toBeNull();
  });
}

/** All ways in which turns leave a lane. Each empties the lane. */
const WAYS_OUT: Record<string, (lane: TestLane) => Promise<void>> = {
  'has settled': async (lane) => {
    await lane.settle((await lane.run('first')).hold);
  },
  'has settled after a retry and a release': async (lane) => {
    const { turns } = lane.adapter;
    await turns.retry((await lane.run('first')).hold, { error: { name: 'Error', message: 'no' }, delayMs: 0 });
    await turns.release((await lane.take()).hold, 0);
    await lane.settle((await lane.take()).hold);
  },
  'was cancelled, at the head and behind it': async (lane) => {
    const { id: head } = await lane.queue('first');
    const { id: second } = await lane.queue('second');
    await lane.adapter.turns.cancel(second, 'cancel');
    await lane.adapter.turns.cancel(head, 'cancel');
  },
  'was cancelled while it ran, and released': async (lane) => {
    const { hold } = await lane.run('first');
    await lane.adapter.turns.cancel(hold.turnId, 'cancel');
    await lane.adapter.turns.release(hold, 0);
  },
  'was interrupted while it waited': async (lane) => {
    const { hold } = await lane.run('first');
    await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null) });
    await lane.queue('second', { whenBusy: 'interrupt' });
    await lane.drain();
  },
  'was superseded': async (lane) => {
    await lane.queue('first');
    await lane.queue('second');
    await lane.queue('third', { whenBusy: 'latest' });
    await lane.drain();
  },
  'lost its workers': async (lane) => {
    await lane.queue('first');
    await lane.lapse();
    await lane.claim({ maxLost: 1 });
  },
};
