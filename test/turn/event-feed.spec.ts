import { Logger } from '@nestjs/common';
import { StoreUnavailableError, type Turn, type TurnEvent } from 'nestjs-agent-sessions';
import { lastValueFrom } from 'rxjs';
import { hashed } from '../../lib/common/digests.js';
import { LocalEvents } from '../../lib/turn/local-events.js';
import { type FeedSources, TurnEventFeed } from '../../lib/turn/turn-event-feed.js';
import { TurnEventReaders } from '../../lib/turn/turn-event-readers.js';
import { eventually } from '../support/eventually.js';
import { steadyClock } from '../support/steady-clock.js';
import { inProduction } from '../support/production.js';

inProduction();

const RUNNING = { id: 't', sessionId: 's', status: 'running' } as Turn;
const WAITS = { ...RUNNING, status: 'waiting', waitingFor: { signal: 'approval' } } as Turn;
const SETTLED = { ...RUNNING, status: 'completed', turnIndex: 0, reply: { text: 'done' } } as Turn;
const never = new AbortController().signal;

describe('what readers of one turn share', () => {
  it.each([
    ['small events', 'x'.repeat(1000), 507],
    ['large events', 'x'.repeat(60_000), 8],
  ])('TRN-33 keeps no more than a tail of %s, however many there were', async (_, data, most) => {
    const { place } = logOf([]);
    const feed = new TurnEventFeed('t', place);
    await feed.ready;
    for (let offset = 1; offset <= 3000; offset += 3) feed.addLocal(eventsOf(offset, offset + 2, data));
    expect(heldBy(feed, 3000)).toBe(most);
    // And the newest are right.
    expect(feed.after(2999)).toEqual(eventsOf(3000, 3000, data));
    expect(feed.after(3000)).toEqual([]);
  });

  it('TRN-33 FIX-85 reads a page when a reader waits, and the next one when a reader waits again', async () => {
    const { place, calls } = logOf(eventsOf(1, 50_000));
    const feed = new TurnEventFeed('t', {
      ...place,
      log: { ...place.log, last: async () => (calls.length === 0 ? 0 : 50_000) },
    });
    await feed.ready;
    await feed.news(never);
    await pause(50);
    expect(calls).toEqual([0]);
    expect(feed.after(0)).toEqual(eventsOf(1, 8));
    await feed.news(never);
    expect(calls).toEqual([0, 8]);
    // A full page is followed by one of four times its length.
    expect(feed.after(0)).toEqual(eventsOf(1, 40));
  });

  it('TRN-33 queries only while a reader waits', async () => {
    const { place, calls } = logOf([]);
    const feed = new TurnEventFeed('t', place);
    await feed.ready;
    await pause(250);
    expect(calls).toEqual([]);
    const leaving = new AbortController();
    const waiting = feed.news(leaving.signal);
    await eventually(() => calls.length >= 3);
    leaving.abort();
    await waiting;
    await pause(150);
    calls.length = 0;
    await pause(250);
    expect(calls).toEqual([]);
  });

  it('TRN-30 begins where the log ends, and takes nothing twice', async () => {
    const { place } = logOf(eventsOf(1, 10));
    const feed = new TurnEventFeed('t', place);
    await feed.ready;
    expect(feed.after(9)).toBeNull();
    expect(feed.after(10)).toEqual([]);
    feed.addLocal(eventsOf(8, 12));
    expect(feed.after(10)).toEqual(eventsOf(11, 12));
    feed.addLocal(eventsOf(11, 12));
    expect(feed.after(10)).toEqual(eventsOf(11, 12));
  });

  it('TRN-30 reads what another process stored in between', async () => {
    const stored = eventsOf(1, 1);
    const { place } = logOf(stored);
    const feed = new TurnEventFeed('t', place);
    await feed.ready;
    const waiting = feed.news(never);
    stored.push(...eventsOf(2, 4));
    // The `attempt` event before it is the store's.
    feed.addLocal(eventsOf(4, 4));
    await waiting;
    expect(feed.after(1)).toEqual(eventsOf(2, 4));
  });

  it('TRN-30 reads to the end after it has seen the end of the turn, and before it reports it', async () => {
    const stored = eventsOf(1, 1);
    const log = logOf(stored);
    let turn = RUNNING;
    const place: FeedSources = {
      ...log.place,
      ledger: {
        get: async () => {
          // The last events are stored, and the turn settles, just before the check.
          if (turn === SETTLED && stored.length === 1) stored.push(...eventsOf(2, 3));
          return turn;
        },
      },
    };
    const feed = new TurnEventFeed('t', place);
    await feed.ready;
    turn = SETTLED;
    feed.changed();
    await feed.news(never);
    await eventually(() => feed.isOver);
    expect(feed.after(1)).toEqual(eventsOf(2, 3));
    expect(feed.end).toEqual({
      offset: 4,
      type: 'settled',
      data: { id: 't', sessionId: 's', status: 'completed', turnIndex: 0, reply: 'done' },
    });
  });

  it('TRN-30 a notification that comes while it looks makes it look again', async () => {
    let turn = RUNNING;
    let looks = 0;
    const feed = new TurnEventFeed('t', {
      ...logOf([]).place,
      ledger: {
        get: async () => {
          looks += 1;
          const seen = turn;
          if (looks === 2) {
            // Read already, and changed before the answer is here.
            turn = SETTLED;
            feed.changed();
          }
          return seen;
        },
      },
    });
    await feed.ready;
    const startedAt = steadyClock.now();
    void feed.news(never);
    await eventually(() => feed.isOver);
    expect(steadyClock.now() - startedAt).toBeLessThan(500);
  });

  it.each<[string, (feed: TurnEventFeed) => void]>([
    ['an event that this process stores', (feed) => feed.addLocal(eventsOf(1, 1))],
    ['an event that a reader has read', (feed) => feed.share(eventsOf(1, 1))],
    ['a notification', (feed) => feed.changed()],
  ])('TRN-30 gives no wait of a turn that continues while it is read, as %s shows', async (_, arrive) => {
    const waits: unknown[] = [];
    let reads = 0;
    const feed = new TurnEventFeed('t', {
      ...logOf([]).place,
      ledger: {
        get: async () => {
          reads += 1;
          // Read already, and continued before the result is here.
          if (reads === 2) arrive(feed);
          return reads === 2 ? WAITS : RUNNING;
        },
      },
    });
    await feed.ready;
    while (reads < 3) {
      await feed.news(AbortSignal.timeout(50));
      waits.push(feed.wait);
    }
    expect(waits).toEqual(waits.map(() => null));
  });

  it('TRN-32 finds the end of a turn of another process soon after its last event, with one more look', async () => {
    const stored = eventsOf(1, 1);
    let turn = RUNNING;
    let looks = 0;
    const { place } = logOf(stored);
    const get = async (): Promise<Turn> => {
      looks += 1;
      return turn;
    };
    const feed = new TurnEventFeed('t', { ...place, ledger: { get } });
    await feed.ready;
    const leaving = new AbortController();
    void feed.news(leaving.signal);
    // The first look of a reader that waits.
    await eventually(() => looks >= 2);
    const before = looks;
    const startedAt = steadyClock.now();
    stored.push(...eventsOf(2, 3));
    await eventually(() => feed.after(2)?.length === 1);
    turn = SETTLED;
    void feed.news(leaving.signal);
    await eventually(() => feed.isOver);
    expect(steadyClock.now() - startedAt).toBeLessThan(700);
    expect(looks - before).toBeLessThanOrEqual(2);
    expect(feed.end).toMatchObject({ type: 'settled', offset: 4 });
  });

  it('NST-22 logs a failed read once and retries it with a delay; an unavailable store is not logged', async () => {
    const stored = eventsOf(1, 1);
    const { place } = logOf(stored);
    const failures = [
      new StoreUnavailableError('away', { maybeApplied: false }),
      ...Array.from({ length: 3 }, () => new Error('of ann')),
    ];
    const failedAt: number[] = [];
    const read: FeedSources['log']['read'] = async (...asked) => {
      const failure = failures.shift();
      if (!failure) return place.log.read(...asked);
      failedAt.push(performance.now());
      throw failure;
    };
    const feed = new TurnEventFeed('t', { ...place, log: { ...place.log, read } });
    await feed.ready;
    const errors = await loggedBy(async () => {
      const news = feed.news(never);
      stored.push(...eventsOf(2, 2));
      await news;
    });
    expect(feed.after(1)).toEqual(eventsOf(2, 2));
    expect(errors).toEqual([expect.stringContaining(`Could not read the events of turn ${hashed('t')}; retrying.`)]);
    for (const other of ['ann', 'STORE_UNAVAILABLE']) expect(errors[0]).not.toContain(other);
    // Two pauses of a second. After an empty read, the next one follows after a tenth.
    expect(failedAt[3] - failedAt[1]).toBeGreaterThan(1000);
  });

  it('FIX-44 cuts the stream of an open turn when the lifetime of its session ends, and of no other', async () => {
    const { place } = logOf(eventsOf(1, 2));
    const soon = Date.now() + 300;
    const feed = new TurnEventFeed('t', { ...place, sessionEndsAt: async () => soon });
    const settled = { ...RUNNING, status: 'completed' as const };
    const over = { ...place, ledger: { get: async () => settled }, sessionEndsAt: async () => soon - 1000 };
    const read = new TurnEventFeed('t', over);
    await Promise.all([feed.ready, read.ready]);
    expect(feed.isOver).toBe(false);
    while (!feed.isOver) await feed.news(never);

    expect(Date.now()).toBeGreaterThan(soon);
    expect({ end: feed.end, isCut: feed.isCut }).toEqual({ end: null, isCut: true });
    expect(read.isCut).toBe(false);
    expect(read.end).toMatchObject({ type: 'settled' });
  });

  it('NST-22 what a stream fails of is logged without its message, and not told to its reader', async () => {
    const { place } = logOf([]);
    const readers = new TurnEventReaders({
      ...place,
      log: { ...place.log, last: () => Promise.reject(new Error('of ann')) },
      changes: { subscribe: () => () => undefined },
      localEvents: new LocalEvents(),
      telemetry: { count: () => undefined } as never,
    });
    const messages = await readers.messages('t', 0);
    let told: unknown;
    const errors = await loggedBy(async () => {
      told = await lastValueFrom(messages).catch((error: Error) => error);
    });
    expect(told).toEqual(new Error('Internal server error'));
    expect(errors).toEqual([expect.stringContaining(hashed('t'))]);
    expect(errors[0]).not.toContain('ann');
  });

  it('TRN-33 a reader cannot change the events of other readers', async () => {
    const feed = new TurnEventFeed('t', logOf([]).place);
    await feed.ready;
    feed.addLocal([{ offset: 1, type: 'delta', data: { nested: { text: 'a' } } }]);
    const [event] = feed.after(0) ?? [];
    expect(() => Object.assign((event.data as { nested: object }).nested, { text: 'b' })).toThrow(TypeError);
  });
});

/** A log of these events, and the calls of `read`. */
function logOf(events: readonly TurnEvent[]): { place: FeedSources; calls: number[] } {
  const calls: number[] = [];
  const place: FeedSources = {
    ledger: { get: async () => RUNNING },
    log: {
      read: async (_, after, limit) => {
        calls.push(after);
        return events.filter(({ offset }) => offset > after).slice(0, limit);
      },
      last: async () => events.length,
    },
    readFailure: () => undefined,
    isSessionOver: async () => false,
    sessionEndsAt: async () => Infinity,
  };
  return { place, calls };
}

function eventsOf(first: number, last: number, data = 'x'): TurnEvent[] {
  return Array.from({ length: last - first + 1 }, (_, at) => ({ offset: first + at, type: 'delta', data }));
}

/** How many events it has, the last one being known. */
function heldBy(feed: TurnEventFeed, last: number): number {
  let held = 0;
  while (held < last && feed.after(last - held - 1) !== null) held += 1;
  return held;
}

/** The errors that are logged meanwhile. */
async function loggedBy(work: () => Promise<void>): Promise<string[]> {
  const errors: string[] = [];
  const nothing = (): void => undefined;
  Logger.overrideLogger({ log: nothing, warn: nothing, error: (...told) => void errors.push(told.join('\n')) });
  await work().finally(() => void Logger.overrideLogger(false));
  return errors;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
