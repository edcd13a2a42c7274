import {
  defineOrchestrator,
  InvalidInputError,
  memoryAdapter,
  PermanentTurnError,
  reply,
  type SessionsAdapter,
  StateSerializationError,
  StoreUnavailableError,
  TooLargeError,
  type TurnContext,
  type TurnEvent,
  TurnNotFoundError,
  type TurnService,
  type TurnsOptions,
} from 'nestjs-agent-sessions';
import {
  type Application,
  aborted,
  gate,
  LASTING_STORES,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';
import { eventually } from '../support/eventually.js';
import { whileSteady } from '../support/steady-clock.js';

const WORDS = ['Order', ' 7', ' is', ' shipped', '.'];

describe.each(LASTING_STORES)('the events of a turn over $name', ({ create }) => {
  it('TRN-30 TRN-31 a process that runs no turns reads the events of another process live', async () => {
    const open = create();
    const [pass, release] = steps(2);
    const worker = await start(open(), async (turn) => {
      void turn.emit({ type: 'delta', data: { text: 'one' } });
      await pass[0]();
      void turn.emit({ type: 'delta', data: { text: 'two' } });
      void turn.emit({ type: 'tool' });
      await pass[1]();
    });
    const web = await startApplication({ adapter: open(), role: 'submit' });
    const { id, sessionId } = await worker.turns.submit('desk', 'go', { sessionId: await worker.session() });
    const seen = [worker, web].map(({ turns }) => follow(turns, id));

    await eventually(() => seen.every(({ events }) => events.length === 1));
    release[0]();
    await eventually(() => seen.every(({ events }) => events.length === 3));
    release[1]();
    await Promise.all(seen.map(({ over }) => over));
    const expected: TurnEvent[] = [
      { offset: 1, type: 'delta', data: { text: 'one' } },
      { offset: 2, type: 'delta', data: { text: 'two' } },
      { offset: 3, type: 'tool', data: null },
      { offset: 4, type: 'settled', data: { id, sessionId, status: 'awaiting-input', turnIndex: 0, reply: 'done' } },
    ];
    for (const { events } of seen) expect(events).toEqual(expected);
    // Also to readers that come after its end.
    for (const { turns } of [worker, web]) expect(await all(turns, id)).toEqual(expected);
  });

  it('TRN-30 delivers the terminal event last and exactly once, for every reader and settle time', async () => {
    const open = create();
    const worker = await start(open(), (turn) => {
      for (let n = 1; n <= Number(turn.input.text); n += 1) void turn.emit({ type: 'delta', data: n });
    });
    const web = await startApplication({ adapter: open(), role: 'submit' });
    const sessionIds = await Promise.all(Array.from({ length: 5 }, () => worker.session()));
    for (let round = 0; round < 5; round += 1) {
      const submitted = await Promise.all(
        sessionIds.map((sessionId, at) => worker.turns.submit('desk', String(round * 5 + at), { sessionId })),
      );
      const streams = await Promise.all(
        submitted.flatMap(({ id }) => [all(worker.turns, id), all(web.turns, id), all(web.turns, id)]),
      );
      for (const [at, events] of streams.entries()) {
        const count = round * 5 + Math.floor(at / 3);
        expect(events.map(({ type }) => type)).toEqual([...Array<string>(count).fill('delta'), 'settled']);
        expect(events.map(({ offset }) => offset)).toEqual(events.map((_, index) => index + 1));
      }
    }
  });

  it('TRN-30 TRN-32 a reader that reconnects at any time gets each event once and in order', async () => {
    const open = create();
    const count = 400;
    const worker = await start(
      open(),
      async (turn) => {
        for (let n = 1; n <= count / 2; n += 1) {
          void turn.emit({ type: 'delta', data: n });
          if (n % 7 === 0) await new Promise((resolve) => setTimeout(resolve, n % 3));
        }
        if (turn.attempt === 1) throw new Error('once more');
      },
      { retry: { attempts: 2, backoff: { type: 'fixed', delayMs: 30 } }, events: { batchMs: 3, batchBytes: 200 } },
    );
    const web = await startApplication({ adapter: open(), role: 'submit' });
    const { id } = await worker.turns.submit('desk', 'go', { sessionId: await worker.session() });
    const read = async (turns: TurnService, at: number): Promise<TurnEvent[]> => {
      const seen: TurnEvent[] = [];
      for (let visit = 1; seen.at(-1)?.type !== 'settled'; visit += 1) {
        const leaving = new AbortController();
        const timer = setTimeout(() => leaving.abort(), (at * 13 + visit * 29) % 120);
        let most = (at * 31 + visit * 17) % 90;
        for await (const event of turns.readEvents(id, { after: seen.at(-1)?.offset, signal: leaving.signal })) {
          seen.push(event);
          // Some leave in the midst of a page, some when their time is up.
          if ((most -= 1) === 0) break;
          if (at % 4 === 0 && event.offset % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
        }
        clearTimeout(timer);
      }
      return seen;
    };
    const streams = await Promise.all(
      Array.from({ length: 24 }, (_, at) => read(at % 2 === 0 ? worker.turns : web.turns, at)),
    );
    const half = Array.from({ length: count / 2 }, (_, at) => at + 1);
    for (const seen of streams) {
      expect(seen.map(({ offset }) => offset)).toEqual(Array.from({ length: count + 2 }, (_, at) => at + 1));
      expect(seen.slice(0, -1).map(({ data }) => data)).toEqual([...half, { attempt: 2 }, ...half]);
    }
  });
});

describe.each(LIVE_STORES)('the events of a turn over $name', ({ open }) => {
  it('TRN-30 a further attempt emits that the handler restarted, and offsets continue', async () => {
    const { turns, session } = await start(
      open(),
      (turn) => {
        void turn.emit({ type: 'delta', data: `attempt ${turn.attempt}` });
        if (turn.attempt < 3) throw new Error('not yet');
      },
      { retry: { attempts: 3, backoff: { type: 'fixed', delayMs: 1 } } },
    );
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    expect((await all(turns, id)).map(({ offset, type, data }) => [offset, type, data]).slice(0, -1)).toEqual([
      [1, 'delta', 'attempt 1'],
      [2, 'attempt', { attempt: 2 }],
      [3, 'delta', 'attempt 2'],
      [4, 'attempt', { attempt: 3 }],
      [5, 'delta', 'attempt 3'],
    ]);
  });

  it('TRN-30 ends the stream of a turn that failed, was cancelled, superseded, or ended with its session', async () => {
    const { pass, open: release } = gate();
    const app = await start(open(), async (turn) => {
      await turn.emit({ type: 'delta', data: 'so far' });
      if (turn.input.text === 'fail') throw new PermanentTurnError('the password is hunter2');
      await Promise.race([pass(), aborted(turn.signal)]);
    });
    const { turns } = app;
    const submit = async (text: string, sessionId?: string) =>
      turns.submit('desk', text, { sessionId: sessionId ?? (await app.session()) });

    const failed = await submit('fail');
    const cancelled = await submit('cancel');
    const head = await submit('head');
    const superseded = await submit('superseded', head.sessionId);
    const holder = await submit('holder');
    const expired = await submit('expired', holder.sessionId);
    await eventually(async () => (await turns.get(cancelled.id))?.status === 'running');
    const streams = [failed, cancelled, superseded, expired].map(({ id }) => all(turns, id));
    await eventually(async () => (await app.adapter.events.last(cancelled.id)) === 1);
    await turns.cancel(cancelled.id);
    const survivor = await turns.submit('desk', 'later', { sessionId: head.sessionId, whenBusy: 'latest' });
    await app.sessions.expire(holder.sessionId);
    const ends = (await Promise.all(streams)).map((events) => events[events.length - 1]);
    release();

    const end = ({ id, sessionId }: { id: string; sessionId: string }, rest: object) => ({
      type: 'settled',
      data: { id, sessionId, ...rest },
    });
    expect(ends).toEqual([
      { offset: 2, ...end(failed, { status: 'failed', code: 'TURN_FAILED' }) },
      { offset: 2, ...end(cancelled, { status: 'cancelled', code: 'TURN_CANCELLED' }) },
      {
        offset: 1,
        ...end(superseded, { status: 'superseded', code: 'TURN_SUPERSEDED', supersededBy: survivor.id }),
      },
      { offset: 1, ...end(expired, { status: 'cancelled', code: 'TURN_CANCELLED' }) },
    ]);
  });

  it('TRN-32 resumes exactly after any offset, and is empty after the end', async () => {
    const { turns, session } = await start(open(), emitWords);
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    const events = await all(turns, id);
    expect(events).toHaveLength(WORDS.length + 1);
    for (let after = 0; after <= events.length + 1; after += 1) {
      expect(await all(turns, id, after)).toEqual(events.slice(after));
      expect(await all(turns, id, String(after))).toEqual(events.slice(after));
    }
  });

  it('TRN-30 the events of a turn that is deleted end without a terminal one', async () => {
    const { pass, open: release } = gate();
    const app = await start(open(), async (turn) => {
      await turn.emit({ type: 'delta', data: 'so far' });
      await pass(turn.signal);
    });
    const { id, sessionId } = await app.turns.submit('desk', 'go', { sessionId: await app.session() });
    const { events, over } = follow(app.turns, id);
    await eventually(() => events.length === 1);
    await app.sessions.delete(sessionId);
    await over;
    release();
    expect(events.map(({ type }) => type)).toEqual(['delta']);
    await rejection(all(app.turns, id), TurnNotFoundError);
  });

  it('TRN-30 TRN-13 a waiting turn keeps its events, and the resumed attempt emits its start', async () => {
    const { turns, session } = await start(open(), async (turn) => {
      await turn.emit({ type: 'delta', data: 'Asking.' });
      await turn.waitFor('approval');
      await turn.emit({ type: 'delta', data: 'Approved.' });
    });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    const { events, over } = follow(turns, id);
    await eventually(async () => (await turns.get(id))?.status === 'waiting');
    await eventually(() => events.length === 2);
    await turns.signal(id, 'approval');
    await over;
    expect(events.map(({ type, data }) => (type === 'settled' || type === 'waiting' ? type : data))).toEqual([
      'Asking.',
      'waiting',
      { attempt: 1 },
      'Asking.',
      'Approved.',
      'settled',
    ]);
  });

  it('TRN-31 stores nothing while events are off; the terminal event comes all the same', async () => {
    const { turns, session, adapter } = await start(open(), emitWords, { events: false });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    expect((await all(turns, id)).map(({ offset, type }) => [offset, type])).toEqual([[1, 'settled']]);
    expect(await adapter.events.last(id)).toBe(0);
  });
});

describe('emit', () => {
  it.each<[string, unknown, new (...args: never[]) => Error]>([
    ['nothing', undefined, InvalidInputError],
    ['a text', 'delta', InvalidInputError],
    ['a key that it does not know', { type: 'delta', text: 'Hel' }, InvalidInputError],
    ['no type', { data: 1 }, InvalidInputError],
    ['an empty type', { type: '' }, InvalidInputError],
    ['a type with a line end', { type: 'a\nb' }, InvalidInputError],
    ['the type settled', { type: 'settled' }, InvalidInputError],
    ['the type attempt', { type: 'attempt' }, InvalidInputError],
    ['the type waiting', { type: 'waiting' }, InvalidInputError],
    ['a date', { type: 'a', data: new Date() }, StateSerializationError],
    ['a function deep within', { type: 'a', data: { b: [() => 1] } }, StateSerializationError],
    ['more than 64 KiB', { type: 'a', data: 'x'.repeat(65_535) }, TooLargeError],
    [
      'a getter that throws',
      {
        get type() {
          throw new RangeError('hostile');
        },
      },
      RangeError,
    ],
  ])('FIX-91 TRN-30 rejects the call for %s, and the turn continues if it is not awaited', async (_, event, type) => {
    let rejected: unknown;
    const { turns, session } = await start(memoryAdapter(), async (turn) => {
      void turn.emit(event as { type: string });
      rejected = await turn.emit(event as { type: string }).catch((error: unknown) => error);
      void turn.emit({ type: 'a', data: 'x'.repeat(65_534) });
    });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    expect((await all(turns, id)).map((each) => each.type)).toEqual(['a', 'settled']);
    expect(rejected).toBeInstanceOf(type);
    expect(await turns.get(id)).toMatchObject({ status: 'awaiting-input', failures: 0 });
  });

  it('TRN-30 stores what data was when it was emitted, not what became of it', async () => {
    const { turns, session } = await start(memoryAdapter(), (turn) => {
      const progress = { done: 1 };
      void turn.emit({ type: 'progress', data: progress });
      progress.done = 2;
    });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    expect((await all(turns, id))[0].data).toEqual({ done: 1 });
  });

  it('TRN-30 does nothing once the attempt is over, and does not reject', async () => {
    const left: TurnContext[] = [];
    const { turns, session, adapter } = await start(memoryAdapter(), async (turn) => {
      left.push(turn);
      turn.signal.addEventListener('abort', () => void turn.emit({ type: 'delta', data: 'late' }));
      if (turn.input.text === 'silent') return;
      await turn.emit({ type: 'delta', data: 'in time' });
      if (turn.input.text === 'cancel') await aborted(turn.signal);
    });
    const settled = await turns.submit('desk', 'go', { sessionId: await session() });
    await turns.result(settled.id);
    const cancelled = await turns.submit('desk', 'cancel', { sessionId: await session() });
    await eventually(() => left.length === 2);
    await turns.cancel(cancelled.id);
    await all(turns, cancelled.id);
    const silent = await turns.submit('desk', 'silent', { sessionId: await session() });
    await turns.result(silent.id);

    for (const turn of left) await turn.emit({ type: 'delta', data: 'late' });
    for (const { id } of [settled, cancelled]) {
      expect((await all(turns, id)).map(({ data }) => data)).toEqual(['in time', expect.anything()]);
      expect(await adapter.events.last(id)).toBe(1);
    }
  });

  it('AIS-07 stores the first event without waiting for batchMs', async () => {
    const held = gate();
    const { turns, session, adapter } = await start(
      memoryAdapter(),
      async (turn) => {
        void turn.emit({ type: 'delta', data: 1 });
        await held.pass(turn.signal);
      },
      { events: { batchMs: 10_000 } },
    );
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    // Less than batchMs.
    await eventually(async () => (await adapter.events.last(id)) === 1, { limitMs: 5_000 });
    held.open();
    expect(await all(turns, id)).toHaveLength(2);
  });

  it('TRN-31 collects events for batchMs, or until there are batchBytes', async () => {
    const batches: number[] = [];
    const adapter = noting(memoryAdapter(), (size) => batches.push(size));
    const { turns, session } = await start(
      adapter,
      async (turn) => {
        for (let n = 0; n < 10; n += 1) void turn.emit({ type: 'delta', data: n });
        await eventually(() => batches.length === 1);
        // Each more than a half of batchBytes.
        for (let n = 0; n < 4; n += 1) void turn.emit({ type: 'delta', data: 'x'.repeat(600) });
      },
      { events: { batchMs: 50, batchBytes: 1000 } },
    );
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    expect(await all(turns, id)).toHaveLength(15);
    expect(batches).toEqual([10, 2, 2]);
  });

  it('TRN-33 resolves late while more than a mebibyte waits to be stored', async () => {
    const store = gate();
    const base = memoryAdapter();
    const adapter = withAppend(base, async (...args) => {
      await store.pass();
      return base.events.append(...args);
    });
    let emitted = 0;
    const { turns, session } = await start(adapter, async (turn) => {
      for (; emitted < 40; emitted += 1) await turn.emit({ type: 'delta', data: 'x'.repeat(60_000) });
    });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    try {
      await eventually(() => emitted === 17);
      // It would have gone on by now.
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(emitted).toBe(17);
    } finally {
      store.open();
    }
    expect(await all(turns, id)).toHaveLength(41);
  });

  it('TRN-31 stores one batch at a time, in order, however slow the store is', async () => {
    const base = memoryAdapter();
    let under = 0;
    const numbers: number[] = [];
    const adapter = withAppend(base, async (hold, batch, ttlMs) => {
      expect((under += 1)).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 20));
      numbers.push(batch.number);
      under -= 1;
      return base.events.append(hold, batch, ttlMs);
    });
    const { turns, session } = await start(
      adapter,
      async (turn) => {
        for (let n = 1; n <= 30; n += 1) {
          void turn.emit({ type: 'delta', data: n });
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
      },
      { events: { batchMs: 1, batchBytes: 1 } },
    );
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    const events = await all(turns, id);
    expect(events.slice(0, -1).map(({ data }) => data)).toEqual(Array.from({ length: 30 }, (_, at) => at + 1));
    expect(numbers).toEqual(numbers.map((_, at) => at + 1));
    expect(numbers.length).toBeGreaterThan(1);
  });

  it('TRN-30 a store that rejects all events does not affect the turn', async () => {
    const adapter = withAppend(memoryAdapter(), () => Promise.reject(new Error('broken')));
    const { turns, session } = await start(adapter, async (turn) => {
      for (let n = 0; n < 100; n += 1) await turn.emit({ type: 'delta', data: n });
    });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    expect((await all(turns, id)).map(({ type, offset }) => [type, offset])).toEqual([['settled', 1]]);
  });

  it('TRN-30 a store that is away for nearly as long as the lease loses nothing', () =>
    whileSteady(200, async () => {
      const base = memoryAdapter();
      let awayUntil = Infinity;
      const unlessAway = <Args extends unknown[], T>(call: (...args: Args) => Promise<T>) => {
        return (...args: Args): Promise<T> =>
          performance.now() < awayUntil ? Promise.reject(new StoreUnavailableError('away')) : call(...args);
      };
      const adapter = withAppend(base, (...args) => {
        if (awayUntil === Infinity) awayUntil = performance.now() + 1400;
        return unlessAway(base.events.append.bind(base.events))(...args);
      });
      const { turns, session } = await start(
        {
          ...adapter,
          turns: Object.assign(Object.create(base.turns) as typeof base.turns, {
            renew: unlessAway(base.turns.renew.bind(base.turns)),
          }),
        },
        (turn) => void turn.emit({ type: 'delta', data: turn.attempt }),
        { leaseMs: 2000 },
      );
      const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
      expect((await all(turns, id)).map(({ data }) => data)).toEqual([1, expect.objectContaining({ reply: 'done' })]);
    }));

  it('TRN-30 TRN-03 a worker that has lost its turn stops, and nothing it emits is stored', async () => {
    const adapter = memoryAdapter();
    const { pass, open: release } = gate();
    const stopped: number[] = [];
    const desk = (name: string, work: (turn: TurnContext) => Promise<void>) =>
      defineOrchestrator({ name: 'desk', intents: { answer: async (turn) => (await work(turn), reply(name)) } });
    // Its lease is not renewed.
    const frozen = {
      ...adapter,
      turns: Object.assign(Object.create(adapter.turns) as typeof adapter.turns, {
        renew: () => new Promise(() => {}),
      }),
    };
    const first = await startApplication({
      adapter: frozen,
      orchestrators: [
        desk('old', async (turn) => {
          await turn.emit({ type: 'delta', data: 'old' });
          await pass();
          await turn.emit({ type: 'delta', data: 'too late' });
          await aborted(turn.signal).catch(() => stopped.push(turn.attempt));
        }),
      ],
      // Not for itself.
      turns: { leaseMs: 300, reconcileMs: 3_600_000 },
    });
    const { id } = await first.turns.submit('desk', 'go', { sessionId: await first.session() });
    await eventually(async () => (await adapter.events.last(id)) === 1);
    const second = await startApplication({
      adapter,
      orchestrators: [desk('new', async (turn) => turn.emit({ type: 'delta', data: 'new' }))],
    });
    const { events, over } = follow(second.turns, id);
    await over;
    release();
    await eventually(() => stopped.length === 1);
    expect(events.map(({ data }) => data)).toEqual([
      'old',
      { attempt: 2 },
      'new',
      expect.objectContaining({ status: 'awaiting-input', reply: 'new' }),
    ]);
    expect(await adapter.events.last(id)).toBe(3);
  });
});

describe('readers', () => {
  it.each([['x'], ['-1'], ['1.5'], [''], [' 1'], [-1], [0.5], [Number.MAX_SAFE_INTEGER + 1], ['12345678901234567']])(
    'TRN-32 refuses %j as an offset',
    async (after) => {
      const { turns } = await startApplication();
      expect(() => turns.readEvents('t', { after })).toThrow(InvalidInputError);
      await rejection(turns.events('t', { after }), InvalidInputError);
    },
  );

  it('TRN-33 a hundred readers cost one read a batch, and readers in the same process none', async () => {
    const adapter = memoryAdapter();
    let reads = 0;
    const counting: SessionsAdapter = {
      ...adapter,
      events: Object.assign(Object.create(adapter.events) as typeof adapter.events, {
        read: (...args: Parameters<typeof adapter.events.read>) => {
          reads += 1;
          return adapter.events.read(...args);
        },
      }),
    };
    const { pass, open: release } = gate();
    const worker = await start(counting, async (turn) => {
      await pass();
      for (let n = 1; n <= 200; n += 1) {
        void turn.emit({ type: 'delta', data: n });
        if (n % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 15));
      }
    });
    const web = await startApplication({ adapter: counting, role: 'submit' });
    // The other process looks ten times a second, this one only when it looks at the turn.
    for (const [app, aSecond] of [
      [web, 12],
      [worker, 5],
    ] as const) {
      const { id } = await worker.turns.submit('desk', 'go', { sessionId: await worker.session() });
      const readers = Array.from({ length: 100 }, () => follow(app.turns, id));
      await eventually(async () => (await worker.turns.get(id))?.status === 'running');
      reads = 0;
      const startedAt = performance.now();
      release();
      await Promise.all(readers.map(({ over }) => over));
      for (const { events } of readers) expect(events).toHaveLength(201);
      expect(reads).toBeLessThan(3 + (aSecond * (performance.now() - startedAt)) / 1000);
    }
  });

  it('TRN-33 one that does not ask costs nothing, one that asks late gets everything', async () => {
    const adapter = memoryAdapter();
    const calls: string[] = [];
    const noted: SessionsAdapter = {
      ...adapter,
      events: Object.assign(Object.create(adapter.events) as typeof adapter.events, {
        read: (...args: Parameters<typeof adapter.events.read>) => {
          calls.push('read');
          return adapter.events.read(...args);
        },
      }),
    };
    const { turns, session } = await start(adapter, async (turn) => {
      for (let n = 1; n <= 2000; n += 1) await turn.emit({ type: 'delta', data: n });
    });
    const web = await startApplication({ adapter: noted, role: 'submit' });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    const slow = web.turns.readEvents(id)[Symbol.asyncIterator]();
    const first = await slow.next();
    await turns.result(id);
    calls.length = 0;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(calls).toEqual([]);

    const rest: TurnEvent[] = [first.value as TurnEvent];
    for (let next = await slow.next(); !next.done; next = await slow.next()) rest.push(next.value);
    expect(rest.map(({ offset }) => offset)).toEqual(Array.from({ length: 2001 }, (_, at) => at + 1));
    expect(rest[2000].type).toBe('settled');
  });

  it('TRN-32 one that leaves does not stop the turn, nor the others', async () => {
    const { pass, open: release } = gate();
    const { turns, session } = await start(memoryAdapter(), async (turn) => {
      await turn.emit({ type: 'delta', data: 1 });
      await pass();
    });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    const leaving = new AbortController();
    const [one, other] = [follow(turns, id, leaving.signal), follow(turns, id)];
    await eventually(() => one.events.length === 1 && other.events.length === 1);
    leaving.abort();
    await one.over;
    release();
    await other.over;
    expect(one.events).toHaveLength(1);
    expect(other.events).toHaveLength(2);
  });

  it.each([
    ['received', true],
    ['lost', false],
  ])('TRN-30 a new reader gets no wait that has ended, if the notification is %s', async (_, isNotified) => {
    const adapter = memoryAdapter();
    const ask = async (turn: TurnContext): Promise<void> => {
      await turn.emit({ type: 'delta', data: 'Asking.' });
      await turn.waitFor('approval');
    };
    const worker = await start(adapter, ask);
    const changes = isNotified ? adapter.changes : { subscribe: () => () => {} };
    const web = await startApplication({ adapter: { ...adapter, changes }, role: 'submit' });
    const { id } = await worker.turns.submit('desk', 'go', { sessionId: await worker.session() });
    await eventually(async () => (await worker.turns.get(id))?.status === 'waiting');
    await worker.close();

    // A reader that has received the wait, and does not ask for the next event.
    const stalled = web.turns.readEvents(id)[Symbol.asyncIterator]();
    const types = [await stalled.next(), await stalled.next()].map(({ value }) => (value as TurnEvent).type);
    expect(types).toEqual(['delta', 'waiting']);
    await web.turns.signal(id, 'approval');
    const { events, over } = follow(web.turns, id);
    await eventually(() => events.length > 0);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await start(adapter, ask);
    await over;
    expect(events.map(({ type }) => type)).toEqual(['delta', 'attempt', 'delta', 'settled']);
    await stalled.return?.();
  });

  it('TRN-30 each reader gets a wait once, whoever joins and however often the turn is read', async () => {
    const { turns, session } = await start(memoryAdapter(), async (turn) => void (await turn.waitFor('approval')));
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    const first = follow(turns, id);
    await eventually(() => first.events.length > 0);
    const second = follow(turns, id);
    await eventually(() => second.events.length > 0);
    // The feed reads the turn each second.
    await new Promise((resolve) => setTimeout(resolve, 1200));
    await turns.signal(id, 'approval');
    await Promise.all([first.over, second.over]);
    for (const { events } of [first, second]) expect(events.map(({ type }) => type)).toEqual(['waiting', 'settled']);
  });

  it('TRN-32 TRN-14 at shutdown, streams end without a terminal event, and another process continues', async () => {
    const adapter = memoryAdapter();
    const { pass, open: release } = gate();
    const first = await start(adapter, async (turn) => {
      await turn.emit({ type: 'delta', data: 1 });
      await pass(turn.signal);
    });
    const web = await startApplication({ adapter, role: 'submit' });
    const { id } = await first.turns.submit('desk', 'go', { sessionId: await first.session() });
    const { events, over } = follow(web.turns, id);
    await eventually(() => events.length === 1);
    await web.close();
    await over;
    expect(events).toHaveLength(1);
    expect(await all(web.turns, id)).toEqual([]);
    release();
    expect(await all(first.turns, id, events[0].offset)).toMatchObject([{ offset: 2, type: 'settled' }]);
  });

  it('TRN-32 TRN-14 streams of turns that end within the grace get their end', async () => {
    const { pass, open: release } = gate();
    const adapter = memoryAdapter();
    const { turns } = adapter;
    // Slow like a server.
    const get: typeof turns.get = async (turnId) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return turns.get(turnId);
    };
    const app = await start(
      { ...adapter, turns: Object.assign(Object.create(turns) as typeof turns, { get }) },
      async (turn) => {
        await turn.emit({ type: 'delta', data: 1 });
        await pass();
      },
      { shutdownGraceMs: 10_000 },
    );
    const { id } = await app.turns.submit('desk', 'go', { sessionId: await app.session() });
    const { events, over } = follow(app.turns, id);
    await eventually(() => events.length === 1);
    const closed = app.close();
    release();
    await Promise.all([closed, over]);
    expect(events.map(({ type }) => type)).toEqual(['delta', 'settled']);
  });

  it('TRN-30 one that is behind when its turn is over gets all that comes before the end, also while the store is away', async () => {
    const base = memoryAdapter();
    let away = 0;
    const adapter = withRead(base, (...args) => {
      away -= 1;
      return away >= 0 ? Promise.reject(new StoreUnavailableError('away')) : base.events.read(...args);
    });
    const { turns, session } = await start(adapter, async (turn) => {
      for (let n = 1; n <= 1000; n += 1) await turn.emit({ type: 'delta', data: n });
    });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    await turns.result(id);
    const offsets: number[] = [];
    for await (const { offset } of turns.readEvents(id)) {
      offsets.push(offset);
      if (offset === 1 || offset === 500) away = 2;
    }
    expect(offsets).toEqual(Array.from({ length: 1001 }, (_, at) => at + 1));
  });

  it('TRN-32 TRN-14 one that is behind when the process stops and the store is away gets no end', async () => {
    const base = memoryAdapter();
    let away = false;
    const adapter = withRead(base, (...args) =>
      away ? Promise.reject(new StoreUnavailableError('closed')) : base.events.read(...args),
    );
    const { turns, session, close } = await start(adapter, async (turn) => {
      for (let n = 1; n <= 1000; n += 1) await turn.emit({ type: 'delta', data: n });
    });
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    await turns.result(id);
    const seen: TurnEvent[] = [];
    for await (const event of turns.readEvents(id)) {
      seen.push(event);
      if (away) continue;
      away = true;
      await close();
    }
    expect(seen.length).toBeGreaterThan(0);
    expect(seen.map(({ type }) => type)).toEqual(seen.map(() => 'delta'));
  });

  it('TRN-30 survives that every notification is lost', async () => {
    const adapter = memoryAdapter();
    const { turns, session } = await start({ ...adapter, changes: { subscribe: () => () => {} } }, emitWords);
    const { id } = await turns.submit('desk', 'go', { sessionId: await session() });
    expect(await all(turns, id)).toHaveLength(WORDS.length + 1);
  });
});

/** An application with one orchestrator that does `work`, then answers. */
function start(
  adapter: SessionsAdapter,
  work: (turn: TurnContext) => Promise<void> | void,
  turns: TurnsOptions = {},
): Promise<Application> {
  const desk = defineOrchestrator({
    name: 'desk',
    intents: { answer: async (turn) => (await work(turn), reply('done')) },
  });
  return startApplication({ adapter, orchestrators: [desk], turns });
}

function emitWords(turn: TurnContext): void {
  for (const text of WORDS) void turn.emit({ type: 'delta', data: { text } });
}

/** All events until the stream ends. */
async function all(turns: TurnService, turnId: string, after?: string | number): Promise<TurnEvent[]> {
  const events: TurnEvent[] = [];
  for await (const event of turns.readEvents(turnId, { after })) events.push(event);
  return events;
}

/** The events so far, and when the stream ends. */
function follow(
  turns: TurnService,
  turnId: string,
  signal?: AbortSignal,
): { events: TurnEvent[]; over: Promise<void> } {
  const events: TurnEvent[] = [];
  const read = async (): Promise<void> => {
    for await (const event of turns.readEvents(turnId, { signal })) events.push(event);
  };
  return { events, over: read() };
}

/** Places where a handler waits, and the gates that release it. */
function steps(count: number): [pass: (() => Promise<void>)[], release: (() => void)[]] {
  const gates = Array.from({ length: count }, () => gate());
  return [gates.map(({ pass }) => pass), gates.map(({ open }) => open)];
}

/** The same store with another way to append events. */
function withAppend(adapter: SessionsAdapter, append: SessionsAdapter['events']['append']): SessionsAdapter {
  const { events } = adapter;
  return { ...adapter, events: Object.assign(Object.create(events) as typeof events, { append }) };
}

/** The same store with another way to read events. */
function withRead(adapter: SessionsAdapter, read: SessionsAdapter['events']['read']): SessionsAdapter {
  const { events } = adapter;
  return { ...adapter, events: Object.assign(Object.create(events) as typeof events, { read }) };
}

/** The same store, which tells how many events each batch has. */
function noting(adapter: SessionsAdapter, noted: (size: number) => void): SessionsAdapter {
  return withAppend(adapter, (hold, batch, ttlMs) => {
    noted(batch.events.length);
    return adapter.events.append(hold, batch, ttlMs);
  });
}
