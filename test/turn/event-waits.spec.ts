import { lastValueFrom } from 'rxjs';
import {
  defineOrchestrator,
  reply,
  type SessionsAdapter,
  type Turn,
  type TurnContext,
  TurnFailedError,
  type TurnService,
} from 'nestjs-agent-sessions';
import { eventually } from '../support/eventually.js';
import { type Application, gate, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

/** The ways to wait for a submitted turn besides its result. */
const WAYS: readonly [name: string, wait: (turns: TurnService, turn: Turn) => Promise<unknown>][] = [
  ['readEvents', (turns, { id }) => readAll(turns.readEvents(id))],
  ['events', async (turns, { id }) => lastValueFrom(await turns.events(id))],
  ['lanes.drain', (turns, { sessionId }) => turns.lanes.drain({ sessionId }, { timeoutMs: 60_000 })],
];

describe.each(LIVE_STORES)('a handler that waits for another turn over $name', ({ open }) => {
  it.each(WAYS)('FIX-86 releases its slot while it waits by %s', async (_, wait) => {
    const { app, most } = await startDesk(open(), async (turns, child) => {
      await wait(turns, await turns.submit('desk', 'child', { sessionId: child }));
    });
    const result = await app.turns.execute('desk', 'parent', { sessionId: await app.session() });
    expect(result).toMatchObject({ reply: 'parent' });
    expect(most()).toBe(2);
  });

  it.each(WAYS)('FIX-86 refuses to wait by %s for a turn of its own session', async (_, wait) => {
    const { app } = await startDesk(open(), async (turns, __, { sessionId }) => {
      await wait(turns, await turns.submit('desk', 'child', { sessionId }));
    });
    const { failure } = await rejection(
      app.turns.execute('desk', 'parent', { sessionId: await app.session() }),
      TurnFailedError,
    );
    expect(failure).toMatchObject({ code: 'TURN_REENTRY' });
  });

  it.each(WAYS)('FIX-86 detects a cycle that is closed by %s', async (_, wait) => {
    let back: Turn | undefined;
    const { app } = await startDesk(open(), async (turns, child, { sessionId }) => {
      back = await turns.submit('desk', 'back', { sessionId: child, attributes: { parent: sessionId } });
      await wait(turns, back);
    });
    const parent = await app.turns.submit('desk', 'parent', { sessionId: await app.session() });
    await app.turns.result(parent.id).catch(() => undefined);
    // At least one fails because of the cycle. What waits for it may succeed.
    const errors = [await app.turns.get(parent.id), await app.turns.get(back?.id ?? '')].map(
      (turn) => turn?.error?.code,
    );
    expect(errors).toContain('TURN_REENTRY');
  });
});

describe('a handler that reads events', () => {
  it('FIX-86 receives them while the other turn runs, at concurrency 1', async () => {
    const { pass, open: finish } = gate();
    const { app } = await startDesk(undefined, async (turns, child, turn) => {
      if (turn.input.text === 'child') {
        await turn.emit({ type: 'delta', data: 1 });
        await pass();
        return;
      }
      for await (const { type } of turns.readEvents((await turns.submit('desk', 'child', { sessionId: child })).id)) {
        if (type === 'delta') finish();
      }
    });
    const result = await app.turns.execute('desk', 'parent', { sessionId: await app.session() });
    expect(result).toMatchObject({ reply: 'parent' });
  });

  it('FIX-86 takes its slot again when it stops reading', async () => {
    const { pass, open: finish } = gate();
    let running = 0;
    const { app } = await startDesk(undefined, async (turns, child, turn) => {
      if (turn.input.text === 'other') running += 1;
      if (turn.input.text === 'child') {
        await turn.emit({ type: 'delta', data: 1 });
        await pass();
      }
      if (turn.input.text !== 'parent') return;
      const { id } = await turns.submit('desk', 'child', { sessionId: child });
      const reading = (async () => {
        for await (const { type } of turns.readEvents(id)) if (type === 'delta') return;
      })();
      setTimeout(finish, 200);
      await reading;
      // The child has left its slot.
      expect((await turns.get(id))?.status).toBe('awaiting-input');
      await turns.submit('desk', 'other', { sessionId: await app.session() });
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(running).toBe(0);
    });
    const result = await app.turns.execute('desk', 'parent', { sessionId: await app.session() });
    expect(result).toMatchObject({ reply: 'parent' });
    await eventually(() => running === 1);
  });

  it('FIX-86 may read the events of its own turn in the background', async () => {
    const seen: unknown[] = [];
    let reading: Promise<void> | undefined;
    const { app } = await startDesk(undefined, async (turns, _, turn) => {
      reading = (async () => {
        for await (const { type } of turns.readEvents(turn.id)) seen.push(type);
      })();
      await turn.emit({ type: 'delta', data: 1 });
      await new Promise((resolve) => setTimeout(resolve, 50));
    });
    await app.turns.execute('desk', 'parent', { sessionId: await app.session() });
    await reading;
    expect(seen).toEqual(['delta', 'settled']);
  });
});

async function readAll(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

/** An application with one slot and one handler, which does the work with a session for its child. */
async function startDesk(
  adapter: SessionsAdapter | undefined,
  work: (turns: TurnService, child: string, turn: TurnContext) => Promise<void>,
) {
  const running = new Set<string>();
  let most = 0;
  let child = '';
  const desk = defineOrchestrator({
    name: 'desk',
    intents: {
      answer: async (turn) => {
        running.add(turn.id);
        most = Math.max(most, running.size);
        const { parent } = turn.attributes;
        if (typeof parent === 'string') await app.turns.execute('desk', 'child', { sessionId: parent });
        if (turn.input.text === 'parent' || adapter === undefined) await work(app.turns, child, turn);
        running.delete(turn.id);
        return reply(turn.input.text);
      },
    },
  });
  const app: Application = await startApplication({
    ...(adapter ? { adapter } : {}),
    orchestrators: [desk],
    turns: { concurrency: 1, timeoutMs: 30_000, retry: { attempts: 1 } },
  });
  child = await app.session();
  return { app, most: () => most };
}
