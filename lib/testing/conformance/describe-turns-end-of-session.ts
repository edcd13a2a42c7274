import { SessionConflictError, SessionNotFoundError } from '../../ledger/session.errors.js';
import { TurnFencedError, TurnNotFoundError } from '../../ledger/turn.errors.js';
import { DESK, LONG_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests of turns whose session expires, is deleted or is erased. */
export function describeTurnsEndOfSession(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-01 a session that expires cancels its queued turns in the same commit', async () => {
    const first = await lane.queue('first');
    await lane.queue('second');
    await lane.elapse(5);

    const { session } = await context.sessions.expire(lane.sessionId);

    expect(await lane.statuses()).toEqual(['first: cancelled', 'second: cancelled']);
    expect(await lane.get(first.id)).toMatchObject({ settledAt: session.stateChangedAt });
    expect(await lane.claim()).toBeNull();
  });

  it('TRN-01 a session that expires cancels its waiting turn, and those behind it', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    await lane.adapter.turns.wait(hold, { signal: 'approval', step: lane.step('approval', null), timeoutMs: 0 });

    await context.sessions.expire(lane.sessionId);

    expect(await lane.statuses()).toEqual(['first: cancelled', 'second: cancelled']);
    expect(await lane.get(turn.id)).not.toHaveProperty('waitingFor');
    expect(await lane.claim()).toBeNull();
    await expect(lane.adapter.turns.signal(turn.id, 'approval', true)).rejects.toMatchObject({ code: 'TURN_SETTLED' });
  });

  it('TRN-01 a running turn of an expired session may settle, but does not revive the session', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    const { session } = await context.sessions.expire(lane.sessionId);
    expect(await lane.statuses()).toEqual(['first: running', 'second: cancelled']);
    await lane.elapse(5);

    expect(await lane.adapter.turns.renew(hold, LONG_MS)).toEqual({});
    const settled = await lane.settle(hold, lane.settlement(turn, 0), lane.claimRequest());

    expect(settled).toMatchObject({ turn: { status: 'awaiting-input', turnIndex: 0 }, next: null, notify: false });
    expect(await lane.messages()).toHaveLength(2);
    expect(await context.sessions.fetchById(lane.sessionId)).toEqual(session);
  });

  it.each(['retry', 'release', 'wait'] as const)(
    'TRN-01 a running turn of an expired session ends at its %s',
    async (method) => {
      const { turns } = lane.adapter;
      const { hold, turn } = await lane.run('first');
      const { session } = await context.sessions.expire(lane.sessionId);

      if (method === 'retry') await turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: 0 });
      else if (method === 'release') await turns.release(hold, 0);
      else await turns.wait(hold, { signal: 'approval', step: lane.step('approval', null) });

      expect(await lane.get(turn.id)).toMatchObject({ status: 'cancelled', settledAt: expect.any(String) as string });
      expect(await lane.claim()).toBeNull();
      expect(await context.sessions.fetchById(lane.sessionId)).toEqual(session);
    },
  );

  it('TRN-01 a running turn of an expired session is not run again when its worker is lost', async () => {
    await lane.queue('first');
    await lane.lapse();
    await context.sessions.expire(lane.sessionId);

    expect(await lane.claim()).toBeNull();
    expect(await lane.statuses()).toEqual(['first: cancelled']);
    expect(await lane.messages()).toEqual([]);
  });

  it('TRN-01 a second expire changes nothing', async () => {
    await lane.queue('first');
    await context.sessions.expire(lane.sessionId);
    const before = await lane.snapshot();
    await lane.elapse(5);

    await context.sessions.expire(lane.sessionId);
    expect(await lane.snapshot()).toEqual(before);
  });

  it('TRN-01 a second expire cancels a turn that was queued again since the first', async () => {
    const { hold, turn } = await lane.run('first');
    const { session } = await context.sessions.expire(lane.sessionId);
    await lane.adapter.turns.retry(hold, { error: { name: 'Error', message: 'no', code: 'NO' }, delayMs: 0 });

    expect(await context.sessions.expire(lane.sessionId)).toEqual({
      session,
      previousState: 'expired',
      changed: false,
    });
    expect(await lane.get(turn.id)).toMatchObject({ status: 'cancelled' });
    expect(await lane.claim()).toBeNull();
  });

  it('TRN-01 a delete leaves no turns of the session', async () => {
    await lane.settle(...(await answered('first')));
    const { hold, turn } = await lane.run('second');
    await lane.adapter.turns.saveStep(hold, lane.step('charge', 1));
    await lane.adapter.turns.signal(turn.id, 'approval', true);

    await context.sessions.delete(lane.sessionId);

    expect(await lane.snapshot()).toEqual({ session: null, turns: [], messages: [], checkpoints: [], notes: null });
    expect(await lane.get(turn.id)).toBeNull();
    expect(await lane.claim()).toBeNull();
    await expect(lane.settle(hold)).rejects.toBeInstanceOf(TurnFencedError);
    await expect(lane.adapter.turns.signal(turn.id, 'approval', true)).rejects.toBeInstanceOf(TurnNotFoundError);
    await expect(lane.adapter.turns.cancel(turn.id, 'cancel')).rejects.toBeInstanceOf(TurnNotFoundError);
    await expect(lane.accept('third')).rejects.toBeInstanceOf(SessionNotFoundError);
  });

  it('TRN-01 a session that is created again under the same id starts with an empty lane', async () => {
    const id = context.id();
    const idempotency = { key: 'key', hash: 'hash', ttlMs: LONG_MS };
    await lane.queue('first', { id, idempotency });
    const { hold } = await lane.take();
    await lane.adapter.turns.saveStep(hold, lane.step('charge', 1));
    await lane.adapter.turns.signal(id, 'approval', true);
    await context.sessions.delete(lane.sessionId);
    await lane.createSession();

    const again = await lane.accept('first', { id, idempotency: { ...idempotency, hash: 'another' } });

    expect(again).toMatchObject({ duplicate: false, notify: true, turn: { position: 1, status: 'queued' } });
    const claimed = await lane.take();
    expect(claimed.steps).toEqual([]);
    expect(await lane.adapter.turns.signal(id, 'approval', false)).toMatchObject({ accepted: true });
  });

  it('TRN-01 does not affect the turns of other sessions', async () => {
    const other = await TestLane.open(context);
    await other.queue('other');
    await lane.queue('first');
    await context.sessions.delete(lane.sessionId);

    expect(await other.drain()).toEqual(['other']);
  });

  it('TRN-01 an erase leaves no turns of the session, and no turn is accepted for it again', async () => {
    await lane.settle(...(await answered('first')));
    const { hold, turn } = await lane.run('second');

    expect(await context.sessions.erase(lane.sessionId)).toBe(true);
    expect(await context.sessions.erase(lane.sessionId)).toBe(false);

    expect(await lane.snapshot()).toEqual({ session: null, turns: [], messages: [], checkpoints: [], notes: null });
    await expect(lane.settle(hold, lane.settlement(turn, 1))).rejects.toBeInstanceOf(TurnFencedError);
    await expect(lane.accept('third')).rejects.toBeInstanceOf(SessionNotFoundError);
    await expect(lane.createSession()).rejects.toBeInstanceOf(SessionConflictError);
    expect(await context.adapter.checkpoints.load(DESK, lane.sessionId)).toBeNull();
    expect(await lane.messages()).toEqual([]);
  });

  it('TRN-01 a delete or erase of a missing session has no effect', async () => {
    await expect(context.sessions.delete(context.id())).resolves.toBe(false);
    await expect(context.sessions.erase(context.id())).resolves.toBe(false);
  });

  async function answered(text: string): Promise<Parameters<TestLane['settle']>> {
    const { hold, turn } = await lane.run(text);
    return [hold, lane.settlement(turn, 0)];
  }
}
