import { SessionStateError } from '../../ledger/session.errors.js';
import { type AcceptedTurn, type AcceptTurn, type ClaimedTurn, type ClaimRequest } from '../../ledger/turn.store.js';
import { LaneDrainingError } from '../../ledger/turn.errors.js';
import { WHEN_BUSY } from '../../ledger/turn.js';
import { DESK, LONG_MS, NOTES, TestLane, WAYS_BACK } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** A lease that does not lapse between an accept and the next call, even on a busy machine. */
const LEASE_MS = 500;

/**
 * Tests of TurnLedger.accept with a claim. On an idle lane it accepts and claims in one commit, otherwise it only
 * accepts. A store may ignore the claim: then the tests claim separately.
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

  it('TRN-03 accept claims behind settled turns, with all data of a claim', async () => {
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

  it('TRN-03 a turn that accept claimed is held, settles, and hands over to the next', async () => {
    const { claimed } = await taken('first');
    await lane.queue('second');

    expect(await lane.claim()).toBeNull();
    expect(await lane.adapter.turns.lane(lane.sessionId)).toMatchObject({ queued: 1, head: { status: 'running' } });
    expect(await lane.adapter.turns.renew(claimed.hold, LONG_MS)).toEqual({});
    const settled = await lane.settle(claimed.hold, lane.settlement(claimed.turn, 0), lane.claimRequest());
    expect(settled).toMatchObject({ turn: { status: 'awaiting-input', turnIndex: 0 }, notify: false });
    expect(settled.next?.turn.request.input.text).toBe('second');
  });

  it('TRN-08 another worker claims a turn that accept claimed once its lease has lapsed', async () => {
    const { claimed } = await taken('first', {}, { leaseMs: LEASE_MS });
    await lane.elapse(LEASE_MS);

    const later = await lane.take();
    expect(later.turn).toMatchObject({ id: claimed.hold.turnId, lost: 1 });
    expect(later.hold.fence).toBeGreaterThan(claimed.hold.fence);
    await expect(lane.settle(claimed.hold)).rejects.toMatchObject({ code: 'TURN_FENCED' });
  });

  it('TRN-03 the lane of a turn that accept claimed is offered once its lease has lapsed, not before', async () => {
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
      const { claimed, notify } = await acceptWithClaim('new');

      expect(claimed).toBeUndefined();
      expect(notify).toBe(false);
      expect((await lane.statuses()).at(-1)).toBe('new: queued');
    });
  });

  it.each(['interrupt', 'rollback', 'replace'] as const)(
    'TRN-06 accept claims nothing while the turn that it asks to stop still runs, %s',
    async (whenBusy) => {
      await lane.run('holder');

      expect((await acceptWithClaim('new', { whenBusy })).claimed).toBeUndefined();
      expect(await lane.statuses()).toEqual(['holder: running', 'new: queued']);
    },
  );

  it.each(['latest', 'replace'] as const)(
    'TRN-06 accept claims if it superseded all turns of the lane, %s',
    async (whenBusy) => {
      await lane.queue('first');
      await lane.queue('second');

      await taken('new', { whenBusy });
      expect(await lane.statuses()).toEqual(['first: superseded', 'second: superseded', 'new: running']);
    },
  );

  it('TRN-06 accept claims if it ended the waiting turn, and returns that turn', async () => {
    const { hold } = await lane.run('holder');
    await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null) });

    const { claimed } = await taken('new', { whenBusy: 'interrupt' }, { windows: { [DESK]: 10 } });
    expect(claimed.history.map(({ content }) => content)).toEqual(['holder']);
    expect(await lane.statuses()).toEqual(['holder: cancelled', 'new: running']);
  });

  it('TRN-06 accept claims nothing if it ended the waiting turn and others are queued', async () => {
    const { hold } = await lane.run('holder');
    await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null) });
    await lane.queue('second');

    const { claimed, notify } = await acceptWithClaim('new', { whenBusy: 'interrupt' });
    expect(claimed).toBeUndefined();
    expect(notify).toBe(true);
    expect(await lane.drain()).toEqual(['second', 'new']);
  });

  it('TRN-11 accept claims nothing in a lane that is paused, until it is opened', async () => {
    await lane.control('paused');

    expect((await acceptWithClaim('first')).claimed).toBeUndefined();
    expect(await lane.claim()).toBeNull();
    expect(await lane.control('open')).toEqual({ notify: true });
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

  it('TRN-11 a rejected turn is not claimed', async () => {
    await lane.control('draining');
    await expect(acceptWithClaim('first')).rejects.toBeInstanceOf(LaneDrainingError);
    await lane.control('open');
    await context.sessions.expire(lane.sessionId);
    await expect(acceptWithClaim('first')).rejects.toBeInstanceOf(SessionStateError);

    expect(await lane.list()).toEqual([]);
    expect(await lane.claim()).toBeNull();
  });

  it('SES-15 accept claims a turn of a session in a foreign store', async () => {
    const sessionId = context.id();
    const { claimed } = await taken('hello', { sessionId, foreignSession: true });

    expect(claimed).toMatchObject({ hold: { sessionId }, session: null, turn: { status: 'running' } });
  });

  it('TRN-03 accept claims with a higher fence on a lane that was deleted and created again', async () => {
    const { claimed: old } = await taken('first');
    await context.sessions.delete(lane.sessionId);
    await lane.elapse(5);
    await lane.createSession();

    const { claimed } = await taken('first again');
    expect(claimed.hold.fence).toBeGreaterThan(old.hold.fence);
    await expect(lane.settle(old.hold)).rejects.toMatchObject({ code: 'TURN_FENCED' });
  });

  it('TRN-03 accept claims nothing when sent again after its claim has lapsed, was released or settled', async () => {
    const { turns } = context.adapter;
    const request = withClaim('first', {}, { leaseMs: LEASE_MS });
    const { hold } = (await takenFor(request)).claimed;
    await lane.elapse(LEASE_MS);
    expect((await turns.accept(request)).claimed).toBeUndefined();
    expect(await lane.get(request.id)).toMatchObject({ lost: 0 });

    await turns.release(hold, 0);
    const again = await turns.accept(request);
    expect(again).toMatchObject({ duplicate: true, notify: true, turn: { status: 'queued' } });
    expect(again).not.toHaveProperty('claimed');

    await lane.settle((await lane.take()).hold);
    const settled = await turns.accept(request);
    expect(settled).toMatchObject({ duplicate: true, notify: false, turn: { status: 'awaiting-input' } });
    expect(settled).not.toHaveProperty('claimed');
  });

  it.each(['is queued', 'runs'])('TRN-05 accept claims nothing for a repeated turn that %s', async (state) => {
    const idempotency = { key: 'key', hash: 'hash', ttlMs: LONG_MS };
    const { turn } = await lane.accept('first', { idempotency });
    if (state === 'runs') await lane.take();
    const before = await lane.snapshot();

    for (const repeat of [{ id: turn.id }, { idempotency }]) {
      const { claimed, ...rest } = await acceptWithClaim('first', repeat);
      expect(claimed).toBeUndefined();
      expect(rest).toMatchObject({ duplicate: true, notify: state === 'is queued', turn: { id: turn.id } });
    }
    expect(await lane.snapshot()).toEqual(before);
  });

  it('TRN-03 exactly one worker claims the first of several turns that are accepted concurrently', async () => {
    const { clients } = context;
    const requests = Array.from({ length: 20 }, (_, n) => withClaim(`turn ${n}`));
    const accepted = await Promise.all(requests.map((request, n) => clients[n % clients.length].turns.accept(request)));

    const claimed = accepted.flatMap((each) => each.claimed ?? []);
    expect(claimed.map(({ turn }) => turn.position)).toEqual(claimed.length > 0 ? [1] : []);
    const [first] = accepted.filter(({ turn }) => turn.position === 1);
    expect(first.claimed === undefined).toBe(first.notify);
    expect(accepted.filter(({ notify }) => notify).length).toBe(1 - claimed.length);
    if (context.claimsOnAccept) expect(claimed).toHaveLength(1);
    for (const { hold } of claimed) await lane.settle(hold);
    expect(await lane.drain()).toHaveLength(20 - claimed.length);
    expect((await lane.list()).map(({ position }) => position)).toEqual(requests.map((_, n) => n + 1));
  });

  it('TRN-03 at most one of two concurrent accepts of the same turn claims it', async () => {
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

  /** Accepts a turn that must be claimable immediately, and checks that a separate claim returns the same. */
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
    expect(accepted).toMatchObject({ duplicate: false, notify: !accepted.claimed });
    // A repeated claim returns what accept must have returned.
    const claimed = await turns.claim(request.sessionId, request.claim);
    if (!claimed) throw new Error('The turn could not be claimed.');
    if (accepted.claimed) expect(accepted.claimed).toEqual(claimed);
    return { ...accepted, claimed };
  }
}
