import { SessionStateError } from '../../ledger/session.errors.js';
import { LONG_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const LANES = 10;

/** Tests that a revoke handles turns like an expiry, and also asks the running turn to stop (NST-18). */
export function describeTurnsRevoke(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('NST-18 asks the running turn to stop and cancels those behind it, in one commit', async () => {
    const { hold, turn } = await lane.run('first');
    const second = await lane.queue('second');
    await lane.elapse(5);

    const { session } = await context.sessions.revoke(lane.sessionId);

    expect(session.state).toBe('expired');
    expect(await lane.statuses()).toEqual(['first: running', 'second: cancelled']);
    expect(await lane.get(turn.id)).toMatchObject({ cancelMode: 'cancel' });
    expect(await lane.get(second.id)).toMatchObject({ settledAt: session.stateChangedAt });
    expect(await lane.adapter.turns.renew(hold, LONG_MS)).toEqual({ cancelMode: 'cancel' });
  });

  it('NST-18 cancels the turn that waits for a signal, and those behind it', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    await lane.adapter.turns.wait(hold, { signal: 'approval', step: lane.step('approval', null) });

    await context.sessions.revoke(lane.sessionId);

    expect(await lane.statuses()).toEqual(['first: cancelled', 'second: cancelled']);
    await expect(lane.adapter.turns.signal(turn.id, 'approval', true)).rejects.toMatchObject({ code: 'TURN_SETTLED' });
    expect(await lane.claim()).toBeNull();
  });

  it('NST-18 keeps the mark that a running turn already has', async () => {
    const { turn } = await lane.run('first');
    await lane.adapter.turns.cancel(turn.id, 'interrupt');

    await context.sessions.revoke(lane.sessionId);
    expect(await lane.get(turn.id)).toMatchObject({ status: 'running', cancelMode: 'interrupt' });
  });

  it('NST-18 asks a turn that still runs in an expired session to stop', async () => {
    const { turn } = await lane.run('first');
    const { session } = await context.sessions.expire(lane.sessionId);

    expect(await context.sessions.revoke(lane.sessionId)).toMatchObject({ session, changed: false });
    expect(await lane.get(turn.id)).toMatchObject({ status: 'running', cancelMode: 'cancel' });
  });

  it.each(['cancelled', 'awaiting-input'] as const)(
    'NST-18 a later settle as %s does not revive the session',
    async (status) => {
      const { hold, turn } = await lane.run('first');
      await lane.queue('second');
      const { session } = await context.sessions.revoke(lane.sessionId);
      await lane.elapse(5);

      const settled = await lane.settle(hold, { status }, lane.claimRequest());

      expect(settled).toMatchObject({ turn: { id: turn.id, status }, next: null, notify: false });
      expect(settled.turn).not.toHaveProperty('cancelMode');
      expect(settled).not.toHaveProperty('sessionChange');
      expect(await context.sessions.fetchById(lane.sessionId)).toEqual(session);
      expect(await lane.claim()).toBeNull();
    },
  );

  it.each(['retry', 'release', 'wait'] as const)('NST-18 the turn ends as cancelled at its %s', async (method) => {
    const { turns } = lane.adapter;
    const { hold, turn } = await lane.run('first');
    const { session } = await context.sessions.revoke(lane.sessionId);

    if (method === 'retry') await turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: 0 });
    else if (method === 'release') await turns.release(hold, 0);
    else await turns.wait(hold, { signal: 'approval', step: lane.step('approval', null) });

    expect(await lane.get(turn.id)).toMatchObject({ status: 'cancelled' });
    expect(await lane.claim()).toBeNull();
    expect(await context.sessions.fetchById(lane.sessionId)).toEqual(session);
  });

  it('NST-18 the turn of a worker that is lost is not run again', async () => {
    await lane.queue('first');
    await lane.lapse();
    await context.sessions.revoke(lane.sessionId);

    expect(await lane.claim()).toBeNull();
    expect(await lane.statuses()).toEqual(['first: cancelled']);
    expect(await lane.messages()).toEqual([]);
  });

  it('NST-18 does not affect the turns of other sessions', async () => {
    const other = await TestLane.open(context);
    const { turn } = await other.run('other');
    await context.sessions.revoke(lane.sessionId);

    expect(await other.get(turn.id)).not.toHaveProperty('cancelMode');
  });

  it('NST-18 leaves no turn running unmarked when revoke and claim race', async () => {
    await race(async (raced) => {
      await raced.queue('first');
      return () => raced.claim();
    });
  });

  it('NST-18 leaves no turn running unmarked when revoke and accept race', async () => {
    await race(async (raced) => {
      await raced.run('first');
      return () => raced.accept('second').catch(refusal);
    });
  });

  it('NST-18 leaves no turn running unmarked when revoke and a settle that hands over race', async () => {
    await race(async (raced) => {
      const { hold } = await raced.run('first');
      await raced.queue('second');
      return () => raced.settle(hold, {}, raced.claimRequest());
    });
  });

  /** Races a revoke with an operation, in several sessions concurrently. */
  async function race(prepare: (raced: TestLane) => Promise<() => Promise<unknown>>): Promise<void> {
    const raced = await Promise.all(Array.from({ length: LANES }, () => TestLane.open(context)));
    const operations = await Promise.all(raced.map(prepare));
    await Promise.all(
      raced.flatMap(({ sessionId }, at) => {
        const pair = [() => context.sessions.revoke(sessionId), operations[at]];
        return (at % 2 === 0 ? pair : pair.reverse()).map((send) => send());
      }),
    );
    for (const each of raced) {
      const open = (await each.list()).filter(({ settledAt }) => settledAt === undefined);
      expect(open.map(({ status, cancelMode }) => [status, cancelMode])).toEqual(open.map(() => ['running', 'cancel']));
      expect(await each.claim()).toBeNull();
      expect(await context.sessions.fetchById(each.sessionId)).toMatchObject({ state: 'expired' });
    }
  }
}

function refusal(error: unknown): void {
  if (!(error instanceof SessionStateError)) throw error;
}
