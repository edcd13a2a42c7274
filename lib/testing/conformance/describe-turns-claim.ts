import { stepId, type StoredStep } from '../../ledger/turn-step.js';
import { DESK, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

/** Tests of TurnLedger.claim and saveStep: the data that a worker receives. */
export function describeTurnsClaim(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  it('TRN-01 claims the head of the lane with all data that the worker needs', async () => {
    const accepted = await lane.queue('hello');
    await lane.queue('later');
    await lane.elapse(5);

    const claimed = await lane.take();

    expect(claimed).toEqual({
      hold: { sessionId: lane.sessionId, turnId: accepted.id, fence: expect.any(Number) as number },
      turn: { ...accepted, status: 'running', startedAt: expect.any(String) as string },
      session: await context.sessions.fetchById(lane.sessionId),
      checkpoint: null,
      history: [],
      steps: [],
      documents: [],
      epochs: {},
    });
    expect((claimed.turn.startedAt ?? '') > accepted.acceptedAt).toBe(true);
    expect(await lane.get(accepted.id)).toEqual(claimed.turn);
  });

  it('TRN-01 claims nothing when nothing is due', async () => {
    expect(await lane.claim()).toBeNull();
    expect(await context.adapter.turns.claim(context.id(), lane.claimRequest())).toBeNull();
    await lane.settle((await lane.run('done')).hold);
    expect(await lane.claim()).toBeNull();
  });

  it('TRN-04 lets turns of different sessions run concurrently', async () => {
    const other = await TestLane.open(context);
    await lane.run('here');

    expect((await other.run('there')).turn.status).toBe('running');
  });

  it('BOT-30 stores the result of a step once, and passes it to the next attempt', async () => {
    const { hold } = await lane.run('first');
    const charge = lane.step('charge', { id: 1 });
    const again = { ...lane.step('charge', 'second call'), key: 1 };
    const elsewhere = { ...lane.step('charge', null), iteration: 1, intent: 'other' };
    for (const step of [charge, again, elsewhere]) {
      expect(await lane.adapter.turns.saveStep(hold, step)).toEqual(step);
    }
    expect(await lane.adapter.turns.saveStep(hold, lane.step('charge', { id: 2 }))).toEqual(charge);

    await lane.adapter.turns.release(hold, 0);
    const { steps } = await lane.take();
    expect(steps).toHaveLength(3);
    expect(steps).toEqual(expect.arrayContaining([charge, again, elsewhere]));
  });

  it('FIX-01 FIX-02 distinguishes steps by every part of their key', async () => {
    const { hold } = await lane.run('first');
    const charge = lane.step('charge', 'numbered');
    const parent = stepId(charge);
    const steps: StoredStep[] = [
      charge,
      { ...charge, key: '0', value: 'with a key that looks like a number' },
      { ...charge, key: 'order 1', value: 'order 1' },
      { ...charge, parent, value: 'inside the first' },
      { ...charge, parent: stepId({ ...charge, key: 1 }), value: 'inside the second' },
      ...(['tool', 'wait', 'timeout', 'route', 'iteration'] as const).map((kind) => ({ ...charge, kind, value: kind })),
    ];
    for (const step of steps) expect(await lane.adapter.turns.saveStep(hold, step)).toEqual(step);
    for (const step of steps) {
      expect(await lane.adapter.turns.saveStep(hold, { ...step, value: 'another' })).toEqual(step);
    }
    const stored = await lane.adapter.turns.steps(hold.turnId);
    expect(stored).toHaveLength(steps.length);
    expect(stored).toEqual(expect.arrayContaining(steps));
  });

  it('BOT-30 keeps the steps of turns separate', async () => {
    const first = await lane.run('first');
    await lane.adapter.turns.saveStep(first.hold, lane.step('charge', 1));
    await lane.settle(first.hold);

    expect((await lane.run('second')).steps).toEqual([]);
  });

  it('BOT-40 returns the requested window, with a leading system message', async () => {
    const texts = ['be kind', 'one', 'two', 'three'];
    await context.adapter.conversations.append(
      lane.sessionId,
      texts.map((content, index) => ({ id: context.id(), role: index === 0 ? 'system' : 'user', content })),
    );
    await lane.queue('hello');
    const history = async (windows: Record<string, number>) => {
      const { hold, history: messages } = await lane.take({ windows });
      await lane.adapter.turns.release(hold, 0);
      return messages.map(({ content }) => content);
    };

    expect(await history({ [DESK]: 2 })).toEqual(['be kind', 'two', 'three']);
    expect(await history({ [DESK]: 3 })).toEqual(texts);
    expect(await history({ [DESK]: 10 })).toEqual(texts);
    expect(await history({ [DESK]: 0 })).toEqual([]);
    expect(await history({ other: 10 })).toEqual([]);
  });

  it('BOT-20 returns the latest checkpoint of the orchestrator, not of another one', async () => {
    const { checkpoints } = context.adapter;
    await checkpoints.append(lane.checkpoint(0), 'all');
    await checkpoints.append(lane.checkpoint(1), 'all');
    await checkpoints.append({ ...lane.checkpoint(0), orchestrator: 'other' }, 'all');

    expect((await lane.run('hello')).checkpoint).toMatchObject({ orchestrator: DESK, turnIndex: 1 });
  });
}
