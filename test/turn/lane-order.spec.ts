import { jest } from '@jest/globals';
import fc from 'fast-check';
import {
  defineOrchestrator,
  PermanentTurnError,
  reply,
  StoreRejectedError,
  type TurnContext,
} from 'nestjs-agent-sessions';
import { type TurnLedger } from 'nestjs-agent-sessions/adapter';
import { inGroups } from '../../lib/common/batches.js';
import { type Application, gate, LIVE_STORES, startApplication } from '../support/running-application.js';
import { eventually } from '../support/eventually.js';

/** One attempt of a handler. */
interface Attempt {
  readonly sessionId: string;
  readonly text: string;
  readonly startedAt: number;
  endedAt: number;
}

describe.each(LIVE_STORES)('lanes over $name', ({ open }) => {
  afterEach(() => jest.restoreAllMocks());

  it('TRN-02 runs 20 concurrent messages of one session in the order of their acceptance', async () => {
    const { desk, attempts } = recordingDesk(async () => pause(3));
    const { turns, session, handle } = await startApplication({ adapter: open(), orchestrators: [desk] });
    const sessionId = await session();

    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) => handle(desk).execute(`message ${i}`, { sessionId })),
    );

    const accepted = await turns.list({ sessionId });
    expect(accepted.map(({ position }) => position)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    expect(attempts.map(({ text }) => text)).toEqual(accepted.map(({ request }) => request.input.text));
    for (const { id, turnIndex } of results) {
      expect(turnIndex).toBe(accepted.findIndex((turn) => turn.id === id));
    }
    expect(overlaps(attempts)).toEqual([]);
  });

  it('TRN-02 TRN-03 keeps order and exclusion over random sessions, failures and pauses', async () => {
    const behaviours = new Map<string, Behaviour>();
    const { desk, attempts } = recordingDesk(async ({ id, input: { text }, attempt }) => {
      const { pauses, failures, permanent } = behaviours.get(text) ?? calm;
      await pause(pauses);
      if (permanent) throw new PermanentTurnError(`turn ${id} never works`);
      if (attempt <= failures) throw new Error(`attempt ${attempt} of turn ${id}`);
    });
    const app = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { retry: { attempts: 2, backoff: { type: 'fixed', delayMs: 1 } }, concurrency: 3 },
    });

    await fc.assert(
      fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 20 }), async (messages) => {
        attempts.length = 0;
        const sessionIds = await Promise.all(Array.from({ length: 4 }, () => app.session()));
        messages.forEach((given, i) => behaviours.set(`message ${i}`, given));
        await Promise.allSettled(
          messages.map(({ session }, i) =>
            app.handle(desk).execute(`message ${i}`, { sessionId: sessionIds[session] }),
          ),
        );
        for (const sessionId of sessionIds) await expectOrderly(app, sessionId, attempts, behaviours);
      }),
      { numRuns: 20 },
    );
  }, 60_000);

  it('TRN-04 runs different sessions in parallel, as many as `concurrency` says', async () => {
    let running = 0;
    let peak = 0;
    const { desk } = recordingDesk(async () => {
      running += 1;
      peak = Math.max(peak, running);
      // The first ones wait for company, however slow a claim is; a while longer, for one too many.
      await eventually(() => peak >= 3);
      await pause(20);
      running -= 1;
    });
    const { session, handle } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { concurrency: 3 },
    });
    const sessionIds = await Promise.all(Array.from({ length: 12 }, () => session()));
    await Promise.all(sessionIds.map((sessionId) => handle(desk).execute('hi', { sessionId })));
    expect(peak).toBe(3);
  });

  it('TRN-04 a session with 1,000 queued turns does not hold back a session with one', async () => {
    const { pass, open: release } = gate();
    const { desk, attempts } = recordingDesk(() => pass());
    const { session, handle, turns } = await startApplication({
      adapter: open(),
      orchestrators: [desk],
      turns: { concurrency: 1, maxQueuedPerSession: 1000, shutdownGraceMs: 100 },
    });
    const [busy, calmOne] = [await session(), await session()];
    const hot = Array.from({ length: 1000 }, (_, index) => `hot ${index}`);
    await inGroups(hot, 50, (text) => handle(desk).submit(text, { sessionId: busy }));
    await eventually(() => attempts.length === 1);

    const cold = await handle(desk).submit('cold', { sessionId: calmOne });
    await handle(desk).submit('cold, too', { sessionId: await session() });
    release();
    await turns.result(cold.id);

    const before = attempts.findIndex(({ text }) => text === 'cold');
    expect(attempts.slice(0, before).every(({ sessionId }) => sessionId === busy)).toBe(true);
    // One visit of the busy lane: then the others have their turn.
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThanOrEqual(16);
  });

  it('TRN-04 FIX-61 counts a turn once per visit, however often the store rejects its result', async () => {
    const adapter = open();
    const ledger = adapter.turns;
    const turns = Object.assign(Object.create(ledger) as TurnLedger, {
      // Accepts only the settlement without a report, which is the third.
      settle: async (...[hold, settlement, next]: Parameters<TurnLedger['settle']>) => {
        if (settlement.report) throw new StoreRejectedError('The report is refused.', 'Change it.');
        return ledger.settle(hold, settlement, next);
      },
    });
    const { pass, open: release } = gate();
    const { desk, attempts } = recordingDesk(() => pass());
    const { session, handle } = await startApplication({
      adapter: { ...adapter, turns },
      orchestrators: [desk],
      turns: { concurrency: 1 },
    });
    // A visit also ends after some time.
    jest.spyOn(performance, 'now').mockReturnValue(performance.now());
    const [busy, calmOne] = [await session(), await session()];
    for (let index = 0; index < 20; index += 1) await handle(desk).submit(`hot ${index}`, { sessionId: busy });
    await eventually(() => attempts.length === 1);
    await handle(desk).submit('cold', { sessionId: calmOne });
    release();
    await eventually(() => attempts.length === 21);

    expect(attempts.findIndex(({ text }) => text === 'cold')).toBe(16);
  });
});

interface Behaviour {
  readonly session: number;
  readonly pauses: number;
  /** Attempts that fail. */
  readonly failures: number;
  readonly permanent: boolean;
}

const calm: Behaviour = { session: 0, pauses: 0, failures: 0, permanent: false };

const message: fc.Arbitrary<Behaviour> = fc.record({
  session: fc.nat(3),
  pauses: fc.nat(4),
  failures: fc.constantFrom(0, 0, 0, 1, 2),
  permanent: fc.constantFrom(false, false, false, false, true),
});

/** Turns settled as they should, in the order of the lane, and never two attempts at once. */
async function expectOrderly(
  { turns }: Application,
  sessionId: string,
  all: readonly Attempt[],
  behaviours: ReadonlyMap<string, Behaviour>,
): Promise<void> {
  const attempts = all.filter((attempt) => attempt.sessionId === sessionId);
  const accepted = await turns.list({ sessionId });
  const texts = accepted.map(({ request }) => request.input.text);
  expect(overlaps(attempts)).toEqual([]);
  expect(attempts.map(({ text }) => text)).toEqual(
    texts.flatMap((text) => {
      const { failures, permanent } = behaviours.get(text) ?? calm;
      return Array<string>(permanent ? 1 : Math.min(2, failures + 1)).fill(text);
    }),
  );
  expect(accepted.map(({ status }) => status)).toEqual(
    texts.map((text) => {
      const { failures, permanent } = behaviours.get(text) ?? calm;
      return permanent || failures >= 2 ? 'failed' : 'awaiting-input';
    }),
  );
  const indices = accepted.flatMap(({ turnIndex }) => turnIndex ?? []);
  expect(indices).toEqual(indices.map((_, i) => i));
}

/** Answers after `work`, and writes down each attempt. */
function recordingDesk(work: (turn: TurnContext) => Promise<void>) {
  const attempts: Attempt[] = [];
  let clock = 0;
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn) => {
        const attempt = {
          sessionId: turn.sessionId,
          text: turn.input.text,
          startedAt: (clock += 1),
          endedAt: Infinity,
        };
        attempts.push(attempt);
        try {
          await work(turn);
        } finally {
          attempt.endedAt = clock += 1;
        }
        return reply('done');
      },
    },
  });
  return { desk, attempts };
}

/** Neighbours that ran at the same time. */
function overlaps(attempts: readonly Attempt[]): (readonly [Attempt, Attempt])[] {
  return attempts.slice(1).flatMap((next, i) => (attempts[i].endedAt < next.startedAt ? [] : [[attempts[i], next]]));
}

/** Lets others run for some rounds of the event loop. */
async function pause(rounds: number): Promise<void> {
  for (let i = 0; i < rounds; i += 1) await new Promise((resolve) => setImmediate(resolve));
}
