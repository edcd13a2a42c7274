import {
  defineOrchestrator,
  type ConversationMessage,
  reply,
  type SessionsAdapter,
  StoreUnavailableError,
  TurnCancelledError,
} from 'nestjs-agent-sessions';
import { type ConversationLog } from 'nestjs-agent-sessions/adapter';
import { eventually } from '../support/eventually.js';
import { gate, LIVE_STORES, rejection, startApplication } from '../support/running-application.js';

interface Desk {
  readonly said?: readonly string[];
}

const summarize = (messages: readonly ConversationMessage[]): string =>
  messages.map(({ content, replaces }) => (replaces ? `(${content as string})` : (content as string))).join(' ');

describe.each(LIVE_STORES)('what may come between undo and fork over $name', ({ open }) => {
  it('BOT-25 TRN-08 retries an undo after a store failure, and applies it once', async () => {
    let failures = 0;
    const { sessionId, say, handle, seen } = await startDesk(
      disturbed(open(), async () => {
        failures += 1;
        if (failures <= 2) throw new StoreUnavailableError('Away for a moment.', { maybeApplied: false });
      }),
    );
    for (const text of ['a', 'b', 'c']) await say(text);

    expect(await handle.undo(sessionId)).toMatchObject({ turnIndex: 3 });
    expect(failures).toBe(3);
    expect(await handle.history(sessionId)).toMatchObject([{ state: { said: ['a', 'b'] } }, {}, {}, {}]);
    await say('d');
    expect(seen.at(-1)).toEqual(['a', 'to a', 'b', 'to b']);
  });

  it('BOT-25 TRN-06 TRN-09 an undo that is stopped has done nothing, and leaves no message', async () => {
    const passed = gate();
    let begun = 0;
    const { app, sessionId, say, handle } = await startDesk(
      disturbed(open(), () => {
        begun += 1;
        return passed.pass();
      }),
    );
    for (const text of ['a', 'b']) await say(text);
    const undo = rejection(handle.undo(sessionId), TurnCancelledError);
    await eventually(() => begun === 1);
    await handle.execute('c', { sessionId, whenBusy: 'interrupt' });
    await undo;
    passed.open();

    expect(await handle.history(sessionId)).toMatchObject([{ turnIndex: 2, state: { said: ['a', 'b', 'c'] } }, {}, {}]);
    const log = await app.adapter.conversations.page(sessionId);
    expect(log.map(({ content }) => content)).toEqual(['a', 'to a', 'b', 'to b', 'c', 'to c']);
    const turns = await app.turns.list({ sessionId });
    expect(turns.map(({ status }) => status)).toEqual(['awaiting-input', 'awaiting-input', 'cancelled', 'awaiting-input']); // prettier-ignore
  });

  it('BOT-25 BOT-43 ignores a summary of undone turns, and keeps a summary of earlier turns', async () => {
    const { sessionId, say, handle, seen } = await startDesk(open());
    const compact = () => handle.command('compact', { sessionId });
    for (const text of ['a', 'b', 'c']) await say(text);
    await compact();
    await handle.undo(sessionId);
    await say('d');
    expect(seen.at(-1)).toEqual(['a to a b to b']);

    for (let turns = 0; turns < 2; turns += 1) await handle.undo(sessionId);
    await say('e');
    expect(seen.at(-1)).toEqual(['a', 'to a']);
    await say('f');
    await compact();
    await say('g');
    expect(seen.at(-1)).toEqual(['a to a e to e', 'f', 'to f']);
  });

  it('BOT-25 excludes from a fork a turn that settles during the read', async () => {
    let late: (() => Promise<unknown>) | null = null;
    const { app, sessionId, say, handle } = await startDesk(
      disturbed(
        open(),
        () => Promise.resolve(),
        async (of) => {
          if (of !== sessionId) return;
          const turn = late;
          late = null;
          await turn?.();
        },
      ),
    );
    await say('a');
    late = () => say('late');
    const { id } = await handle.fork(sessionId);

    const log = await app.adapter.conversations.page(id);
    expect(log.map(({ content }) => content)).toEqual(['a', 'to a']);
    expect(await handle.history(sessionId)).toHaveLength(2);
  });

  it('BOT-25 copies the original messages behind a summary into a fork', async () => {
    const { app, sessionId, say, handle } = await startDesk(open());
    for (const text of ['a', 'b', 'c']) await say(text);
    await handle.command('compact', { sessionId });
    const { id } = await handle.fork(sessionId, { atTurn: 1 });

    const log = await app.adapter.conversations.page(id);
    expect(log.map(({ content }) => content)).toEqual(['a', 'to a', 'b', 'to b']);
  });
});

async function startDesk(adapter: SessionsAdapter) {
  const seen: unknown[][] = [];
  const desk = defineOrchestrator<Desk>({
    name: 'desk',
    compaction: { afterTurns: 100, keep: 2, summarize },
    intents: {
      answer: ({ input, state, history }) => {
        seen.push(history.map(({ content }) => content));
        return reply(`to ${input.text}`, { state: { said: [...(state.said ?? []), input.text] } });
      },
    },
  });
  const turns = { retry: { attempts: 5, backoff: { type: 'fixed', delayMs: 1 } } } as const;
  const app = await startApplication({ adapter, orchestrators: [desk], turns });
  const sessionId = await app.session();
  const handle = app.handle<Desk>(desk);
  return { app, sessionId, seen, handle, say: (text: string) => handle.execute(text, { sessionId }) };
}

/** The store, with something that happens when an undo looks at the end of the log, and a fork at the whole of it. */
function disturbed(
  adapter: SessionsAdapter,
  disturbance: () => Promise<void>,
  atPage: (sessionId: string) => Promise<void> = () => Promise.resolve(),
): SessionsAdapter {
  const { conversations } = adapter;
  const window: ConversationLog['window'] = async (...args) => {
    await disturbance();
    return conversations.window(...args);
  };
  const page: ConversationLog['page'] = async (sessionId, range) => {
    await atPage(sessionId);
    return conversations.page(sessionId, range);
  };
  const value = Object.assign(Object.create(conversations) as ConversationLog, { window, page });
  return Object.create(adapter, { conversations: { value } }) as SessionsAdapter;
}
