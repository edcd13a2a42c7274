import {
  defineOrchestrator,
  memoryAdapter,
  reply,
  type SessionsAdapter,
  TurnCancelledError,
  type TurnContext,
  type TurnEvent,
  type TurnService,
  type TurnsOptions,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import {
  type Application,
  gate,
  LASTING_STORES,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';

/** SQLite has one worker process at a time. */
const SEVERAL_PROCESSES = LASTING_STORES.filter(({ name }) => name !== 'sqlite');

describe.each(LIVE_STORES)('a revoked session over $name', ({ open }) => {
  it('NST-18 its running turn is aborted, those behind it are cancelled, and nothing brings it back', async () => {
    const signals: AbortSignal[] = [];
    const app = await start(open(), async (turn) => {
      signals.push(turn.signal);
      await new Promise((resolve) => turn.signal.addEventListener('abort', resolve));
    });
    const sessionId = await app.session();
    const first = app.turns.execute('desk', 'first', { sessionId });
    const second = app.turns.execute('desk', 'second', { sessionId });
    const ends = [first, second].map((turn) => rejection(turn, TurnCancelledError));
    await eventually(async () => signals.length === 1 && (await app.turns.list({ sessionId })).length === 2);

    const [revoked] = await app.sessions.revokeAll('ann');
    await Promise.all(ends);

    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(await app.sessions.get(sessionId)).toEqual(revoked);
    expect(await app.adapter.conversations.page(sessionId)).toEqual([]);
    await expect(app.turns.submit('desk', 'third', { sessionId })).rejects.toMatchObject({ code: 'SESSION_STATE' });
  });
});

describe.each(SEVERAL_PROCESSES)('the events of a turn whose session is revoked, over $name', ({ create }) => {
  it('NST-18 every open stream ends, also in another process, while the handler does not listen and its worker has not heard', async () => {
    const open = create();
    const { pass, open: release } = gate();
    const worker = await start(deaf(open()), async (turn) => {
      await turn.emit({ type: 'delta', data: 'before' });
      await pass();
    });
    const web = await startApplication({ adapter: open(), role: 'submit' });
    const { id, sessionId } = await worker.turns.submit('desk', 'go', { sessionId: await worker.session() });
    const streams = [worker, web].map(({ turns }) => follow(turns, id));
    await eventually(() => streams.every(({ events }) => events.length === 1));

    await web.sessions.revoke(sessionId);
    await Promise.all(streams.map(({ over }) => over));

    expect(await web.turns.get(id)).toMatchObject({ status: 'running', cancelMode: 'cancel' });
    for (const { events } of streams) expect(events).toMatchObject([{ type: 'delta' }]);
    // Nor does one that begins now show what is stored.
    for (const { turns } of [worker, web]) {
      const late = follow(turns, id);
      await late.over;
      expect(late.events).toEqual([]);
      await new Promise<void>((resolve, reject) => {
        turns.events(id).then((messages) => messages.subscribe({ error: reject, complete: resolve }), reject);
      });
    }
    release();
  });
});

describe('the events of a turn', () => {
  it('NST-18 continue while the turn is only asked to stop, or its session only expires', async () => {
    const { pass, open: release } = gate();
    const adapter = deaf(memoryAdapter());
    const app = await start(adapter, async (turn) => {
      await turn.emit({ type: 'delta', data: 'before' });
      await pass();
      await turn.emit({ type: 'delta', data: 'after' });
    });
    const submit = async () => app.turns.submit('desk', 'go', { sessionId: await app.session() });
    const [cancelled, expired] = [await submit(), await submit()];
    const streams = [cancelled, expired].map(({ id }) => follow(app.turns, id));
    await eventually(() => streams.every(({ events }) => events.length === 1));

    await app.turns.cancel(cancelled.id);
    await app.sessions.expire(expired.sessionId);
    const web = await startApplication({ adapter, role: 'submit' });
    const late = [cancelled, expired].map(({ id }) => follow(web.turns, id));
    await eventually(() => late.every(({ events }) => events.length === 1));
    release();
    await Promise.all([...streams, ...late].map(({ over }) => over));

    for (const { events } of [...streams, ...late]) {
      expect(events.map(({ type }) => type)).toEqual(['delta', 'delta', 'settled']);
    }
  });

  it('NST-18 end with the terminal event where the turn has ended with its session', async () => {
    const { pass, open: release } = gate();
    const app = await start(memoryAdapter(), () => pass());
    const sessionId = await app.session();
    await app.turns.submit('desk', 'first', { sessionId });
    const queued = await app.turns.submit('desk', 'second', { sessionId });
    const { events, over } = follow(app.turns, queued.id);
    await app.sessions.revoke(sessionId);
    await over;
    release();

    expect(events).toMatchObject([{ type: 'settled', data: { status: 'cancelled' } }]);
  });
});

/** A process that believes to hear of everything and hears of nothing; its worker does not renew its lease soon either. */
function deaf(adapter: SessionsAdapter): SessionsAdapter {
  return { ...adapter, changes: { reach: 'store', subscribe: () => () => undefined } };
}

function start(
  adapter: SessionsAdapter,
  work: (turn: TurnContext) => Promise<void>,
  turns: TurnsOptions = { leaseMs: 120_000 },
): Promise<Application> {
  const desk = defineOrchestrator({
    name: 'desk',
    intents: { answer: async (turn) => (await work(turn), reply('done')) },
  });
  return startApplication({ adapter, orchestrators: [desk], turns });
}

/** The events so far, and when the stream ends. */
function follow(turns: TurnService, turnId: string): { events: TurnEvent[]; over: Promise<void> } {
  const events: TurnEvent[] = [];
  const read = async (): Promise<void> => {
    for await (const event of turns.readEvents(turnId)) events.push(event);
  };
  return { events, over: read() };
}
