import {
  defineOrchestrator,
  InvalidInputError,
  reply,
  type SessionsAdapter,
  TooLargeError,
  TurnCancelledError,
  type TurnContext,
  type TurnEvent,
  type TurnService,
} from 'nestjs-agent-sessions';
import { retryAfterMs } from '../../lib/ledger/turn-error-record.js';
import { eventually } from '../support/eventually.js';
import {
  type Application,
  aborted,
  gate,
  LASTING_STORES,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';

describe.each(LIVE_STORES)('the own events of a turn over $name', ({ open }) => {
  it('AIS-07 are those of all attempts, with their starts between them', async () => {
    const seen: unknown[] = [];
    const { turns, session } = await start(open(), async (turn) => {
      void turn.emit({ type: 'delta', data: turn.attempt });
      seen.push((await turn.emitted()).map(({ offset, type, data }) => [offset, type, data]));
      if (turn.attempt < 3) throw new Error('again');
    });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    await turns.result(id);
    const first = [1, 'delta', 1];
    const second = [...[[2, 'attempt', { attempt: 2 }]], [3, 'delta', 2]];
    const third = [
      [4, 'attempt', { attempt: 3 }],
      [5, 'delta', 3],
    ];
    expect(seen).toEqual([[first], [first, ...second], [first, ...second, ...third]]);
  });

  it('AIS-07 are complete, however many there are', async () => {
    let seen: readonly TurnEvent[] = [];
    const { turns, session } = await start(open(), async (turn) => {
      for (let n = 1; n <= 1200; n += 1) void turn.emit({ type: 'delta', data: n });
      seen = await turn.emitted();
    });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    await turns.result(id);
    expect(seen.map(({ data }) => data)).toEqual(Array.from({ length: 1200 }, (_, at) => at + 1));
  });

  it('AIS-07 flush stores them before the next batch is due', async () => {
    const { pass, open: release } = gate();
    const adapter = open();
    const { turns, session } = await start(
      adapter,
      async (turn) => {
        void turn.emit({ type: 'delta', data: 1 });
        await turn.flush();
        void turn.emit({ type: 'delta', data: 2 });
        void turn.emit({ type: 'delta', data: 3 });
        await turn.flush();
        await pass();
      },
      { batchMs: 10_000 },
    );
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    await eventually(async () => (await adapter.events.last(id)) === 3);
    release();
    await turns.result(id);
  });
});

describe.each(LIVE_STORES)('the waiting event over $name', ({ open }) => {
  it('AIS-07 names all signals that the turn waits for, and comes again for the next wait', async () => {
    const { turns, session } = await start(open(), async (turn) => {
      await turn.emit({ type: 'delta', data: 'asking' });
      await Promise.all([turn.waitFor('a'), turn.waitFor('b', { timeoutMs: 600_000 }), turn.waitFor('c')]);
      await turn.waitFor('d', { timeoutMs: 600_000 });
    });
    const { id, sessionId } = await turns.submit('desk', 'go', { sessionId: await session() });
    const { events, over } = follow(turns, id);
    const waits = (): unknown[] => events.filter(({ type }) => type === 'waiting').map(({ data }) => data);
    await eventually(() => waits().length === 1);
    expect(waits()).toEqual([{ id, sessionId, signals: ['a', 'b', 'c'] }]);
    await turns.signal(id, 'b');
    await turns.signal(id, 'c');
    await turns.signal(id, 'a');
    await eventually(() => waits().length === 2);
    const until = expect.stringMatching(/Z$/) as string;
    expect(waits()[1]).toEqual({ id, sessionId, signals: ['d'], until });
    // A reader that comes now, or comes again, receives the wait too.
    const again = follow(turns, id, { after: events.at(-1)?.offset });
    await eventually(() => again.events.length === 1);
    expect(again.events).toEqual([events.at(-1)]);
    await turns.signal(id, 'd');
    await Promise.all([over, again.over]);
    expect(events.at(-1)).toMatchObject({ type: 'settled' });
  });
});

describe.each(LASTING_STORES)('the waiting event in another process over $name', ({ create }) => {
  it('AIS-07 comes after the events before the wait', async () => {
    const connect = create();
    const worker = await start(connect(), async (turn) => {
      for (let n = 1; n <= 100; n += 1) void turn.emit({ type: 'delta', data: n });
      await turn.waitFor('go on');
    });
    const web = await startApplication({ adapter: connect(), role: 'submit' });
    const { id } = await worker.turns.submit('desk', 'go', { sessionId: await worker.session() });
    const { events, over } = follow(web.turns, id);
    await eventually(() => events.length === 101);
    expect(events.at(-1)).toMatchObject({ offset: 100, type: 'waiting', data: { signals: ['go on'] } });
    await worker.turns.signal(id, 'go on');
    await over;
    expect(events.filter(({ type }) => type === 'waiting')).toHaveLength(1);
  });
});

describe.each(LIVE_STORES)('cancel with keep over $name', ({ open }) => {
  const partial = [{ role: 'assistant' as const, content: [{ type: 'text', text: 'Half' }] }];

  it.each([
    ['nothing by default', {}, []],
    ['nothing for false', { keep: false }, []],
    ['the message of the user for true', { keep: true }, [['user', 'go']]],
    [
      'the given messages',
      { keep: partial },
      [
        ['user', 'go'],
        ['assistant', partial[0].content],
      ],
    ],
  ] as const)('AIS-07 keeps %s of a running turn', async (_, options, kept) => {
    const app = await start(open(), (turn) => aborted(turn.signal));
    const { id, sessionId } = await app.turns.submit('desk', 'go', { sessionId: await app.session() });
    await eventually(async () => (await app.turns.get(id))?.status === 'running');
    await app.turns.cancel(id, options);
    await rejection(app.turns.result(id), TurnCancelledError);
    const log = await app.adapter.conversations.page(sessionId);
    expect(log.map(({ role, content }) => [role, content])).toEqual(kept);
    expect(log.map(({ turnId }) => turnId)).toEqual(kept.map(() => id));
  });

  it.each<[string, object, new (...args: never[]) => Error]>([
    ['another type', { keep: 'yes' }, InvalidInputError],
    ['a message without a role', { keep: [{ content: 'a' }] }, InvalidInputError],
    ['an unknown option', { kept: true }, InvalidInputError],
    ['too much', { keep: [{ role: 'user', content: 'x'.repeat(1_100_000) }] }, TooLargeError],
  ])('AIS-07 rejects %s, and the turn continues', async (_, options, type) => {
    const { pass, open: release } = gate();
    const { turns, session } = await start(open(), () => pass());
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    await rejection(turns.cancel(id, options), type);
    release();
    expect(await turns.result(id)).toMatchObject({ reply: 'done' });
  });
});

describe('the pause that an error asks for', () => {
  it.each([
    [60_000, 60_000],
    [Infinity, 3_600_000],
  ])('AIS-07 of %d ms is at least %d ms long, and not much longer', async (asked, pauseMs) => {
    const { turns, session } = await failing({ retryAfterMs: asked });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    const { dueAt = '', startedAt = '' } = await eventually(async () => {
      const turn = await turns.get(id);
      return turn?.dueAt ? turn : null;
    });
    const pause = Date.parse(dueAt) - Date.parse(startedAt);
    expect(pause).toBeGreaterThanOrEqual(pauseMs);
    expect(pause).toBeLessThan(pauseMs + 50_000);
    await turns.cancel(id);
  });

  it.each([
    ['the last error of a RetryError', { lastError: { retryAfterMs: 60_000 } }],
    ['a cause', { cause: new Error('b', { cause: { retryAfterMs: 60_000 } }) }],
    ['the cause of a last error', { lastError: { cause: { retryAfterMs: 60_000 } } }],
  ])('AIS-07 is found in %s', async (_, nested) => {
    expect(retryAfterMs(Object.assign(new Error('busy'), nested))).toBe(60_000);
  });

  it('AIS-07 is that of the error itself if a cause has another one', () => {
    expect(retryAfterMs({ retryAfterMs: 2000, lastError: { retryAfterMs: 9000 }, cause: { retryAfterMs: 1 } })).toBe(
      2000,
    );
  });

  it('AIS-07 is searched to a limited depth, also in errors that are their own cause', () => {
    const circular: { cause?: unknown; lastError?: unknown } = {};
    circular.cause = circular.lastError = circular;
    expect(retryAfterMs(circular)).toBe(0);
    expect(retryAfterMs(nestedIn({ retryAfterMs: 7 }, 5))).toBe(7);
    expect(retryAfterMs(nestedIn({ retryAfterMs: 7 }, 6))).toBe(0);
  });

  it('AIS-07 delays the next attempt if the error of a model is rethrown with a cause', async () => {
    const { turns, session } = await failing({ cause: { retryAfterMs: 60_000 } });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    const { dueAt = '', startedAt = '' } = await eventually(async () => {
      const turn = await turns.get(id);
      return turn?.dueAt ? turn : null;
    });
    expect(Date.parse(dueAt) - Date.parse(startedAt)).toBeGreaterThanOrEqual(60_000);
    await turns.cancel(id);
  });

  it.each([-5, NaN, '60000', null])('AIS-07 is ignored if it is %p', async (asked) => {
    const { turns, session } = await failing({ retryAfterMs: asked });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    expect(await turns.result(id, { timeoutMs: 30_000 })).toMatchObject({ reply: 'done' });
  });

  function nestedIn(innermost: object, depth: number): object {
    return depth === 0 ? innermost : { cause: nestedIn(innermost, depth - 1) };
  }

  function failing(fields: object): Promise<Application> {
    const [{ open }] = LIVE_STORES;
    return start(open(), (turn) => {
      if (turn.attempt === 1) throw Object.assign(new Error('busy'), fields);
    });
  }
});

function start(
  adapter: SessionsAdapter,
  work: (turn: TurnContext) => Promise<unknown> | void,
  events: { readonly batchMs?: number } = {},
): Promise<Application> {
  const desk = defineOrchestrator({
    name: 'desk',
    intents: { answer: async (turn) => (await work(turn), reply('done')) },
  });
  const retry = { attempts: 3, backoff: { type: 'fixed', delayMs: 1 } } as const;
  return startApplication({ adapter, orchestrators: [desk], turns: { retry, events } });
}

/** Returns the events so far, and when the stream ends. */
function follow(
  turns: TurnService,
  turnId: string,
  options: { readonly after?: number | undefined } = {},
): { events: TurnEvent[]; over: Promise<void> } {
  const events: TurnEvent[] = [];
  const read = async (): Promise<void> => {
    for await (const event of turns.readEvents(turnId, options)) events.push(event);
  };
  return { events, over: read() };
}
