import { TurnFencedError } from '../../ledger/turn.errors.js';
import { type ClaimedTurn } from '../../ledger/turn.store.js';
import { type SpentTokens, type TurnSpending } from '../../ledger/turn-usage.js';
import { type Turn } from '../../ledger/turn.js';
import { entriesOf } from './document-fixtures.js';
import { LONG_MS, NOTES, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const ERROR = { name: 'Error', message: 'no' };

/** The calls that end an attempt without a settlement. */
const WAYS_BACK: readonly {
  readonly how: string;
  readonly end: (lane: TestLane, claimed: ClaimedTurn, spending: TurnSpending) => Promise<Turn>;
}[] = [
  {
    how: 'a retry',
    end: ({ adapter }, { hold }, spending) => adapter.turns.retry(hold, { error: ERROR, delayMs: 0, spending }),
  },
  { how: 'a release', end: ({ adapter }, { hold }, spending) => adapter.turns.release(hold, 0, spending) },
  {
    how: 'a wait for a signal',
    end: async (lane, { hold }, spending) => {
      const wait = { signal: 'go', step: lane.step('go', null), timeoutMs: 0, spending };
      return (await lane.adapter.turns.wait(hold, wait)).turn;
    },
  },
];

/** Tests that every write of an attempt records tokens in its commit (FIX-15). */
export function describeTurnsUsage(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  const spent = (tokens: number): SpentTokens => {
    const counts = { promptTokens: tokens, completionTokens: 0.5, totalTokens: tokens + 0.5 };
    return { ...counts, roles: { intents: counts }, places: { '0 "answer"\u00e9': counts } };
  };
  const spending = (tokens: number): TurnSpending => ({
    usage: spent(tokens),
    change: { name: NOTES, append: { id: context.id(), entries: [tokens], initial: {} } },
  });
  const counted = async () => entriesOf(await context.adapter.state.get({ ...NOTES, sessionId: lane.sessionId }));

  it('FIX-15 returns no usage until some is recorded', async () => {
    const { hold, turn } = await lane.run('hello');
    await lane.adapter.turns.saveStep(hold, lane.step('ask', 1));
    expect(turn).not.toHaveProperty('usage');
    expect((await lane.settle(hold)).turn).not.toHaveProperty('usage');
  });

  it('FIX-15 records usage with a step, once', async () => {
    const { hold, turn } = await lane.run('hello');
    const [step, first] = [lane.step('ask', 1), spending(7)];

    expect(await lane.adapter.turns.saveStep(hold, step, first)).toEqual(step);
    await lane.adapter.turns.saveStep(hold, step, first);
    expect(await lane.get(turn.id)).toEqual({ ...turn, usage: spent(7) });
    expect(await counted()).toEqual([7]);

    await lane.adapter.turns.saveStep(hold, lane.step('pay', 3), spending(9));
    expect(await lane.get(turn.id)).toEqual({ ...turn, usage: spent(9) });
    expect(await counted()).toEqual([7, 9]);
    expect(await lane.adapter.turns.steps(turn.id)).toHaveLength(2);
  });

  it('FIX-15 records usage without a document', async () => {
    const { hold, turn } = await lane.run('hello');
    await lane.adapter.turns.saveStep(hold, lane.step('ask', 1), { usage: spent(7) });
    expect((await lane.get(turn.id))?.usage).toEqual(spent(7));
    expect(await counted()).toEqual([]);
  });

  it('FIX-15 passes the usage of a lost attempt to the next one', async () => {
    await lane.accept('hello');
    const { hold } = await lane.lapse();
    await lane.adapter.turns.saveStep(hold, lane.step('ask', 1), spending(7));
    const again = await lane.take();
    expect(again.turn).toMatchObject({ lost: 1, usage: spent(7) });
    expect((await lane.settle(again.hold, { status: 'failed', error: ERROR })).turn.usage).toEqual(spent(7));
  });

  it('FIX-15 keeps the usage of a turn that was lost too often', async () => {
    await lane.accept('hello');
    const { hold, turn } = await lane.lapse();
    await lane.adapter.turns.saveStep(hold, lane.step('ask', 1), spending(7));
    expect(await lane.claim({ maxLost: 1 })).toBeNull();
    expect(await lane.get(turn.id)).toMatchObject({ status: 'failed', usage: spent(7) });
  });

  describe.each(WAYS_BACK)('with $how', ({ how, end }) => {
    it(`FIX-15 records usage with ${how}`, async () => {
      const claimed = await lane.run('hello');
      expect((await end(lane, claimed, spending(7))).usage).toEqual(spent(7));
      expect(await counted()).toEqual([7]);
      await expect(end(lane, claimed, spending(8))).rejects.toThrow(TurnFencedError);

      const again = await lane.take();
      expect(again.turn.usage).toEqual(spent(7));
      expect(await counted()).toEqual([7]);
    });

    it(`FIX-15 records usage with ${how} of a turn that ends instead`, async () => {
      const claimed = await lane.run('hello');
      await lane.adapter.turns.cancel(claimed.turn.id, 'cancel');
      expect(await end(lane, claimed, spending(7))).toMatchObject({ status: 'cancelled', usage: spent(7) });
      expect(await lane.get(claimed.turn.id)).toMatchObject({ status: 'cancelled', usage: spent(7) });
      expect(await counted()).toEqual([7]);
    });
  });

  it('FIX-15 records nothing for a wait whose signal came early', async () => {
    const { hold, turn } = await lane.run('hello');
    await lane.adapter.turns.signal(turn.id, 'go', true);
    const wait = { signal: 'go', step: lane.step('go', null), spending: spending(7) };
    expect(await lane.adapter.turns.wait(hold, wait)).toMatchObject({ received: { payload: true } });
    expect(await lane.get(turn.id)).not.toHaveProperty('usage');
    expect(await counted()).toEqual([]);
  });

  it.each(['completed', 'failed', 'cancelled'] as const)(
    'FIX-15 records usage with a %s settlement, once',
    async (status) => {
      const { hold, turn } = await lane.run('hello');
      const { usage, change } = spending(7);
      const settlement = { status, usage, stateChanges: [change!], ...(status === 'failed' ? { error: ERROR } : {}) };
      expect((await lane.settle(hold, settlement)).turn).toMatchObject({ status, usage: spent(7) });
      expect((await lane.settle(hold, settlement)).turn).toMatchObject({ status, usage: spent(7) });
      expect(await lane.get(turn.id)).toMatchObject({ status, usage: spent(7) });
      expect(await counted()).toEqual([7]);
    },
  );

  it('FIX-15 replaces the usage with that of a settlement, or keeps it', async () => {
    const record = async (tokens: number) => {
      const claimed = await lane.run('hello');
      await lane.adapter.turns.saveStep(claimed.hold, lane.step('ask', 1), spending(tokens));
      return claimed;
    };
    const [kept, replaced] = [await record(7), () => record(8)];
    const settled = await lane.settle(kept.hold);
    expect(settled.turn.usage).toEqual(spent(7));
    expect(await lane.get(kept.turn.id)).toEqual(settled.turn);
    const { hold, turn } = await replaced();
    expect((await lane.settle(hold, { usage: spent(9) })).turn.usage).toEqual(spent(9));
    expect((await lane.get(turn.id))?.usage).toEqual(spent(9));
  });

  it('FIX-15 records nothing for a worker that lost its lease', async () => {
    await lane.accept('hello');
    const { hold, turn } = await lane.lapse();
    await lane.take();
    const late = lane.adapter.turns.saveStep(hold, lane.step('late', 1), spending(7));
    await expect(late).rejects.toThrow(TurnFencedError);
    expect(await lane.get(turn.id)).not.toHaveProperty('usage');
    expect(await counted()).toEqual([]);
  });

  it('FIX-15 records usage, and skips a document whose namespace was reset since', async () => {
    const { hold, turn } = await lane.run('hello');
    const { sessionId } = lane;
    await lane.adapter.turns.saveStep(hold, lane.step('ask', 1), spending(7));
    await context.adapter.state.reset({ sessionId, namespaces: [NOTES.namespace], epoch: context.id() });
    await lane.adapter.turns.saveStep(hold, lane.step('pay', 2), spending(8));
    const error = { error: ERROR, delayMs: LONG_MS };
    const retried = await lane.adapter.turns.retry(hold, { ...error, spending: spending(9) });
    expect(retried.usage).toEqual(spent(9));
    expect((await lane.get(turn.id))?.usage).toEqual(spent(9));
    expect(await counted()).toEqual([]);
  });
}
