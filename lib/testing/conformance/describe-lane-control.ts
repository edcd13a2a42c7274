import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type Lane, type LaneMode } from '../../ledger/lane.js';
import { type ClaimedTurn } from '../../ledger/turn.store.js';
import { create, lookalikeIds } from './session-fixtures.js';
import { LONG_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const ERROR = { name: 'Error', message: 'no' };
/** Longer than a store postpones a lane after a notification. */
const PATIENCE_MS = 10_000;
const POLL_MS = 50;
const RACES = 20;

/** Tests of TurnLedger.control and clear (TRN-11). */
export function describeLaneControl(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  describe('a paused lane', () => {
    it('TRN-11 accepts turns but lets no worker claim one', async () => {
      const { hold } = await lane.run('first');
      await lane.queue('second');
      expect(await lane.control('paused')).toEqual({ notify: false });
      await lane.queue('third');

      expect(await lane.settle(hold, {}, lane.claimRequest())).toMatchObject({ next: null });
      for (const { turns } of context.clients)
        expect(await turns.claim(lane.sessionId, lane.claimRequest())).toBeNull();
      expect(await lane.statuses()).toEqual(['first: awaiting-input', 'second: queued', 'third: queued']);

      expect(await lane.control('open')).toEqual({ notify: true });
      expect(await lane.drain()).toEqual(['second', 'third']);
    });

    it('TRN-11 lets the running turn continue, and answers a repeated claim with it', async () => {
      const request = lane.claimRequest();
      const claimed = await lane.run('first', request);
      const { hold } = claimed;
      await lane.control('paused');

      expect(await lane.claim(request)).toEqual(claimed);
      expect(await lane.adapter.turns.renew(hold, LONG_MS)).toEqual({});
      expect(await lane.adapter.turns.saveStep(hold, lane.step('a', 1))).toMatchObject({ value: 1 });
      expect(await lane.settle(hold)).toMatchObject({ turn: { status: 'awaiting-input' }, notify: false });
    });

    it.each<[string, string, () => Promise<unknown>]>([
      ['is queued', 'queued', () => lane.queue('first')],
      ['was released', 'queued', async () => lane.adapter.turns.release((await lane.run('first')).hold, 0)],
      ['is due for its retry', 'queued', () => retry(0)],
      ['got its signal', 'queued', async () => lane.adapter.turns.signal(await wait(), 'go', 'yes')],
      ['waited for too long', 'waiting', () => wait(0)],
      ['lost its worker', 'running', () => lane.queue('first').then(() => lane.lapse())],
    ])('TRN-11 holds a turn that %s until the lane is opened', async (_, status, prepare) => {
      await prepare();
      await lane.control('paused');

      expect(await lane.claim()).toBeNull();
      expect(await lane.statuses()).toEqual([`first: ${status}`]);
      expect(await lane.control('open')).toEqual({ notify: true });
      expect(await lane.drain()).toEqual(['first']);
    });

    it.each<[string, () => Promise<unknown>]>([
      ['waits for its retry', () => retry(LONG_MS)],
      ['waits for a signal', () => wait(LONG_MS)],
      ['runs', () => lane.run('first')],
    ])('TRN-11 needs no notification when it is opened and its head %s', async (_, prepare) => {
      await prepare();
      await lane.control('paused');
      expect(await lane.claim()).toBeNull();

      expect(await lane.control('open')).toEqual({ notify: false });
      expect(await lane.claim()).toBeNull();
    });

    it('TRN-11 counts a lost worker once, however often workers try to claim', async () => {
      await lane.queue('poison');
      await lane.lapse();
      await lane.control('paused');
      for (let ask = 0; ask < 3; ask += 1) expect(await lane.claim({ maxLost: 2 })).toBeNull();
      await lane.control('open');

      expect((await lane.take({ maxLost: 2 })).turn.lost).toBe(1);
    });

    it('TRN-11 accepts and keeps a signal, and resumes with it when it is opened', async () => {
      const turnId = await wait();
      await lane.control('paused');
      expect(await lane.adapter.turns.signal(turnId, 'go', 'yes')).toMatchObject({ accepted: true });
      expect(await lane.claim()).toBeNull();
      await lane.control('open');

      expect((await lane.take()).steps).toMatchObject([{ name: 'go', value: { received: true, payload: 'yes' } }]);
    });

    it('TRN-09 TRN-06 TRN-11 lets its turns be cancelled, superseded and interrupted', async () => {
      const waiting = await wait();
      const queued = await lane.queue('queued');
      await lane.queue('later');
      await lane.control('paused');
      await lane.adapter.turns.cancel(queued.id, 'cancel');
      await lane.queue('last', { whenBusy: 'replace' });

      expect(await lane.get(waiting)).toMatchObject({ status: 'cancelled' });
      const statuses = ['first: cancelled', 'queued: cancelled', 'later: superseded', 'last: queued'];
      expect(await lane.statuses()).toEqual(statuses);
      expect(await lane.claim()).toBeNull();
    });

    it('TRN-11 cancels its turns when its session expires, and resets when its session is deleted', async () => {
      await lane.queue('first');
      await lane.control('paused');
      await context.sessions.expire(lane.sessionId);
      expect(await lane.statuses()).toEqual(['first: cancelled']);

      await context.sessions.delete(lane.sessionId);
      expect(await view()).toEqual({ sessionId: lane.sessionId, mode: 'open', queued: 0 });
      await lane.createSession();
      await lane.queue('anew');
      expect(await lane.drain()).toEqual(['anew']);
    });

    it('TRN-11 is no longer offered after a refused claim, until it is opened', async () => {
      await lane.queue('first');
      await lane.control('paused');
      expect(await lane.claim()).toBeNull();
      const other = await TestLane.open(context);
      await other.queue('first');
      await other.lapse();
      await other.control('paused');
      expect(await other.claim()).toBeNull();

      await lane.elapse(1100);
      expect(await whichAreDue(lane, other)).toEqual([]);
      await other.control('open');
      expect(await whichAreDue(other)).toEqual([other.sessionId]);
      await lane.control('open');
      await untilDue(lane);
    });

    it('TRN-11 that has had no turn yet holds its first turn', async () => {
      expect(await lane.control('paused')).toEqual({ notify: false });
      await lane.queue('first');
      expect(await lane.claim()).toBeNull();
      expect(await lane.control('draining')).toEqual({ notify: true });
      expect(await lane.drain()).toEqual(['first']);
    });
  });

  describe('a draining lane', () => {
    it('TRN-11 runs its queued turns and accepts no new ones', async () => {
      const { hold } = await lane.run('first');
      await lane.queue('second');
      expect(await lane.control('draining')).toEqual({ notify: false });

      await expectDraining(lane.accept('third'));
      expect(await lane.settle(hold, {}, lane.claimRequest())).toMatchObject({ next: { turn: { status: 'running' } } });
      expect(await lane.statuses()).toEqual(['first: awaiting-input', 'second: running']);
      await lane.control('open');
      await lane.queue('third');
    });

    it('TRN-11 still answers for known turn ids', async () => {
      const keyed = { idempotency: { key: 'key', hash: 'hash', ttlMs: LONG_MS } };
      const request = lane.acceptRequest('first', keyed);
      const { turn } = await lane.adapter.turns.accept(request);
      await lane.control('draining');

      expect(await lane.adapter.turns.accept(request)).toMatchObject({ duplicate: true, turn });
      expect(await lane.accept('first', keyed)).toMatchObject({ duplicate: true, turn });
      const other = { idempotency: { ...keyed.idempotency, hash: 'other' } };
      await expect(lane.accept('other', other)).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    });

    it('TRN-11 checks the session before the mode, and the mode before the policy', async () => {
      await lane.run('first');
      await lane.queue('second');
      await lane.control('draining');
      for (const whenBusy of ['reject', 'replace', 'rollback'] as const) {
        await expectDraining(lane.accept('third', { whenBusy, maxQueued: 1 }));
      }
      expect(await lane.statuses()).toEqual(['first: running', 'second: queued']);

      await context.sessions.expire(lane.sessionId);
      await expect(lane.accept('third')).rejects.toMatchObject({ code: 'SESSION_STATE' });
    });

    it('TRN-11 can be paused, and a paused lane drained: the last mode applies', async () => {
      await lane.queue('first');
      await lane.control('draining');
      await lane.control('paused');
      await lane.queue('second');
      expect(await lane.claim()).toBeNull();
      await lane.control('draining');

      await expectDraining(lane.accept('third'));
      expect(await lane.drain()).toEqual(['first', 'second']);
    });
  });

  describe('all lanes', () => {
    afterEach(() => controlAll('open'));

    it('TRN-11 paused: no lane lets a turn be claimed or is offered, and no lane is changed', async () => {
      const { hold } = await lane.run('first');
      await lane.queue('second');
      const lapsed = await TestLane.open(context);
      await lapsed.queue('first');
      await lapsed.lapse();
      expect(await controlAll('paused')).toEqual({ notify: false });

      expect(await lane.settle(hold, {}, lane.claimRequest())).toMatchObject({ next: null });
      for (const { turns } of context.clients)
        expect(await turns.claim(lane.sessionId, lane.claimRequest())).toBeNull();
      expect(await lapsed.claim()).toBeNull();
      expect(await context.adapter.turns.due(10_000)).toEqual([]);
      await lane.queue('third');
      expect(await view()).toMatchObject({ mode: 'open', queued: 2 });

      await controlAll('open');
      expect(await whichAreDue(lapsed)).toEqual([lapsed.sessionId]);
      expect(await lane.drain()).toEqual(['second', 'third']);
    });

    it('TRN-11 draining: no lane accepts a turn, not even a new lane', async () => {
      await lane.queue('first');
      const idle = await TestLane.open(context);
      await controlAll('draining');

      for (const each of [lane, idle]) await expectDraining(each.accept('second'));
      expect(await lane.drain()).toEqual(['first']);
      await controlAll('open');
      await idle.queue('second');
    });

    it('TRN-11 a lane keeps its own mode', async () => {
      await lane.queue('first');
      await lane.control('paused');
      const other = await TestLane.open(context);
      await other.queue('first');
      await other.control('draining');
      await controlAll('paused');
      expect(await other.claim()).toBeNull();
      await expectDraining(other.accept('second'));
      await controlAll('open');

      expect(await lane.claim()).toBeNull();
      await expectDraining(other.accept('second'));
      expect(await other.drain()).toEqual(['first']);
    });

    it('TRN-11 every client sees the current mode', async () => {
      for (const mode of ['paused', 'draining', 'draining', 'open', 'open'] as const) {
        await controlAll(mode);
        for (const { turns } of context.clients) expect(await turns.lanes({ limit: 1 })).toMatchObject({ mode });
      }
      for (const { turns } of context.clients) expect(await turns.lanes({})).toMatchObject({ mode: 'open' });
    });
  });

  it('TRN-11 rejects the lane of a missing session, unless another store keeps the session', async () => {
    const sessionId = context.id();
    const { turns } = context.adapter;
    for (const mode of ['paused', 'draining', 'open'] as const) {
      await expect(turns.control({ sessionId, mode })).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND', sessionId });
    }
    expect(await turns.lane(sessionId)).toEqual({ sessionId, mode: 'open', queued: 0 });

    const foreign = { sessionId, foreignSession: true };
    await turns.control({ ...foreign, mode: 'paused' });
    await lane.queue('foreign', foreign);
    expect(await turns.claim(sessionId, lane.claimRequest())).toBeNull();
    await context.sessions.erase(sessionId);
    await expect(turns.control({ ...foreign, mode: 'paused' })).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
    expect(await turns.lane(sessionId)).toEqual({ sessionId, mode: 'open', queued: 0 });
  });

  it('TRN-11 distinguishes lanes by every character of their ids', async () => {
    const ids = [...lookalikeIds(context.id()), '__proto__', 'constructor'];
    for (const id of ids) {
      await create(context, { id });
      await lane.queue('first', { sessionId: id });
    }
    const paused = ids.filter((_, index) => index % 2 === 0);
    for (const sessionId of paused) await context.adapter.turns.control({ sessionId, mode: 'paused' });

    for (const id of ids) {
      const claimed = await context.adapter.turns.claim(id, lane.claimRequest());
      expect({ id, claimed: claimed !== null }).toEqual({ id, claimed: !paused.includes(id) });
      expect(await context.adapter.turns.lane(id)).toMatchObject({ mode: paused.includes(id) ? 'paused' : 'open' });
    }
    for (const id of ids) await context.sessions.delete(id);
  });

  describe('clear', () => {
    it('TRN-11 cancels the queued turns and keeps the running one', async () => {
      const { hold } = await lane.run('first');
      await lane.queue('second');
      await lane.queue('third');

      expect(await clear()).toBe(2);
      expect(await lane.statuses()).toEqual(['first: running', 'second: cancelled', 'third: cancelled']);
      expect(await clear()).toBe(0);
      expect(await lane.settle(hold, {}, lane.claimRequest())).toMatchObject({ next: null, notify: false });
      await lane.queue('fourth');
      expect(await lane.drain()).toEqual(['fourth']);
    });

    it('TRN-11 cancels a turn that waits for a signal as cancel does, whatever the mode of the lane', async () => {
      const turnId = await wait();
      await lane.queue('second');
      await lane.control('paused');

      expect(await clear()).toBe(2);
      const turn = await lane.get(turnId);
      expect(turn).toMatchObject({ status: 'cancelled', settledAt: expect.any(String) as string });
      expect(turn).not.toHaveProperty('waitingFor');
      expect(await lane.messages()).toEqual([]);
      expect(await view()).toEqual({ sessionId: lane.sessionId, mode: 'paused', queued: 0 });
    });

    it('TRN-11 does nothing on a lane that is idle or unknown', async () => {
      expect(await clear()).toBe(0);
      expect(await context.adapter.turns.clear(context.id())).toBe(0);
    });
  });

  describe('at once', () => {
    it('TRN-11 pause and claim: no turn is claimed once the pause has returned', async () => {
      await repeatedly(async (raced, one, other) => {
        await raced.queue('first');
        await raced.queue('second');
        const claims = [0, 1, 2].map(() => other.turns.claim(raced.sessionId, raced.claimRequest()));
        const { sessionId } = raced;
        await one.turns.control({ sessionId, mode: 'paused' });
        const late = await other.turns.claim(sessionId, raced.claimRequest());
        const claimed = (await Promise.all(claims)).filter((each): each is ClaimedTurn => each !== null);

        expect(late).toBeNull();
        expect(claimed.length).toBeLessThanOrEqual(1);
        for (const { hold } of claimed) {
          expect(await raced.settle(hold, {}, raced.claimRequest())).toMatchObject({ next: null });
        }
        const statuses = [claimed.length > 0 ? 'first: awaiting-input' : 'first: queued', 'second: queued'];
        expect(await raced.statuses()).toEqual(statuses);
      });
    });

    it('TRN-11 drain and accept: no turn is accepted once the drain has returned', async () => {
      await repeatedly(async (raced, one, other) => {
        const accepts = [0, 1, 2].map((n) => other.turns.accept(raced.acceptRequest(`${n}`)).catch(codeOf));
        await one.turns.control({ sessionId: raced.sessionId, mode: 'draining' });
        const late = await other.turns.accept(raced.acceptRequest('late')).catch(codeOf);
        const early = await Promise.all(accepts);

        expect(late).toBe('LANE_DRAINING');
        const accepted = early.filter((each) => each !== 'LANE_DRAINING');
        expect(await raced.drain()).toHaveLength(accepted.length);
      });
    });

    it('TRN-11 clear and claim: a turn is claimed or cancelled, never both', async () => {
      await repeatedly(async (raced, one, other) => {
        await raced.queue('first');
        await raced.queue('second');
        const [claimed, cleared] = await Promise.all([
          other.turns.claim(raced.sessionId, raced.claimRequest()),
          one.turns.clear(raced.sessionId),
        ]);

        expect(cleared).toBe(claimed ? 1 : 2);
        expect(await raced.statuses()).toEqual([claimed ? 'first: running' : 'first: cancelled', 'second: cancelled']);
      });
    });

    /** Races two clients several times, each time on a new lane. */
    async function repeatedly(
      race: (raced: TestLane, one: SessionsAdapter, other: SessionsAdapter) => Promise<void>,
    ): Promise<void> {
      const [one, other = one] = context.clients;
      for (let n = 0; n < RACES; n += 1) await race(await TestLane.open(context), one, other);
    }
  });

  function clear(): Promise<number> {
    return lane.adapter.turns.clear(lane.sessionId);
  }

  function view(): Promise<Lane> {
    return lane.adapter.turns.lane(lane.sessionId);
  }

  function controlAll(mode: LaneMode): Promise<{ notify: boolean }> {
    return context.adapter.turns.control({ sessionId: null, mode });
  }

  async function retry(delayMs: number): Promise<void> {
    const { hold } = await lane.run('first');
    await lane.adapter.turns.retry(hold, { error: ERROR, delayMs });
  }

  /** @returns the id of a turn that waits for the signal `go` */
  async function wait(timeoutMs?: number): Promise<string> {
    const { hold } = await lane.run('first');
    const timeout = timeoutMs === undefined ? {} : { timeoutMs };
    await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null), ...timeout });
    return hold.turnId;
  }

  async function whichAreDue(...lanes: TestLane[]): Promise<string[]> {
    const offered = new Set(await context.adapter.turns.due(10_000));
    return lanes.map(({ sessionId }) => sessionId).filter((sessionId) => offered.has(sessionId));
  }

  async function untilDue(of: TestLane): Promise<void> {
    for (let passed = 0; passed <= PATIENCE_MS; passed += POLL_MS) {
      if ((await whichAreDue(of)).length > 0) return;
      await of.elapse(POLL_MS);
    }
    throw new Error('The lane was not offered.');
  }

  async function expectDraining(accepting: Promise<unknown>): Promise<void> {
    await expect(accepting).rejects.toMatchObject({ code: 'LANE_DRAINING' });
  }
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code ?? error;
}
