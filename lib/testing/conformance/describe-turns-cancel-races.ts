import { type NewMessage } from '../../ledger/conversation.store.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { isTerminal } from '../../ledger/turn.js';
import { interruptedMessages } from '../../ledger/user-message.js';
import { LONG_MS, SHORT_MS, TestLane, WAYS_BACK } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const RACES = 10;

/** Tests of TurnLedger.cancel with messages to keep, at the same time as other operations on the turn, in either order. */
export function describeTurnsCancelRaces(context: ConformanceContext): void {
  let lane: TestLane;

  it('AIS-07 keeps only the messages of the result if the worker settles the turn', async () => {
    await repeat(async (race) => {
      const { hold, turn } = await lane.run('first');
      const settlement = lane.settlement(turn, 0);

      const settled = await withCancel(race, turn.id, () => lane.settle(hold, settlement));

      expect(settled.turn).toMatchObject({ status: 'awaiting-input' });
      expect(await lane.messages()).toMatchObject(settlement.messages!);
      expect(await lane.messages()).toHaveLength(2);
      await expectForgotten(turn.id);
    });
  });

  it('AIS-07 keeps them once if the worker settles the turn as cancelled', async () => {
    await repeat(async (race) => {
      const { hold, turn } = await lane.run('first');
      await lane.adapter.turns.cancel(turn.id, 'interrupt', [answer('kept')]);
      const marked = (await lane.get(turn.id))!;

      const messages = interruptedMessages(marked);
      await withCancel(race, turn.id, () => lane.settle(hold, { status: 'cancelled', messages }), 'late');

      await expectKept(turn.id, 'kept');
    });
  });

  it.each(['wait', 'retry', 'release'] as const)(
    'AIS-07 keeps them once if the attempt ends with a %s',
    async (end) => {
      await repeat(async (race) => {
        const { hold, turn } = await lane.run('first');

        await withCancel(race, turn.id, () => ending(end, hold));

        await expectKept(turn.id, 'kept');
      });
    },
  );

  it('AIS-07 keeps them once if the signal arrives', async () => {
    await repeat(async (race) => {
      const { hold, turn } = await lane.run('first');
      await ending('wait', hold);

      // It is rejected if the turn has already ended.
      await withCancel(race, turn.id, () => Promise.allSettled([lane.adapter.turns.signal(turn.id, 'go', true)]));

      await expectKept(turn.id, 'kept');
    });
  });

  it.each(WAYS_BACK)('AIS-07 keeps them once if another attempt begins after the turn %s', async (way) => {
    await repeat(async (race) => {
      const { hold, turn } = await lane.run('first');
      await lane.putBack(way, hold, 0);

      const claimed = await withCancel(race, turn.id, () => lane.claim());
      if (claimed) await lane.adapter.turns.release(claimed.hold, 0);

      await expectKept(turn.id, 'kept');
    });
  });

  it('AIS-07 keeps them once if another worker takes over from a lost one', async () => {
    await repeat(async (race) => {
      await lane.queue('first');
      const { turn } = await lane.lapse();

      const claimed = await withCancel(race, turn.id, () => lane.claim());
      if (claimed) await lane.adapter.turns.release(claimed.hold, 0);

      await expectKept(turn.id, 'kept');
    });
  });

  it('AIS-07 keeps them only if the first attempt has begun', async () => {
    await repeat(async (race) => {
      const turn = await lane.queue('first');

      const claimed = await withCancel(race, turn.id, () => lane.claim());
      if (claimed) await lane.adapter.turns.release(claimed.hold, 0);

      if (claimed) await expectKept(turn.id, 'kept');
      else {
        expect(await lane.statuses()).toEqual(['first: cancelled']);
        expect(await lane.messages()).toEqual([]);
      }
    });
  });

  it.each(['running', 'waiting'] as const)('AIS-07 keeps those of one of two cancels of a %s turn', async (status) => {
    await repeat(async (race) => {
      const { hold, turn } = await lane.run('first');
      if (status === 'waiting') await ending('wait', hold);

      const other = () => lane.adapter.turns.cancel(turn.id, 'interrupt', [answer('other')]);
      const { turn: cancelled } = await withCancel(race, turn.id, other);
      expect(isTerminal(cancelled.status)).toBe(status === 'waiting');
      const marked = await lane.get(turn.id);
      if (status === 'running') await lane.adapter.turns.release(hold, 0);

      const kept = (await lane.messages())[1].content as string;
      expect(['kept', 'other']).toContain(kept);
      if (status === 'running') {
        expect(marked?.keep).toMatchObject([{ content: kept }]);
        expect(cancelled.keep).toEqual(marked?.keep);
      }
      await expectKept(turn.id, kept);
    });
  });

  it.each(['running', 'waiting'] as const)(
    'AIS-07 keeps them, or none, if another turn interrupts a %s one',
    async (status) => {
      await repeat(async (race) => {
        const { hold, turn } = await lane.run('first');
        if (status === 'waiting') await ending('wait', hold);

        await withCancel(race, turn.id, () => lane.accept('second', { whenBusy: 'interrupt' }));
        if (status === 'running') await lane.adapter.turns.release(hold, 0);

        expect(await lane.statuses()).toEqual(['first: cancelled', 'second: queued']);
        const messages = (await lane.messages()).map(({ content }) => content);
        expect([['first'], ['first', 'kept']]).toContainEqual(messages);
        await expectForgotten(turn.id);
      });
    },
  );

  /** Repeats a race, each time in a new lane. */
  async function repeat(work: (race: number) => Promise<void>): Promise<void> {
    for (let race = 0; race < RACES; race += 1) {
      lane = await TestLane.open(context);
      await work(race);
    }
  }

  /** Cancels a turn at the same time; in every second race, the cancel is sent first. @returns the result of the work */
  async function withCancel<T>(race: number, turnId: string, work: () => Promise<T>, content = 'kept'): Promise<T> {
    const cancel = () => lane.adapter.turns.cancel(turnId, 'interrupt', [answer(content)]);
    if (race % 2 === 0) {
      const [, result] = await Promise.all([cancel(), work()]);
      return result;
    }
    const [result] = await Promise.all([work(), cancel()]);
    return result;
  }

  async function ending(end: 'wait' | 'retry' | 'release', hold: TurnHold): Promise<void> {
    const { turns } = lane.adapter;
    if (end === 'wait') await turns.wait(hold, { signal: 'go', step: lane.step('go', null) });
    else if (end === 'retry') await turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: LONG_MS });
    else await turns.release(hold, SHORT_MS);
  }

  async function expectKept(turnId: string, content: string): Promise<void> {
    expect(await lane.get(turnId)).toMatchObject({ status: 'cancelled' });
    expect((await lane.messages()).map((message) => message.content)).toEqual(['first', content]);
    await expectForgotten(turnId);
    expect(await lane.claim()).toBeNull();
  }

  async function expectForgotten(turnId: string): Promise<void> {
    const turn = await lane.get(turnId);
    expect(turn).not.toHaveProperty('keep');
    expect(turn).not.toHaveProperty('cancelMode');
  }
}

function answer(content: string): NewMessage {
  return { id: content, role: 'assistant', content };
}
