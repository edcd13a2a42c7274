import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { type TurnEventBatch } from '../../ledger/turn-event-log.js';
import { type NewTurnEvent, type TurnEvent } from '../../ledger/turn-event.js';
import { TurnFencedError } from '../../ledger/turn.errors.js';
import { type TurnHold } from '../../ledger/turn.store.js';
import { deepestJson, hostileJson, HOSTILE_TEXTS } from './hostile-values.js';
import { itMayBeSentTwice } from './sent-twice.js';
import { HOSTILE_NAMES } from './session-fixtures.js';
import { LONG_MS, SHORT_MS, TestLane } from './test-lane.js';
import { type ConformanceContext } from './target.js';

const RESTART: NewTurnEvent = { type: 'attempt', data: { attempt: 2 } };
const MORE_THAN_ALL = 100_000;
const PATIENCE_MS = 2000;
/** The time to live of events after a turn: long enough for a read. */
const LONGER_MS = 3 * SHORT_MS;
/** The length of a log that is read in pages. */
const BATCH_SIZES = [1, 3, 1, 5, 2];

/** Tests of TurnEventLog: numbered and fenced events that are read from any offset (TRN-30, TRN-31). */
export function describeTurnEvents(context: ConformanceContext): void {
  describe('events', () => {
    let lane: TestLane;

    beforeEach(async () => {
      lane = await TestLane.open(context);
    });

    it('TRN-30 numbers events without gaps from 1, across batches', async () => {
      const { hold } = await lane.run('hello');
      expect(await lane.adapter.events.last(hold.turnId)).toBe(0);
      expect(await append(hold, 1, 'a', 'b')).toBe(2);
      expect(await append(hold, 2, 'c')).toBe(3);

      expect(await lane.adapter.events.last(hold.turnId)).toBe(3);
      expect(await readAll(hold.turnId)).toEqual([
        { offset: 1, type: 'delta', data: 'a' },
        { offset: 2, type: 'delta', data: 'b' },
        { offset: 3, type: 'delta', data: 'c' },
      ]);
    });

    it('TRN-30 FIX-85 returns a page of whole batches from any offset', async () => {
      const { hold } = await lane.run('hello');
      let total = 0;
      const ends: number[] = [];
      for (const [at, size] of BATCH_SIZES.entries()) {
        ends.push(await append(hold, at + 1, ...Array.from({ length: size }, () => String((total += 1)))));
      }
      for (let after = 0; after <= total + 1; after += 1) {
        for (const limit of [1, 2, 3, total, MORE_THAN_ALL]) {
          const page = await lane.adapter.events.read(hold.turnId, after, limit);
          const expected = Array.from({ length: total }, (_, at) => at + 1).slice(
            after,
            ends.find((end) => end >= after + limit),
          );
          expect(page.map(({ offset, data }) => [offset, data])).toEqual(expected.map((n) => [n, String(n)]));
        }
      }
    });

    it('TRN-30 returns nothing beyond the end, and nothing for a turn without events', async () => {
      const { hold } = await lane.run('hello');
      await append(hold, 1, 'a');
      expect(await lane.adapter.events.read(hold.turnId, Number.MAX_SAFE_INTEGER - 1000, 100)).toEqual([]);
      const silent = await lane.queue('silent');
      for (const turnId of [silent.id, context.id()]) {
        expect(await readAll(turnId)).toEqual([]);
        expect(await lane.adapter.events.last(turnId)).toBe(0);
      }
    });

    it('TRN-30 keeps the events of turns separate', async () => {
      const other = await TestLane.open(context);
      const { hold } = await lane.run('hello');
      const { hold: elsewhere } = await other.run('hello');
      await append(hold, 1, 'here');
      await append(elsewhere, 1, 'there', 'and there');
      await lane.settle(hold);
      const next = (await lane.run('next')).hold;
      await append(next, 1, 'next');

      expect(await texts(hold.turnId)).toEqual(['here']);
      expect(await texts(elsewhere.turnId)).toEqual(['there', 'and there']);
      expect(await texts(next.turnId)).toEqual(['next']);
    });

    itMayBeSentTwice('TRN-30 append', context, async () => {
      const { hold } = await (await TestLane.open(context)).run('hello');
      await append(hold, 1, 'a');
      return {
        send: ({ events }) => events.append(hold, batchOf(2, 'b', 'c'), LONG_MS),
        again: (first) => first,
        look: () => readAll(hold.turnId),
      };
    });

    itMayBeSentTwice('TRN-30 append of the first events of a later attempt', context, async () => {
      const { hold } = await withEarlierEvents(await TestLane.open(context));
      return {
        send: ({ events }) => events.append(hold, batchOf(1, 'b', 'c'), LONG_MS),
        again: (first) => first,
        look: () => readAll(hold.turnId),
      };
    });

    it('TRN-30 stores nothing of a repeated batch that arrives after later ones', async () => {
      const { hold } = await lane.run('hello');
      await append(hold, 1, 'a');
      await append(hold, 2, 'b');
      await append(hold, 1, 'a');
      await append(hold, 3, 'c');
      expect(await texts(hold.turnId)).toEqual(['a', 'b', 'c']);
    });

    it.each<[string, (hold: TurnHold) => Promise<unknown>]>([
      ['lapsed', () => lane.elapse(SHORT_MS)],
      ['was released', (hold) => lane.adapter.turns.release(hold, 0)],
      ['failed', (hold) => lane.adapter.turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: 0 })],
      ['waited', (hold) => lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', 0), timeoutMs: 0 })],
    ])('TRN-30 marks once where the attempt after one that %s begins', async (_, end) => {
      await lane.queue('hello');
      const { hold: first } = await lane.take({ leaseMs: SHORT_MS });
      await append(first, 1, 'a');
      await append(first, 2, 'b');
      await end(first);
      const { hold } = await lane.take();

      expect(await texts(hold.turnId)).toEqual(['a', 'b']);
      expect(await append(hold, 1, 'c')).toBe(4);
      await append(hold, 2, 'd');
      expect(await readAll(hold.turnId)).toEqual([
        { offset: 1, type: 'delta', data: 'a' },
        { offset: 2, type: 'delta', data: 'b' },
        { offset: 3, ...RESTART },
        { offset: 4, type: 'delta', data: 'c' },
        { offset: 5, type: 'delta', data: 'd' },
      ]);
    });

    it('TRN-30 marks nothing when earlier attempts have emitted nothing', async () => {
      await lane.queue('hello');
      await lane.lapse();
      const { hold } = await lane.take();
      await append(hold, 1, 'a');
      expect(await texts(hold.turnId)).toEqual(['a']);
    });

    it.each(['taken over', 'released', 'waiting', 'settled', 'deleted with its session'])(
      'TRN-30 rejects the events of a worker whose turn is %s',
      async (fate) => {
        await lane.queue('hello');
        const { hold } = await lane.take({ leaseMs: SHORT_MS });
        await append(hold, 1, 'a');
        await lose(hold, fate);
        const before = await readAll(hold.turnId);

        for (const number of [1, 2]) {
          const refused = append(hold, number, 'late');
          await expect(refused).rejects.toBeInstanceOf(TurnFencedError);
          await expect(refused).rejects.toMatchObject({ ...hold });
        }
        expect(await readAll(hold.turnId)).toEqual(before);
      },
    );

    it('TRN-30 TRN-03 stores no events of a worker that lost the turn after those of its successor', async () => {
      const [one, other] = [context.clients[0], context.clients[context.clients.length - 1]];
      await lane.queue('hello');
      const { hold: old } = await lane.lapse();
      const acknowledged: string[] = [];
      const emitAll = async (client: SessionsAdapter, hold: TurnHold, name: string): Promise<void> => {
        for (let number = 1; number <= 20; number += 1) {
          await client.events.append(hold, batchOf(number, `${name} ${number}`), LONG_MS);
          acknowledged.push(`${name} ${number}`);
        }
      };
      const takeOver = async (): Promise<void> => {
        const claimed = await other.turns.claim(lane.sessionId, lane.claimRequest());
        if (claimed) await emitAll(other, claimed.hold, 'new');
      };
      const [lost, won] = await Promise.allSettled([emitAll(one, old, 'old'), takeOver()]);
      expect(won).toEqual({ status: 'fulfilled', value: undefined });
      if (lost.status === 'rejected') expect(lost.reason).toBeInstanceOf(TurnFencedError);

      const events = await readAll(old.turnId);
      expect(events.map(({ offset }) => offset)).toEqual(events.map((_, at) => at + 1));
      const shown = events.filter(({ type }) => type === 'delta').map(({ data }) => data as string);
      expect([...shown].sort()).toEqual([...acknowledged].sort());
      expect(shown.slice(-20)).toEqual(Array.from({ length: 20 }, (_, at) => `new ${at + 1}`));
      const marks = events.flatMap(({ type }, at) => (type === RESTART.type ? [at] : []));
      expect(marks).toEqual(shown.length > 20 ? [shown.length - 20] : []);
    });

    it('TRN-30 stores an event before its turn settles, or not at all', async () => {
      for (let round = 0; round < 10; round += 1) {
        const { hold } = await lane.run('hello');
        const appends = Promise.allSettled(
          [1, 2, 3, 4].flatMap((number) =>
            context.clients.map((client) => client.events.append(hold, batchOf(number, `${number}`, 'more'), LONG_MS)),
          ),
        );
        await lane.settle(hold);
        const atTheEnd = await readAll(hold.turnId);
        for (const outcome of await appends) {
          if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(TurnFencedError);
        }
        expect(await readAll(hold.turnId)).toEqual(atTheEnd);
        expect(atTheEnd.map(({ offset }) => offset)).toEqual(atTheEnd.map((_, at) => at + 1));
      }
    });

    it('TRN-31 keeps the events of a turn while it is open, and for their time to live after it settles', async () => {
      const { hold } = await lane.run('hello');
      await lane.adapter.events.append(hold, batchOf(1, 'a'), SHORT_MS);
      await lane.elapse(SHORT_MS);
      await deleteExpired();
      expect(await texts(hold.turnId)).toEqual(['a']);
      // The last time to live applies.
      await lane.adapter.events.append(hold, batchOf(2, 'b'), LONG_MS);
      await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', 0) });
      await lane.elapse(SHORT_MS);
      await lane.adapter.turns.signal(hold.turnId, 'go', null);
      const again = (await lane.take()).hold;
      await append(again, 1, 'c');
      await lane.settle(again);
      await lane.elapse(SHORT_MS);
      await deleteExpired();
      expect(await texts(hold.turnId)).toEqual(['a', 'b', null, 'c']);
    });

    it.each<[string, (hold: TurnHold) => Promise<unknown>]>([
      ['settled', (hold) => lane.settle(hold)],
      ['failed', (hold) => lane.settle(hold, { status: 'failed', error: { name: 'Error', message: 'no' } })],
      [
        'was cancelled while it waited',
        async (hold) => {
          await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', 0) });
          await lane.adapter.turns.cancel(hold.turnId, 'cancel');
        },
      ],
      [
        'was rolled back between two attempts',
        async (hold) => {
          await lane.adapter.turns.release(hold, LONG_MS);
          await lane.queue('newer', { whenBusy: 'rollback' });
        },
      ],
      [
        'was cancelled between two attempts',
        async (hold) => {
          await lane.adapter.turns.retry(hold, { error: { name: 'Error', message: 'no' }, delayMs: LONG_MS });
          await lane.adapter.turns.cancel(hold.turnId, 'cancel');
        },
      ],
      [
        'ended with its session, while its worker was lost',
        async () => {
          await context.sessions.expire(lane.sessionId);
          await lane.elapse(SHORT_MS);
          expect(await lane.claim()).toBeNull();
        },
      ],
      [
        'lapsed for the last time',
        async () => {
          await lane.elapse(SHORT_MS);
          await lane.claim({ maxLost: 1 });
        },
      ],
    ])('TRN-31 deletes the events of a turn that %s, and keeps the turn', async (_, end) => {
      const { hold, ttlMs } = await endedWithEvents(end);
      await lane.elapse(ttlMs);
      await deleteExpired();

      expect(await readAll(hold.turnId)).toEqual([]);
      expect(await lane.adapter.events.last(hold.turnId)).toBe(0);
      expect(await lane.get(hold.turnId)).not.toBeNull();
    });

    /**
     * Ends a turn with events, which are still there afterwards. On a slow machine they may have expired before they are
     * read: then this repeats with a new turn, and more time.
     */
    async function endedWithEvents(
      end: (hold: TurnHold) => Promise<unknown>,
    ): Promise<{ readonly hold: TurnHold; readonly ttlMs: number }> {
      for (let ttlMs = LONGER_MS; ; ttlMs *= 2) {
        lane = await TestLane.open(context);
        await lane.queue('hello');
        const { hold } = await lane.take({ leaseMs: SHORT_MS });
        await lane.adapter.events.append(hold, batchOf(1, 'a', 'b'), ttlMs);
        await lane.adapter.events.append(hold, batchOf(2, 'c'), ttlMs);
        const before = performance.now();
        await end(hold);
        const kept = await texts(hold.turnId);
        if (performance.now() - before > ttlMs) continue;
        expect(kept).toEqual(['a', 'b', 'c']);
        return { hold, ttlMs };
      }
    }

    it('TRN-31 deletes at most as many at once as requested', async () => {
      await deleteExpired();
      for (const text of ['one', 'two', 'three']) {
        const { hold } = await lane.run(text);
        await lane.adapter.events.append(hold, batchOf(1, text), SHORT_MS);
        await lane.settle(hold);
      }
      await lane.elapse(SHORT_MS);
      const counts = [await deleteSome(2), await deleteSome(2), await deleteSome(2)];
      // A store that deletes expired events itself leaves nothing to delete.
      expect([
        [2, 1, 0],
        [0, 0, 0],
      ]).toContainEqual(counts);
    });

    it.each<[string, (hold: TurnHold) => Promise<unknown>]>([
      ['is deleted with its session', () => context.sessions.delete(lane.sessionId)],
      [
        'is purged',
        async (hold) => {
          await lane.settle(hold);
          await lane.elapse(SHORT_MS);
          await lane.adapter.turns.purgeSettled(0, MORE_THAN_ALL);
        },
      ],
    ])(
      'TRN-31 deletes the events of a turn that %s, and numbers those of a new turn with its id from 1',
      async (_, remove) => {
        const { hold } = await lane.run('hello');
        await append(hold, 1, 'a');
        await remove(hold);
        expect(await readAll(hold.turnId)).toEqual([]);

        if (!(await context.sessions.fetchById(lane.sessionId))) await lane.createSession();
        await lane.queue('again', { id: hold.turnId });
        const again = (await lane.take()).hold;
        expect(await append(again, 1, 'new')).toBe(1);
        expect(await texts(hold.turnId)).toEqual(['new']);
      },
    );

    it('TRN-31 deletes the events of a session that is erased', async () => {
      const { hold } = await lane.run('hello');
      await append(hold, 1, 'a');
      await context.sessions.erase(lane.sessionId);
      expect(await readAll(hold.turnId)).toEqual([]);
      await expect(append(hold, 2, 'b')).rejects.toBeInstanceOf(TurnFencedError);
    });

    it.each(['delete', 'erase'] as const)(
      'TRN-31 %s of a session leaves no events that its worker emits concurrently',
      async (remove) => {
        const { hold } = await lane.run('hello');
        await append(hold, 1, 'a');
        const { appends } = race(hold, 2);
        await context.sessions[remove](lane.sessionId);
        for (const outcome of await appends) {
          if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(TurnFencedError);
        }
        expect(await readAll(hold.turnId)).toEqual([]);
        expect(await lane.adapter.events.last(hold.turnId)).toBe(0);
      },
    );

    it('TRN-30 stores batches once and in order when several connections send them repeatedly and late', async () => {
      const { hold } = await lane.run('hello');
      for (let number = 1; number <= 10; number += 1) {
        // Like a writer: each batch follows a response, but an earlier repeat may still be in flight.
        const { appends } = race(hold, number);
        await append(hold, number, `${number}`);
        if (number % 3 === 0) await appends;
      }
      expect(await texts(hold.turnId)).toEqual(Array.from({ length: 10 }, (_, at) => `${at + 1}`));
    });

    it('TRN-30 returns data and types unchanged', async () => {
      await lane.queue('hello');
      const { hold: first } = await lane.take({ leaseMs: SHORT_MS });
      const data = [null, 0, false, '', [], {}, ...HOSTILE_TEXTS, hostileJson(), deepestJson(200)];
      const given: NewTurnEvent[] = [
        ...data.map((each) => ({ type: 'data', data: each })),
        ...HOSTILE_NAMES.map((type) => ({ type, data: null })),
      ];
      await lane.adapter.events.append(first, { number: 1, events: given, restart: RESTART }, LONG_MS);
      await lane.elapse(SHORT_MS);
      const { hold } = await lane.take();
      await lane.adapter.events.append(hold, { number: 1, events: given, restart: given[0] }, LONG_MS);

      const expected = [...given, given[0], ...given].map((event, at) => ({ offset: at + 1, ...event }));
      expect(await readAll(hold.turnId)).toEqual(expected);
    });

    it('TRN-31 stores many events and large ones in one batch', async () => {
      const { hold } = await lane.run('hello');
      const many = Array.from({ length: 5000 }, (_, at): NewTurnEvent => ({ type: 'delta', data: at }));
      const large = Array.from({ length: 8 }, (): NewTurnEvent => ({ type: 'delta', data: 'x'.repeat(65_000) }));
      for (const [at, events] of [many, large].entries()) {
        await lane.adapter.events.append(hold, { number: at + 1, events, restart: RESTART }, LONG_MS);
      }
      const stored = await readAll(hold.turnId);
      expect(stored.length).toBe(5008);
      expect(
        JSON.stringify(stored.map(({ data }) => data)) === JSON.stringify([...many, ...large].map(({ data }) => data)),
      ).toBe(true);
      const page = await lane.adapter.events.read(hold.turnId, 4999, 1);
      expect(page.map(({ offset }) => offset)).toEqual([5000]);
    });

    it('PRF-11 notifies subscribers in every process of the last event, or not at all', async () => {
      const { hold } = await lane.run('hello');
      const { hold: elsewhere } = await (await TestLane.open(context)).run('hello');
      for (const { events } of context.clients) {
        if (!events.subscribe) continue;
        const [received, receivedElsewhere, receivedAfterEnd] = [new Set(), new Set(), new Set()];
        const ends = [
          events.subscribe(hold.turnId, (last) => received.add(last)),
          events.subscribe(elsewhere.turnId, (last) => receivedElsewhere.add(last)),
        ];
        const end = events.subscribe(hold.turnId, (last) => receivedAfterEnd.add(last));
        // Active subscriptions report that they may have missed events.
        await until(() => received.has(null) && receivedElsewhere.has(null));
        end();
        receivedAfterEnd.clear();
        const before = await events.last(hold.turnId);
        await append(hold, before + 1, 'a');
        await append(hold, before + 2, 'b');

        await until(() => received.has(before + 2));
        ends.forEach((stop) => stop());
        received.clear();
        const again = events.subscribe(hold.turnId, (last) => received.add(last));
        await until(() => received.has(null));
        await append(hold, before + 3, 'c');
        await until(() => received.has(before + 3));
        again();
        expect([...receivedElsewhere]).toEqual([null]);
        expect([...receivedAfterEnd]).toEqual([]);
      }
    });

    it('PRF-11 notifies subscribers of the turn with the whole id, which may contain colons', async () => {
      const id = context.id();
      const [hold, elsewhere] = [await runWithId(`${id}:1:a`), await runWithId(`${id}:1:b`)];
      for (const { events } of context.clients) {
        if (!events.subscribe) continue;
        const [received, receivedElsewhere] = [new Set(), new Set()];
        const ends = [
          events.subscribe(hold.turnId, (last) => received.add(last)),
          events.subscribe(elsewhere.turnId, (last) => receivedElsewhere.add(last)),
        ];
        await until(() => received.has(null) && receivedElsewhere.has(null));
        const before = await events.last(hold.turnId);
        await append(hold, before + 1, 'a');
        await until(() => received.has(before + 1));
        ends.forEach((stop) => stop());
        expect([...receivedElsewhere]).toEqual([null]);
      }
    });

    /** Sends the same batch through every client concurrently. */
    function race(hold: TurnHold, number: number): { appends: Promise<PromiseSettledResult<number>[]> } {
      const batch = batchOf(number, `${number}`);
      return { appends: Promise.allSettled(context.clients.map(({ events }) => events.append(hold, batch, LONG_MS))) };
    }

    async function withEarlierEvents(own: TestLane): Promise<{ hold: TurnHold }> {
      const { hold } = await own.run('hello');
      await append(hold, 1, 'a');
      await own.adapter.turns.release(hold, 0);
      return own.take();
    }

    async function runWithId(id: string): Promise<TurnHold> {
      const own = await TestLane.open(context);
      await own.queue('hello', { id });
      return (await own.take()).hold;
    }

    async function lose(hold: TurnHold, fate: string): Promise<void> {
      if (fate === 'taken over') {
        await lane.elapse(SHORT_MS);
        await append((await lane.take()).hold, 1, 'mine');
      } else if (fate === 'released') {
        await lane.adapter.turns.release(hold, 0);
      } else if (fate === 'waiting') {
        await lane.adapter.turns.wait(hold, { signal: 'go', step: lane.step('go', 0) });
      } else if (fate === 'settled') {
        await lane.settle(hold);
      } else {
        await context.sessions.delete(lane.sessionId);
      }
    }

    function append(hold: TurnHold, number: number, ...data: string[]): Promise<number> {
      return context.adapter.events.append(hold, batchOf(number, ...data), LONG_MS);
    }

    function readAll(turnId: string): Promise<TurnEvent[]> {
      return context.adapter.events.read(turnId, 0, MORE_THAN_ALL);
    }

    async function texts(turnId: string): Promise<unknown[]> {
      return (await readAll(turnId)).map(({ type, data }) => (type === 'delta' ? data : null));
    }

    const deleteSome = (limit: number): Promise<number> => context.adapter.events.deleteExpired(limit);

    async function deleteExpired(): Promise<void> {
      while ((await deleteSome(100)) > 0);
    }
  });
}

/** Waits for notifications, which may be late but must come before the poll that they replace. */
async function until(isDone: () => boolean): Promise<void> {
  const giveUp = Date.now() + PATIENCE_MS;
  while (!isDone() && Date.now() < giveUp) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(isDone()).toBe(true);
}

function batchOf(number: number, ...data: string[]): TurnEventBatch {
  return { number, events: data.map((each) => ({ type: 'delta', data: each })), restart: RESTART };
}
