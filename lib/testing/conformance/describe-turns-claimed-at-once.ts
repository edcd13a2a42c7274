import { SessionStateError } from '../../ledger/session.errors.js';
import { type AcceptedTurn, type AcceptTurn, type ClaimedTurn, type ClaimRequest } from '../../ledger/turn.store.js';
import { LaneDrainingError } from '../../ledger/turn.errors.js';
import { WHEN_BUSY } from '../../ledger/turn.js';
import { DESK, LONG_MS, NOTES, SHORT_MS, TestLane, WAYS_BACK } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/**
 * TurnLedger.accept with a claim: on an idle lane it is accept and claim in one commit, anywhere else it is accept. A store
 * that leaves the claim aside passes as well, by a claim right after.
 */
export function describeTurnsClaimedAtOnce(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-03 accept claims the first turn of a session', async () => {
    const { turn, claimed } = await taken('hello');

    expect(turn).toMatchObject({ status: 'queued', position: 1 });
    expect(turn).not.toHaveProperty('startedAt');
    expect(claimed).toEqual({
      hold: { sessionId: lane.sessionId, turnId: turn.id, fence: expect.any(Number) as number },
      turn: { ...turn, status: 'running', startedAt: expect.any(String) as string },
      session: await context.sessions.fetchById(lane.sessionId),
      checkpoint: null,
      history: [],
      steps: [],
      documents: [],
      epochs: {},
    });
    expect(await lane.get(turn.id)).toEqual(claimed.turn);
  });

  it('TRN-03 accept claims behind turns that are over, with all that a claim brings', async () => {
    const first = await lane.run('first');
    await lane.settle(first.hold, lane.settlement(first.turn, 0));
    await context.adapter.state.reset({ sessionId: lane.sessionId, namespaces: ['other'], epoch: 'epoch' });
    const wanted = { windows: { [DESK]: 10, other: 1 }, documents: { [DESK]: [NOTES, { ...NOTES, key: 'none' }] } };

    const { turn, claimed } = await taken('second', {}, wanted);

    expect(claimed.turn).toEqual({ ...turn, status: 'running', startedAt: expect.any(String) as string });
    expect(claimed.hold.fence).toBeGreaterThan(first.hold.fence);
    expect(claimed.session).toEqual(await context.sessions.fetchById(lane.sessionId));
    expect(claimed.checkpoint).toMatchObject({ turnIndex: 0, state: { turns: 1 } });
    expect(claimed.history).toEqual(await lane.messages());
    expect(claimed.documents).toEqual([await context.adapter.state.get({ ...NOTES, sessionId: lane.sessionId }), null]);
    expect(claimed.epochs).toEqual({ other: 'epoch' });
  });

  it('TRN-03 what accept claimed is held: nobody else gets it, it settles, and hands over', async () => {
    const { claimed } = await taken('first');
    await lane.queue('second');

    expect(await lane.claim()).toBeNull();
    expect(await lane.adapter.turns.lane(lane.sessionId)).toMatchObject({ queued: 1, head: { status: 'running' } });
    expect(await lane.adapter.turns.renew(claimed.hold, LONG_MS)).toEqual({});
    const settled = await lane.settle(claimed.hold, lane.settlement(claimed.turn, 0), lane.claimRequest());
    expect(settled).toMatchObject({ turn: { status: 'awaiting-input', turnIndex: 0 }, ring: false });
    expect(settled.next?.turn.request.input.text).toBe('second');
  });

  it('TRN-08 what accept claimed is given to another worker when its lease has lapsed', async () => {
    const { claimed } = await taken('first', {}, { leaseMs: SHORT_MS });
    await lane.elapse(SHORT_MS);

    const later = await lane.take();
    expect(later.turn).toMatchObject({ id: claimed.hold.turnId, lost: 1 });
    expect(later.hold.fence).toBeGreaterThan(claimed.hold.fence);
    await expect(lane.settle(claimed.hold)).rejects.toMatchObject({ code: 'TURN_FENCED' });
  });

  it('TRN-03 what accept claimed is offered once its lease has lapsed, not before', async () => {
    const { moveClock } = context;
    if (!moveClock) return;
    await taken('first');

    await moveClock(LONG_MS - 1);
    expect(await context.adapter.turns.due(1000)).not.toContain(lane.sessionId);
    await moveClock(1);
    expect(await context.adapter.turns.due(1000)).toContain(lane.sessionId);
  });

  it.each(WHEN_BUSY)('TRN-06 accept claims on an idle lane, %s', async (whenBusy) => {
    await taken('first', { whenBusy });
    expect(await lane.statuses()).toEqual(['first: running']);
  });

  describe.each(['is queued', 'runs', 'was lost', 'waits', ...WAYS_BACK] as const)('while a turn %s', (state) => {
    beforeEach(async () => {
      await lane.queue('holder');
      if (state === 'is queued') return;
      if (state === 'was lost') return void (await lane.lapse());
      const { hold } = await lane.take();
      if (state === 'waits') await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null) });
      else if (state !== 'runs') await lane.putBack(state, hold);
    });

    it('TRN-02 accept claims nothing', async () => {
      const { claimed, ring } = await acceptWithClaim('new');

      expect(claimed).toBeUndefined();
      expect(ring).toBe(false);
      expect((await lane.statuses()).at(-1)).toBe('new: queued');
    });
  });

  it.each(['interrupt', 'rollback', 'replace'] as const)(
    'TRN-06 accept claims nothing while the turn runs that is asked to stop, %s',
    async (whenBusy) => {
      await lane.run('holder');

      expect((await acceptWithClaim('new', { whenBusy })).claimed).toBeUndefined();
      expect(await lane.statuses()).toEqual(['holder: running', 'new: queued']);
    },
  );

  it.each(['latest', 'replace'] as const)('TRN-06 accept claims where it superseded all, %s', async (whenBusy) => {
    await lane.queue('first');
    await lane.queue('second');

    await taken('new', { whenBusy });
    expect(await lane.statuses()).toEqual(['first: superseded', 'second: superseded', 'new: running']);
  });

  it('TRN-06 accept claims where it ended the turn that waited, and is told what that one was', async () => {
    const { hold } = await lane.run('holder');
    await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null) });

    const { claimed } = await taken('new', { whenBusy: 'interrupt' }, { windows: { [DESK]: 10 } });
    expect(claimed.history.map(({ content }) => content)).toEqual(['holder']);
    expect(await lane.statuses()).toEqual(['holder: cancelled', 'new: running']);
  });

  it('TRN-06 accept claims nothing where it ended the turn that waited and others are queued', async () => {
    const { hold } = await lane.run('holder');
    await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null) });
    await lane.queue('second');

    const { claimed, ring } = await acceptWithClaim('new', { whenBusy: 'interrupt' });
    expect(claimed).toBeUndefined();
    expect(ring).toBe(true);
    expect(await lane.drain()).toEqual(['second', 'new']);
  });

  it('TRN-11 accept claims nothing in a lane that is paused, until it is opened', async () => {
    await lane.control('paused');

    expect((await acceptWithClaim('first')).claimed).toBeUndefined();
    expect(await lane.claim()).toBeNull();
    expect(await lane.control('open')).toEqual({ ring: true });
    expect(await lane.drain()).toEqual(['first']);
  });

  it('TRN-11 accept claims nothing while all lanes are paused', async () => {
    const { turns } = context.adapter;
    await turns.control({ sessionId: null, mode: 'paused' });
    try {
      expect((await acceptWithClaim('first')).claimed).toBeUndefined();
      expect(await lane.statuses()).toEqual(['first: queued']);
    } finally {
      await turns.control({ sessionId: null, mode: 'open' });
    }
    expect(await lane.drain()).toEqual(['first']);
  });

  it('TRN-11 what is refused is not claimed', async () => {
    await lane.control('draining');
    await expect(acceptWithClaim('first')).rejects.toBeInstanceOf(LaneDrainingError);
    await lane.control('open');
    await context.sessions.expire(lane.sessionId);
    await expect(acceptWithClaim('first')).rejects.toBeInstanceOf(SessionStateError);

    expect(await lane.list()).toEqual([]);
    expect(await lane.claim()).toBeNull();
  });

  it('SES-15 accept claims a turn of a session that a foreign store keeps', async () => {
    const sessionId = context.id();
    const { claimed } = await taken('hello', { sessionId, foreignSession: true });

    expect(claimed).toMatchObject({ hold: { sessionId }, session: null, turn: { status: 'running' } });
  });

  it('TRN-03 accept claims with a higher fence on a lane that was deleted and made again', async () => {
    const { claimed: old } = await taken('first');
    await context.sessions.delete(lane.sessionId);
    await lane.elapse(5);
    await lane.createSession();

    const { claimed } = await taken('first again');
    expect(claimed.hold.fence).toBeGreaterThan(old.hold.fence);
    await expect(lane.settle(old.hold)).rejects.toMatchObject({ code: 'TURN_FENCED' });
  });

  it('TRN-03 sent again when its claim has lapsed, was given back or settled, accept claims nothing', async () => {
    const { turns } = context.adapter;
    const request = withClaim('first', {}, { leaseMs: SHORT_MS });
    const { hold } = (await takenFor(request)).claimed;
    await lane.elapse(SHORT_MS);
    expect((await turns.accept(request)).claimed).toBeUndefined();
    expect(await lane.get(request.id)).toMatchObject({ lost: 0 });

    await turns.release(hold, 0);
    const again = await turns.accept(request);
    expect(again).toMatchObject({ duplicate: true, ring: true, turn: { status: 'queued' } });
    expect(again).not.toHaveProperty('claimed');

    await lane.settle((await lane.take()).hold);
    const settled = await turns.accept(request);
    expect(settled).toMatchObject({ duplicate: true, ring: false, turn: { status: 'awaiting-input' } });
    expect(settled).not.toHaveProperty('claimed');
  });

  it.each(['is queued', 'runs'])('TRN-05 accept claims nothing for whoever repeats a turn that %s', async (state) => {
    const idempotency = { key: 'key', hash: 'hash', ttlMs: LONG_MS };
    const { turn } = await lane.accept('first', { idempotency });
    if (state === 'runs') await lane.take();
    const before = await lane.snapshot();

    for (const repeat of [{ id: turn.id }, { idempotency }]) {
      const { claimed, ...rest } = await acceptWithClaim('first', repeat);
      expect(claimed).toBeUndefined();
      expect(rest).toMatchObject({ duplicate: true, ring: state === 'is queued', turn: { id: turn.id } });
    }
    expect(await lane.snapshot()).toEqual(before);
  });

  it('TRN-03 of turns that are accepted with a claim at once, the first one is claimed, by one', async () => {
    const { clients } = context;
    const requests = Array.from({ length: 20 }, (_, n) => withClaim(`turn ${n}`));
    const accepted = await Promise.all(requests.map((request, n) => clients[n % clients.length].turns.accept(request)));

    const claimed = accepted.flatMap((each) => each.claimed ?? []);
    expect(claimed.map(({ turn }) => turn.position)).toEqual(claimed.length > 0 ? [1] : []);
    const [first] = accepted.filter(({ turn }) => turn.position === 1);
    expect(first.claimed === undefined).toBe(first.ring);
    expect(accepted.filter(({ ring }) => ring).length).toBe(1 - claimed.length);
    if (context.claimsOnAccept) expect(claimed).toHaveLength(1);
    for (const { hold } of claimed) await lane.settle(hold);
    expect(await lane.drain()).toHaveLength(20 - claimed.length);
    expect((await lane.list()).map(({ position }) => position)).toEqual(requests.map((_, n) => n + 1));
  });

  it('TRN-03 of two who accept the same turn with a claim at once, one at most claims it', async () => {
    const { clients } = context;
    for (let round = 0; round < 10; round += 1) {
      lane = await TestLane.open(context);
      const id = context.id();
      const accepted = await Promise.all(
        [0, 1, 2, 3].map((n) => clients[n % clients.length].turns.accept(withClaim('hello', { id }))),
      );
      const claimed = accepted.flatMap((each) => each.claimed ?? []);
      expect(claimed.length).toBeLessThanOrEqual(1);
      if (context.claimsOnAccept) expect(claimed).toHaveLength(1);
      expect(accepted.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
      for (const { hold } of claimed) await lane.settle(hold);
      expect(await lane.drain()).toHaveLength(1 - claimed.length);
    }
  });

  function withClaim(
    text: string,
    changes: Partial<AcceptTurn> = {},
    claim: Partial<ClaimRequest> = {},
  ): AcceptTurn & { claim: ClaimRequest } {
    return { ...lane.acceptRequest(text, changes), claim: lane.claimRequest(claim) };
  }

  function acceptWithClaim(text: string, changes?: Partial<AcceptTurn>): Promise<AcceptedTurn> {
    return lane.adapter.turns.accept(withClaim(text, changes));
  }

  /** Accepts a turn that must be claimable at once, and looks whether the claim that was left aside gives the same. */
  function taken(
    text: string,
    changes?: Partial<AcceptTurn>,
    claim?: Partial<ClaimRequest>,
  ): Promise<AcceptedTurn & { claimed: ClaimedTurn }> {
    return takenFor(withClaim(text, changes, claim));
  }

  async function takenFor(
    request: AcceptTurn & { claim: ClaimRequest },
  ): Promise<AcceptedTurn & { claimed: ClaimedTurn }> {
    const { turns } = context.adapter;
    const accepted = await turns.accept(request);
    if (context.claimsOnAccept) expect(accepted.claimed).toBeDefined();
    expect(accepted).toMatchObject({ duplicate: false, ring: !accepted.claimed });
    // The same claim sent twice: what it gives is what accept must have given.
    const claimed = await turns.claim(request.sessionId, request.claim);
    if (!claimed) throw new Error('The turn could not be claimed.');
    if (accepted.claimed) expect(accepted.claimed).toEqual(claimed);
    return { ...accepted, claimed };
  }
}
