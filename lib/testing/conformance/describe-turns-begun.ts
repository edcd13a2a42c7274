import { LaneFullError } from '../../ledger/turn.errors.js';
import { type WhenBusy } from '../../ledger/turn.js';
import { type ClaimedTurn, type TurnHold } from '../../ledger/turn.store.js';
import { SHORT_MS, TestLane, WAYS_BACK } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const RACES = 10;

/** Tests that a turn holds its lane from its first claim until it ends, also while it is queued again (TRN-06). */
export function describeTurnsBegun(context: ConformanceContext): void {
  let lane: TestLane;

  beforeEach(async () => {
    lane = await TestLane.open(context);
  });

  describe.each(WAYS_BACK)('a turn that %s', (way) => {
    it.each<[WhenBusy, string[]]>([
      ['interrupt', ['queued: queued', 'new: queued']],
      ['replace', ['queued: superseded', 'new: queued']],
    ])('TRN-06 is cancelled immediately by %s, and keeps the message of the user', async (whenBusy, others) => {
      const { hold, turn } = await begun();
      await lane.putBack(way, hold);

      expect((await lane.accept('new', { whenBusy })).notify).toBe(true);

      expect(await lane.statuses()).toEqual(['holder: cancelled', ...others]);
      await expectStopped(hold);
      expect(await lane.messages()).toMatchObject([
        { role: 'user', content: 'holder', turnId: turn.id, orchestrator: turn.orchestrator },
      ]);
      expect(await lane.drain()).toEqual(whenBusy === 'replace' ? ['new'] : ['queued', 'new']);
      expect(await lane.messages()).toHaveLength(1);
    });

    it('TRN-06 is cancelled immediately by rollback, and keeps no message', async () => {
      const { hold } = await begun();
      await lane.putBack(way, hold);

      expect((await lane.accept('new', { whenBusy: 'rollback' })).notify).toBe(true);

      expect(await lane.statuses()).toEqual(['holder: cancelled', 'queued: queued', 'new: queued']);
      await expectStopped(hold);
      expect(await lane.drain()).toEqual(['queued', 'new']);
      expect(await lane.messages()).toEqual([]);
    });

    it.each<[WhenBusy, string, string[]]>([
      ['enqueue', 'queued: queued', ['holder', 'queued', 'new']],
      ['latest', 'queued: superseded', ['holder', 'new']],
    ])('TRN-06 is kept under %s', async (whenBusy, queued, order) => {
      const { hold } = await begun();
      await lane.putBack(way, hold, SHORT_MS);
      const [before] = await lane.list();

      expect((await lane.accept('new', { whenBusy })).notify).toBe(false);

      expect(await lane.statuses()).toEqual(['holder: queued', queued, 'new: queued']);
      expect((await lane.list())[0]).toEqual(before);
      await lane.elapse(SHORT_MS);
      expect(await lane.drain()).toEqual(order);
      expect(await lane.messages()).toEqual([]);
    });

    it('TRN-06 is the holder that reject reports, and is not changed', async () => {
      const { hold, turn } = await begun();
      await lane.putBack(way, hold);
      const before = await lane.snapshot();

      await expect(lane.accept('new', { whenBusy: 'reject' })).rejects.toMatchObject({
        code: 'SESSION_BUSY',
        turnId: turn.id,
        holderAlive: false,
        since: turn.startedAt,
      });

      expect(await lane.snapshot()).toEqual(before);
    });

    it('TRN-07 does not count against the queue limit of its lane', async () => {
      const { hold } = await lane.run('holder');
      await lane.putBack(way, hold);
      await lane.queue('queued', { maxQueued: 1 });
      const before = await lane.snapshot();

      for (const whenBusy of ['enqueue', 'interrupt', 'rollback'] as const) {
        await expect(lane.accept('too many', { whenBusy, maxQueued: 1 })).rejects.toBeInstanceOf(LaneFullError);
      }
      expect(await lane.snapshot()).toEqual(before);

      await lane.queue('new', { whenBusy: 'latest', maxQueued: 1 });
      expect(await lane.statuses()).toEqual(['holder: queued', 'queued: superseded', 'new: queued']);
    });
  });

  it.each(['waits for its retry', 'was released'] as const)(
    'TRN-06 a running turn that then %s ends on a concurrent interrupt, in either order',
    async (way) => {
      for (let race = 0; race < RACES; race += 1) {
        lane = await TestLane.open(context);
        const { hold } = await lane.run('holder');

        await withInterrupt(race, () => lane.putBack(way, hold));

        await expectInterrupted();
      }
    },
  );

  it('TRN-06 TRN-13 ends the turn on a concurrent signal and interrupt, in either order', async () => {
    for (let race = 0; race < RACES; race += 1) {
      lane = await TestLane.open(context);
      const { hold } = await lane.run('holder');
      await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', null) });

      // It is rejected if the turn has already ended.
      await withInterrupt(race, () => Promise.allSettled([lane.adapter.turns.signal(hold.turnId, 'go', true)]));

      await expectInterrupted();
    }
  });

  it('TRN-06 asks the attempt to stop, or starts none, on a concurrent claim and interrupt', async () => {
    for (let race = 0; race < RACES; race += 1) {
      lane = await TestLane.open(context);
      const { hold } = await lane.run('holder');
      await lane.putBack('was released', hold);

      const claimed = await withInterrupt(race, () => lane.claim());

      if (claimed?.turn.id === hold.turnId) {
        expect(await lane.get(hold.turnId)).toMatchObject({ status: 'running', cancelMode: 'interrupt' });
      }
      if (claimed) await lane.putBack('was released', claimed.hold);
      await expectInterrupted();
    }
  });

  /** Starts a turn, with another one queued behind it. */
  async function begun(): Promise<ClaimedTurn> {
    const claimed = await lane.run('holder');
    await lane.queue('queued');
    return claimed;
  }

  async function expectStopped(hold: TurnHold): Promise<void> {
    const turn = await lane.get(hold.turnId);
    expect(turn).toMatchObject({ status: 'cancelled', settledAt: expect.any(String) as string });
    expect(turn).not.toHaveProperty('dueAt');
    await expect(lane.settle(hold)).rejects.toMatchObject({ code: 'TURN_FENCED' });
  }

  async function expectInterrupted(): Promise<void> {
    expect(await lane.statuses()).toEqual(['holder: cancelled', 'new: queued']);
    expect(await lane.messages()).toMatchObject([{ role: 'user', content: 'holder' }]);
    expect(await lane.drain()).toEqual(['new']);
  }

  /** Sends a call and, through another client, the message concurrently. Alternates which goes first. */
  async function withInterrupt<Answer>(race: number, call: () => Promise<Answer>): Promise<Answer> {
    const { turns } = context.clients[context.clients.length - 1];
    const interrupt = () => turns.accept(lane.acceptRequest('new', { whenBusy: 'interrupt' }));
    const first = race % 2 === 0 ? null : interrupt();
    const [answer] = await Promise.all([call(), first ?? interrupt()]);
    return answer;
  }
}
