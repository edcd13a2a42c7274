import { type Turn } from '../../ledger/turn.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type ConformanceContext } from './target.js';
import { TestLane } from './test-lane.js';

/** A hint may be late, but not as late as the poll that it spares. */
const PATIENCE_MS = 2000;
const LOOK_EVERY_MS = 5;

/** TurnHints: whoever waits for a turn, or runs one that is asked to stop, hears of it. */
export function describeHints(context: ConformanceContext): void {
  describe('hints', () => {
    let lane: TestLane;
    let first: string;
    let second: string;

    beforeEach(async () => {
      lane = await TestLane.open(context);
      first = (await lane.queue('first')).id;
      second = (await lane.queue('second')).id;
    });

    it.each<[string, () => Promise<unknown>, () => string[]]>([
      ['is cancelled', () => lane.adapter.turns.cancel(second, 'cancel'), () => [second]],
      ['is superseded', () => lane.accept('new', { whenBusy: 'latest' }), () => [first, second]],
      ['ends with its session', () => context.sessions.expire(lane.sessionId), () => [first, second]],
      ['is deleted with its session', () => context.sessions.delete(lane.sessionId), () => [first, second]],
      ['is erased with its session', () => context.sessions.erase(lane.sessionId), () => [first, second]],
    ])('TRN-10 tells of a turn that %s', async (_, change, turns) => {
      const heard = listen();
      await change();
      await heard.all(turns());
    });

    it.each<[string, (hold: TurnHold) => Promise<unknown>]>([
      ['settles', (hold) => lane.settle(hold)],
      ['is asked to stop', () => lane.adapter.turns.cancel(first, 'cancel')],
      ['is asked to stop with its session', () => context.sessions.revoke(lane.sessionId)],
      ['is interrupted', () => lane.accept('new', { whenBusy: 'interrupt' })],
      ['is put back', (hold) => lane.adapter.turns.release(hold, 0)],
      ['waits', (hold) => lane.adapter.turns.wait(hold, { signal: 'a', step: lane.step('a', null) })],
    ])('TRN-10 tells of a running turn that %s', async (_, change) => {
      const { hold } = await lane.take();
      const heard = listen();
      await change(hold);
      await heard.all([first]);
    });

    it('TRN-13 tells of a turn whose signal has come', async () => {
      const { hold } = await lane.take();
      await lane.adapter.turns.wait(hold, { signal: 'a', step: lane.step('a', null) });
      const heard = listen();
      await lane.adapter.turns.signal(first, 'a', 'yes');
      await heard.all([first]);
    });

    it('TRN-10 brings the turn as it is stored, or none', async () => {
      const { hold } = await lane.take();
      const { adapter } = context;
      const brought: Turn[] = [];
      const end = adapter.hints.subscribe((_, turn) => turn && brought.push(turn));
      await lane.settle(hold, { reply: { text: 'answer' } });
      await adapter.turns.cancel(second, 'cancel');
      end();
      for (const turn of brought) expect(turn).toEqual(await adapter.turns.get(turn.id));
    });

    it('TRN-10 tells nothing of a change that was refused', async () => {
      const { hold } = await lane.take();
      const heard = listen();
      await expect(lane.adapter.turns.release({ ...hold, fence: hold.fence - 1 }, 0)).rejects.toThrow();
      // What comes next is heard, so what came before would have been.
      await lane.adapter.turns.cancel(second, 'cancel');
      await heard.all([second]);
      expect(heard.turns()).not.toContain(first);
    });

    it('TRN-10 tells nothing to whoever has ended the subscription', async () => {
      const gone = listen();
      gone.end();
      const heard = listen();
      await lane.adapter.turns.cancel(second, 'cancel');
      await heard.all([second]);
      expect(gone.turns()).toEqual([]);
    });

    const subscriptions: Subscription[] = [];

    afterEach(() => {
      for (const subscription of subscriptions.splice(0)) subscription.end();
    });

    /** In every process that a change must be heard in. */
    function listen(): Subscription {
      const { adapter, clients } = context;
      const subscription = subscribe(adapter.hints.reach === 'store' ? clients : [adapter]);
      subscriptions.push(subscription);
      return subscription;
    }
  });
}

interface Subscription {
  /** The turns that every listener has heard of. */
  turns(): string[];
  /** Waits until all of them were heard of. */
  all(turnIds: readonly string[]): Promise<void>;
  end(): void;
}

function subscribe(adapters: readonly SessionsAdapter[]): Subscription {
  const heard = adapters.map(() => new Set<string>());
  const ends = adapters.map(({ hints }, at) => hints.subscribe((turnId) => heard[at].add(turnId)));
  const turns = (): string[] => [...heard[0]].filter((turnId) => heard.every((ids) => ids.has(turnId)));
  return {
    turns,
    end: () => ends.forEach((end) => end()),
    async all(turnIds) {
      const giveUp = Date.now() + PATIENCE_MS;
      while (Date.now() < giveUp && !turnIds.every((turnId) => turns().includes(turnId))) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
      expect(turns()).toEqual(expect.arrayContaining([...turnIds]));
    },
  };
}
