import { type Turn } from '../../ledger/turn.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type ConformanceContext } from './target.js';
import { TestLane } from './test-lane.js';

/** A notification may be late, but must come before the poll that it replaces. */
const PATIENCE_MS = 2000;
const POLL_MS = 5;

/** Tests of TurnChanges, which notifies waiting callers and workers about changes of turns. */
export function describeTurnChanges(context: ConformanceContext): void {
  describe('notifications', () => {
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
    ])('TRN-10 reports a turn that %s', async (_, change, turns) => {
      const heard = listen();
      await change();
      await heard.all(turns());
    });

    it.each<[string, (hold: TurnHold) => Promise<unknown>]>([
      ['settles', (hold) => lane.settle(hold)],
      ['is asked to stop', () => lane.adapter.turns.cancel(first, 'cancel')],
      ['is asked to stop with its session', () => context.sessions.revoke(lane.sessionId)],
      ['is interrupted', () => lane.accept('new', { whenBusy: 'interrupt' })],
      ['is released', (hold) => lane.adapter.turns.release(hold, 0)],
      ['waits', (hold) => lane.adapter.turns.wait(hold, { signal: 'a', step: lane.step('a', null) })],
    ])('TRN-10 reports a running turn that %s', async (_, change) => {
      const { hold } = await lane.take();
      const heard = listen();
      await change(hold);
      await heard.all([first]);
    });

    it('TRN-13 reports a turn whose signal has come', async () => {
      const { hold } = await lane.take();
      await lane.adapter.turns.wait(hold, { signal: 'a', step: lane.step('a', null) });
      const heard = listen();
      await lane.adapter.turns.signal(first, 'a', 'yes');
      await heard.all([first]);
    });

    it('TRN-10 delivers the stored turn, or none', async () => {
      const { hold } = await lane.take();
      const { adapter } = context;
      const brought: Turn[] = [];
      const end = adapter.changes.subscribe((_, turn) => turn && brought.push(turn));
      await lane.settle(hold, { reply: { text: 'answer' } });
      await adapter.turns.cancel(second, 'cancel');
      end();
      for (const turn of brought) expect(turn).toEqual(await adapter.turns.get(turn.id));
    });

    it('TRN-10 reports no rejected change', async () => {
      const { hold } = await lane.take();
      const heard = listen();
      await expect(lane.adapter.turns.release({ ...hold, fence: hold.fence - 1 }, 0)).rejects.toThrow();
      // The next change arrives, so an earlier one would have arrived before it.
      await lane.adapter.turns.cancel(second, 'cancel');
      await heard.all([second]);
      expect(heard.turns()).not.toContain(first);
    });

    it('TRN-10 reports nothing after a subscription has ended', async () => {
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

    /** The listeners of every process that must receive a change. */
    function listen(): Subscription {
      const { adapter, clients } = context;
      const subscription = subscribe(adapter.changes.reach === 'store' ? clients : [adapter]);
      subscriptions.push(subscription);
      return subscription;
    }
  });
}

interface Subscription {
  /** Returns the turns that every listener has received. */
  turns(): string[];
  /** Waits until every listener has received all of them. */
  all(turnIds: readonly string[]): Promise<void>;
  end(): void;
}

function subscribe(adapters: readonly SessionsAdapter[]): Subscription {
  const heard = adapters.map(() => new Set<string>());
  const ends = adapters.map(({ changes }, at) => changes.subscribe((turnId) => heard[at].add(turnId)));
  const turns = (): string[] => [...heard[0]].filter((turnId) => heard.every((ids) => ids.has(turnId)));
  return {
    turns,
    end: () => ends.forEach((end) => end()),
    async all(turnIds) {
      const giveUp = Date.now() + PATIENCE_MS;
      while (Date.now() < giveUp && !turnIds.every((turnId) => turns().includes(turnId))) {
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
      expect(turns()).toEqual(expect.arrayContaining([...turnIds]));
    },
  };
}
