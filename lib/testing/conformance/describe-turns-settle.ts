import { CheckpointConflictError } from '../../ledger/checkpoint.errors.js';
import { TurnFencedError } from '../../ledger/turn.errors.js';
import { type AcceptTurn, type ClaimedTurn, type TurnSettlement } from '../../ledger/turn.store.js';
import { type SettledTurnStatus } from '../../ledger/turn.js';
import { DESK, LONG_MS, NOTES, SHORT_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const SETTLED: readonly SettledTurnStatus[] = ['awaiting-input', 'completed', 'failed', 'cancelled'];

/** Tests of TurnLedger.settle, which stores all changes of a turn in one commit. */
export function describeTurnsSettle(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('FIX-44 resumes a session that was idle for longer than its TTL', async () => {
    const ttls = [undefined, LONG_MS, 5];
    const previous: unknown[] = [];
    for (const [index, sessionTtlMs] of ttls.entries()) {
      const { hold, turn } = await lane.run(`turn ${index}`);
      await lane.elapse(20);
      const settlement = lane.settlement(turn, index);
      const { sessionChange } = await lane.settle(hold, { ...settlement, ...(sessionTtlMs && { sessionTtlMs }) });
      previous.push(sessionChange?.previousState);
      expect(await context.sessions.fetchById(lane.sessionId)).toEqual(sessionChange?.session);
      if (index === 2) expect(sessionChange?.session.stateChangedAt).toBe(sessionChange?.session.lastActivityAt);
    }

    expect(previous).toEqual(['created', 'active', 'suspended']);
  });

  it('TRN-01 settles a turn with its reply, and stores all its changes', async () => {
    const { hold, turn, session } = await lane.run('hello');
    await lane.elapse(5);

    const settled = await lane.settle(hold, {
      ...lane.settlement(turn, 0),
      reply: { text: 'hi', data: { mood: ['good', null, '\ud83d'] } },
      report: { iterations: 1 },
    });

    expect(settled).toEqual({
      turn: {
        ...turn,
        status: 'awaiting-input',
        turnIndex: 0,
        reply: { text: 'hi', data: { mood: ['good', null, '\ud83d'] } },
        report: { iterations: 1 },
        settledAt: expect.any(String) as string,
      },
      next: null,
      notify: false,
      sessionChange: {
        session: {
          ...session,
          state: 'active',
          lastActivityAt: settled.turn.settledAt,
          stateChangedAt: settled.turn.settledAt,
          version: 2,
        },
        previousState: 'created',
        changed: true,
      },
    });
    expect(await context.sessions.fetchById(lane.sessionId)).toEqual(settled.sessionChange?.session);
    expect((settled.turn.settledAt ?? '') > (turn.startedAt ?? '')).toBe(true);
    expect(await lane.get(turn.id)).toEqual(settled.turn);
    expect(await lane.messages()).toMatchObject([
      { position: 1, role: 'user', content: 'hello', turnId: turn.id, orchestrator: DESK },
      { position: 2, role: 'assistant', content: 'answer 0', turnId: turn.id, orchestrator: DESK },
    ]);
    expect(await context.adapter.checkpoints.load(DESK, lane.sessionId)).toEqual({
      ...lane.checkpoint(0, turn.id),
      savedAt: settled.turn.settledAt,
    });
  });

  it.each(SETTLED)('TRN-01 settles a turn as %s', async (status) => {
    const { hold } = await lane.run('hello');
    const error = { name: 'Error', message: 'no', code: 'NO', details: { field: 'amount' } };

    const { turn } = await lane.settle(hold, { status, ...(status === 'failed' ? { error } : {}) });

    expect(turn).toMatchObject({ status, failures: status === 'failed' ? 1 : 0 });
    expect(turn).not.toHaveProperty('turnIndex');
    if (status === 'failed') expect(turn.error).toEqual(error);
    else expect(turn).not.toHaveProperty('error');
    expect(await lane.claim()).toBeNull();
  });

  it.each(['awaiting-input', 'completed'] as const)(
    'SES-05 a turn that settles as %s counts as activity of its session',
    async (status) => {
      const { hold } = await lane.run('hello');
      await lane.elapse(5);
      const { turn } = await lane.settle(hold, { status });

      expect(await context.sessions.fetchById(lane.sessionId)).toMatchObject({
        state: 'active',
        lastActivityAt: turn.settledAt,
        version: 2,
      });
    },
  );

  it.each(['failed', 'cancelled'] as const)('BOT-08 a %s turn does not change its session', async (status) => {
    const { hold, session } = await lane.run('hello');
    await lane.elapse(5);
    await lane.settle(hold, { status });

    expect(await context.sessions.fetchById(lane.sessionId)).toEqual(session);
    expect(await lane.messages()).toEqual([]);
    expect(await context.adapter.checkpoints.load(DESK, lane.sessionId)).toBeNull();
  });

  it.each([
    ['a duplicate', 0],
    ['out of order', 2],
  ])('BOT-20 changes nothing when the checkpoint is %s', async (_, turnIndex) => {
    await settleOne('first', 0);
    const { hold, turn } = await lane.run('second');
    await lane.queue('third');
    const before = await lane.snapshot();

    const refused = lane.settle(hold, lane.settlement(turn, turnIndex), lane.claimRequest());

    await expect(refused).rejects.toBeInstanceOf(CheckpointConflictError);
    await expect(refused).rejects.toMatchObject({ orchestrator: DESK, sessionId: lane.sessionId, turnIndex });
    expect(await lane.snapshot()).toEqual(before);
    expect(await lane.statuses()).toEqual(['first: awaiting-input', 'second: running', 'third: queued']);
    expect(await lane.claim()).toBeNull();
    expect(await lane.adapter.turns.renew(hold, LONG_MS)).toEqual({});
    expect((await lane.settle(hold, lane.settlement(turn, 1))).turn).toMatchObject({ turnIndex: 1 });
  });

  it('BOT-20 numbers checkpoints from 0 without gaps, and none for failed turns', async () => {
    await settleOne('first', 0);
    await lane.settle((await lane.run('failing')).hold, { status: 'failed' });
    await settleOne('second', 1);

    const history = await context.adapter.checkpoints.history(DESK, lane.sessionId);
    expect(history.map(({ turnIndex }) => turnIndex)).toEqual([1, 0]);
  });

  it('BOT-21 keeps the requested number of checkpoints', async () => {
    for (let index = 0; index < 5; index += 1) {
      const { hold, turn } = await lane.run(`turn ${index}`);
      await lane.settle(hold, { ...lane.settlement(turn, index), keepCheckpoints: 3 });
    }

    const history = await context.adapter.checkpoints.history(DESK, lane.sessionId);
    expect(history.map(({ turnIndex }) => turnIndex)).toEqual([4, 3, 2]);
  });

  it('BOT-25 stores the speaker of a message if it names one', async () => {
    const { hold, turn } = await lane.run('hello');
    const message = (index: number) => ({ id: `${turn.id}.${index}`, role: 'assistant' as const, content: null });
    const messages = [{ ...message(0), orchestrator: 'another' }, { ...message(1), orchestrator: null }, message(2)];
    await lane.settle(hold, { ...lane.settlement(turn, 0), messages });

    const stored = await lane.messages();
    expect(stored.map(({ orchestrator }) => orchestrator)).toEqual(['another', undefined, DESK]);
    expect(stored.map(({ turnId }) => turnId)).toEqual([turn.id, turn.id, turn.id]);
    expect(stored[1]).not.toHaveProperty('orchestrator');
    expect(await lane.adapter.conversations.window(lane.sessionId, 3)).toEqual(stored);
  });

  it('BOT-25 hands over a checkpoint with its undone turns and documents', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    const documents = [{ name: NOTES, value: { note: 'lone \ud83d surrogate' } }];
    const checkpoint = { ...lane.checkpoint(0, turn.id), undone: [{ from: 1, through: 2 }], documents };

    const { next } = await lane.settle(hold, { checkpoint }, lane.claimRequest());

    expect(next?.checkpoint).toMatchObject(checkpoint);
    expect(next?.checkpoint).toEqual(await context.adapter.checkpoints.load(DESK, lane.sessionId));
  });

  it('TRN-01 hands over the next turn with the data that this one has just stored', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');

    const { next, notify } = await lane.settle(
      hold,
      lane.settlement(turn, 0),
      lane.claimRequest({ windows: { [DESK]: 10 } }),
    );

    expect(notify).toBe(false);
    expect(next).toMatchObject({
      hold: { sessionId: lane.sessionId },
      turn: { status: 'running', request: { input: { text: 'second' } } },
      session: { state: 'active' },
      checkpoint: { turnIndex: 0, turnId: turn.id },
      history: [{ content: 'first' }, { content: 'answer 0' }],
    });
    expect(next?.hold.fence).toBeGreaterThan(hold.fence);
    expect(await lane.claim()).toBeNull();
    const last = await lane.settle((next as ClaimedTurn).hold, {}, lane.claimRequest());
    expect(last).toMatchObject({ next: null, notify: false });
  });

  it.each<[string, Partial<AcceptTurn>, Partial<TurnSettlement>, number | undefined]>([
    ['of another orchestrator', { orchestrator: 'another' }, {}, undefined],
    ['behind a failed turn', {}, { status: 'failed', checkpoint: undefined }, 0],
    ['behind another turn', {}, {}, 1],
  ])('TRN-01 hands over a turn %s with its stored data', async (_, accepted, settlement, turnIndex) => {
    const before = await lane.run('before');
    await lane.settle(before.hold, lane.settlement(before.turn, 0));
    const { hold, turn } = await lane.run('first');
    await lane.queue('second', accepted);

    const { next } = await lane.settle(
      hold,
      { ...lane.settlement(turn, 1), ...settlement },
      lane.claimRequest({ windows: { [DESK]: 10, another: 10 } }),
    );

    const { adapter, sessions } = context;
    const { checkpoint, session, history } = next as ClaimedTurn;
    expect(checkpoint?.turnIndex).toBe(turnIndex);
    expect(checkpoint).toEqual(await adapter.checkpoints.load(accepted.orchestrator ?? DESK, lane.sessionId));
    expect(session).toEqual(await sessions.fetchById(lane.sessionId));
    expect(history).toEqual(await adapter.conversations.window(lane.sessionId, 10));
  });

  it('TRN-01 asks to notify when the next turn is due and was not requested', async () => {
    const { hold } = await lane.run('first');
    await lane.queue('second');

    expect(await lane.settle(hold)).toMatchObject({ next: null, notify: true });
    expect(await lane.drain()).toEqual(['second']);
  });

  it('TRN-01 returns the same turn and the same next claim when a settle is sent twice', async () => {
    const { hold, turn } = await lane.run('first');
    await lane.queue('second');
    const settlement = lane.settlement(turn, 0);
    const request = lane.claimRequest();

    const { sessionChange, ...first } = await lane.settle(hold, settlement, request);
    const before = await lane.snapshot();
    const second = await lane.settle(hold, settlement, request);

    expect(sessionChange).toMatchObject({ previousState: 'created', changed: true });
    // The second call changed no session.
    expect(second).toEqual(first);
    expect(await lane.snapshot()).toEqual(before);
  });

  it('TRN-01 returns the same turn when a settle is sent twice on a lane without further turns', async () => {
    const { hold, turn } = await lane.run('first');
    const settlement = lane.settlement(turn, 0);

    const { sessionChange, ...first } = await lane.settle(hold, settlement);
    expect(sessionChange).toMatchObject({ previousState: 'created', changed: true });
    expect(await lane.settle(hold, settlement)).toEqual(first);
    expect(await lane.settle(hold, settlement, lane.claimRequest())).toEqual(first);
    expect(await lane.messages()).toHaveLength(2);
  });

  it('TRN-01 grants the next turn to a late repeated settle only if it is free', async () => {
    const { hold } = await lane.run('first');
    await lane.queue('second');
    await lane.settle(hold);
    const successor = await lane.take();

    const again = await lane.settle(hold, {}, lane.claimRequest());

    expect(again).toMatchObject({ turn: { status: 'awaiting-input' }, next: null, notify: false });
    expect(await lane.adapter.turns.renew(successor.hold, LONG_MS)).toEqual({});
  });

  it.each([...SETTLED, 'superseded'] as const)('TRN-01 a turn that is %s never changes again', async (status) => {
    const { hold, turn } = await ended(status);
    const { turns } = context.adapter;
    const before = await lane.snapshot();

    expect(await turns.cancel(turn.id, 'rollback')).toMatchObject({ turn: { status }, notify: false });
    await expect(turns.signal(turn.id, 'late', true)).rejects.toMatchObject({
      code: 'TURN_SETTLED',
      sessionId: lane.sessionId,
      turnId: turn.id,
    });
    const error = { name: 'Error', message: 'too late' };
    for (const write of [
      turns.renew(hold, LONG_MS),
      turns.retry(hold, { error, delayMs: 0 }),
      turns.release(hold, 0),
      turns.wait(hold, { signal: 'late', step: lane.step('late', null) }),
      turns.saveStep(hold, lane.step('late', 1)),
    ]) {
      await expect(write).rejects.toBeInstanceOf(TurnFencedError);
    }
    await lane.settle(hold, { status: 'failed', error }).catch((refused: unknown) => {
      expect(refused).toBeInstanceOf(TurnFencedError);
    });
    await lane.elapse(SHORT_MS);
    expect(await lane.claim()).toBeNull();
    await context.sessions.expire(lane.sessionId);

    expect(await lane.snapshot()).toMatchObject({ ...before, session: { state: 'expired' } });
    expect(await lane.get(turn.id)).toEqual(turn);
  });

  /** Returns a settled turn, and the hold that its last worker had or could have had. */
  async function ended(status: SettledTurnStatus | 'superseded') {
    if (status !== 'superseded') {
      const { hold, turn } = await lane.run('hello');
      const settled = await lane.settle(
        hold,
        status === 'failed' ? { status } : { ...lane.settlement(turn, 0), status },
      );
      return { hold, turn: settled.turn };
    }
    const turn = await lane.queue('hello');
    await lane.queue('new', { whenBusy: 'latest' });
    const { hold } = await lane.take();
    await lane.settle(hold);
    return { hold: { ...hold, turnId: turn.id }, turn: (await lane.get(turn.id)) ?? turn };
  }

  async function settleOne(text: string, turnIndex: number): Promise<void> {
    const { hold, turn } = await lane.run(text);
    await lane.settle(hold, lane.settlement(turn, turnIndex));
  }
}
