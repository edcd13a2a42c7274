import {
  defineOrchestrator,
  END_TURN,
  type MessageDraft,
  type OrchestratorHandle,
  reply,
  type TurnContext,
  turnOutcome,
  type TurnService,
} from 'nestjs-agent-sessions';
import { rejectedCalls } from '../conversation/histories.js';
import { eventually } from '../support/eventually.js';
import { aborted, type Gate, gate, LIVE_STORES, startApplication } from '../support/running-application.js';
import { ANSWER, called, isInterrupted, openIn } from './scripted-answer.js';

/** How a turn can end while its iteration `cut` runs, and what stays of it. */
interface Ending {
  readonly name: string;
  readonly keeps: boolean;
  readonly end: (
    turns: TurnService,
    turnId: string,
    next: (options?: object) => Promise<unknown>,
    cut: number,
  ) => Promise<unknown>;
}

const interrupting = (whenBusy: string, keeps: boolean): Ending => ({
  name: whenBusy,
  keeps,
  end: (_, __, next) => next({ whenBusy }),
});
const cancelling = (name: string, keep: (cut: number) => boolean | MessageDraft[], keeps: boolean): Ending => ({
  name,
  keeps,
  end: (turns, id, next, cut) => turns.cancel(id, { keep: keep(cut) }).then(() => next()),
});
const ENDINGS: readonly Ending[] = [
  interrupting('interrupt', true),
  interrupting('replace', true),
  interrupting('rollback', false),
  cancelling('cancel', () => false, false),
  cancelling('cancel that keeps the turn', () => true, true),
  cancelling('cancel that keeps messages', (cut) => ANSWER.slice(0, cut), true),
];

/** An agent whose iterations add the messages of the answer, until the one that must not end. */
function scriptedAgent() {
  const seen: TurnContext['history'][] = [];
  let cut = Infinity;
  let stop: (turn: TurnContext) => Promise<never> = ({ signal }) => aborted(signal);
  let reached: Gate = gate();
  const agent = defineOrchestrator({
    name: 'agent',
    iterate: true,
    route: ({ iteration, input }) => (input.text === 'next' || iteration < ANSWER.length ? 'act' : END_TURN),
    intents: {
      act: async (turn) => {
        const { iteration, input, history } = turn;
        if (input.text === 'next') {
          seen.push(history);
          return reply('Fine.', { status: 'completed' });
        }
        if (iteration === cut) {
          reached.open();
          return stop(turn);
        }
        return turnOutcome({ messages: [ANSWER[iteration]] });
      },
    },
  });
  const cutAt = (iteration: number, how?: typeof stop): Gate => {
    cut = iteration;
    if (how) stop = how;
    return (reached = gate());
  };
  return { agent, seen, cutAt };
}

describe.each(LIVE_STORES)('turns that are cut, on $name', ({ open }) => {
  it.each(ENDINGS)(
    'FIX-60 leaves a conversation that models accept, cut at every message ($name)',
    async ({ keeps, end }) => {
      const { agent, seen, cutAt } = scriptedAgent();
      const { handle, session, turns, adapter } = await startApplication({ adapter: open(), orchestrators: [agent] });
      for (let cut = 0; cut < ANSWER.length; cut += 1) {
        const sessionId = await session();
        const reached = cutAt(cut);
        const { id } = await handle(agent).submit('go', { sessionId });
        await reached.pass();
        await end(turns, id, (options) => handle(agent).execute('next', { sessionId, ...options }), cut);
        const history = seen.at(-1)!;
        const log = await adapter.conversations.page(sessionId);
        const kept = keeps ? ANSWER.slice(0, cut) : [];
        expect({ cut, rejected: [...rejectedCalls(history), ...rejectedCalls(log)] }).toEqual({ cut, rejected: [] });
        expect(history.filter(isInterrupted).map(({ toolCallId }) => toolCallId)).toEqual(openIn(kept));
        expect(log).toHaveLength((keeps ? 1 : 0) + kept.length + openIn(kept).length + 2);
        expect(new Set(log.map(({ id }) => id)).size).toBe(log.length);
      }
    },
  );

  it.each([
    { name: 'a failure', turns: { retry: { attempts: 1 } }, how: () => Promise.reject(new Error('broken')) },
    {
      name: 'a timeout',
      turns: { timeoutMs: 200, retry: { attempts: 1 } },
      how: ({ signal }: TurnContext) => aborted(signal),
    },
  ])(
    'FIX-60 leaves a conversation that models accept, cut at every message ($name)',
    async ({ turns: options, how }) => {
      const { agent, seen, cutAt } = scriptedAgent();
      const application = await startApplication({ adapter: open(), orchestrators: [agent], turns: options });
      for (let cut = 0; cut < ANSWER.length; cut += 1) {
        const sessionId = await application.session();
        cutAt(cut, how);
        await expect(application.handle(agent).execute('go', { sessionId })).rejects.toThrow();
        await application.handle(agent).execute('next', { sessionId });
        expect(rejectedCalls(seen.at(-1)!)).toEqual([]);
      }
    },
  );

  it('FIX-60 leaves a conversation that models accept if a turn is interrupted after a failed attempt', async () => {
    const { agent, seen, cutAt } = scriptedAgent();
    const { handle, session, turns, adapter } = await startApplication({
      adapter: open(),
      orchestrators: [agent],
      turns: { retry: { backoff: { delayMs: 1 } } },
    });
    for (let cut = 1; cut < ANSWER.length; cut += 1) {
      const sessionId = await session();
      let failed = false;
      const second = gate();
      cutAt(cut, ({ signal }) => {
        if (!failed) {
          failed = true;
          return Promise.reject(new Error('not yet'));
        }
        second.open();
        return aborted(signal);
      });
      const { id } = await handle(agent).submit('go', { sessionId });
      await second.pass();
      await turns.cancel(id, { keep: true });
      await eventually(async () => (await turns.get(id))?.status === 'cancelled');
      await handle(agent).execute('next', { sessionId });
      expect(rejectedCalls(seen.at(-1)!)).toEqual([]);
      expect(await adapter.conversations.page(sessionId)).toHaveLength(3 + cut + openIn(ANSWER.slice(0, cut)).length);
    }
  });
});

describe.each(LIVE_STORES)('calls of tools that the client runs, on $name', ({ open }) => {
  /** An agent that calls a tool of the client, and answers when its result comes. */
  async function clientAgent() {
    const seen: TurnContext['history'][] = [];
    const summarized: (readonly MessageDraft[])[] = [];
    const agent = defineOrchestrator({
      name: 'agent',
      intents: {
        act: ({ input, history }) => {
          seen.push(history);
          return input.text === 'go' ? turnOutcome({ messages: [called('here')] }) : reply('Fine.');
        },
      },
      compaction: {
        afterTurns: 1000,
        keep: 1,
        summarize: (messages) => {
          summarized.push(messages);
          return 'They spoke.';
        },
      },
    });
    const application = await startApplication({ adapter: open(), orchestrators: [agent] });
    const sessionId = await application.session();
    const handle: OrchestratorHandle = application.handle(agent);
    await handle.execute('go', { sessionId });
    return { ...application, sessionId, handle, seen, summarized };
  }

  const result = { type: 'tool-result', toolCallId: 'here', output: { place: 'Rome' } };

  it('FIX-60 stay open for the next message if it brings the result', async () => {
    const { handle, sessionId, seen } = await clientAgent();
    await handle.execute({ text: '', content: [result] }, { sessionId });
    expect(rejectedCalls(seen[1])).toEqual(['here has no result']);
    await handle.execute('next', { sessionId });
    expect(rejectedCalls(seen[2])).toEqual([]);
    expect(seen[2].filter(isInterrupted)).toEqual([]);
    expect(seen[2][2].content).toEqual([result]);
  });

  it('FIX-60 are interrupted if the next message brings no result, or it comes later', async () => {
    const { handle, sessionId, seen } = await clientAgent();
    await handle.execute('next', { sessionId });
    await handle.execute({ text: '', content: [result] }, { sessionId });
    await handle.execute('next', { sessionId });
    for (const history of seen.slice(1)) {
      expect(rejectedCalls(history)).toEqual([]);
      expect(history.filter(isInterrupted)).toHaveLength(1);
    }
  });

  it('FIX-60 are whole in the messages that are summarized', async () => {
    const { handle, sessionId, summarized } = await clientAgent();
    await handle.execute('next', { sessionId });
    await handle.command('compact', { sessionId });
    expect(summarized.flat().filter(isInterrupted)).toMatchObject([{ toolCallId: 'here', position: 2 }]);
    expect(rejectedCalls(summarized[0])).toEqual([]);
  });
});
