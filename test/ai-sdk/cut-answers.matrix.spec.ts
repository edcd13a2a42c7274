import { type ModelMessage, type UIMessage } from 'ai';
import {
  defineOrchestrator,
  type SessionsAdapter,
  type SessionsModuleOptions,
  type TurnContext,
  TurnSettledError,
} from 'nestjs-agent-sessions';
import { type EmittedEvent } from 'nestjs-agent-sessions/adapter';
import { z } from 'zod';
import { streamReplyWith } from '../../lib/ai-sdk/stream-reply.js';
import { toUIMessages } from '../../lib/ai-sdk/ui-messages.js';
import { stoppedAnswer } from '../../lib/chat/stopped-message.js';
import { chunksOf } from '../../lib/chat/ui-events.js';
import { type Kill, KillableStores } from '../../lib/testing/chat/killable-stores.js';
import { marked as markedBy, rejections } from '../chat/provider-rules.js';
import { rejectedCalls } from '../conversation/histories.js';
import {
  aborted,
  type Application,
  type Gate,
  gate,
  LIVE_STORES,
  rejection,
  startApplication,
} from '../support/running-application.js';
import { CHAT_SDKS } from './fixtures/chat.js';
import { type ModelOptions, type Part, partsOf } from './fixtures/models.js';

const inputSchema = z.object({ id: z.string() });
const find = (id: string) => ({ id: `find-${id}`, name: 'find', input: { id } });

/** The steps of the answer. The second step's call fails. */
const STEPS: readonly (readonly Part[])[] = [
  reasoned(0, { text: 'One moment.', calls: [find('7'), find('8')] }),
  reasoned(1, { calls: [find('9')] }),
  reasoned(2, { text: 'Two have shipped.' }),
];

/** Returns the parts of an answer that begins with reasoning. Providers mark all parts. */
function reasoned(step: number, answer: Parameters<typeof partsOf>[0]): Part[] {
  const id = `${step}.reasoning`;
  const [start, metadata, ...rest] = partsOf(answer);
  const reasoning: Part[] = [
    { type: 'reasoning-start', id },
    { type: 'reasoning-delta', id, delta: 'Let me think.' },
    { type: 'reasoning-end', id, ...markedBy({ item: id }) } as unknown as Part,
  ];
  const isMarked = ({ type }: Part): boolean => type === 'text-start' || type === 'tool-call';
  const marks = markedBy({ item: `${step}.rest`, after: id });
  const marked = rest.map((part) => (isMarked(part) ? ({ ...part, ...marks } as unknown as Part) : part));
  return [start, metadata, ...reasoning, ...marked];
}

/** The turn of a session that is cut. */
interface CutTurn {
  readonly sessionId: string;
  readonly turnId: string;
  /** Sends the next message. */
  readonly next: (options?: object) => Promise<unknown>;
  readonly app: Application;
}

interface Ending {
  readonly name: string;
  /** True if the part of the answer that clients have seen stays. */
  readonly keeps: boolean;
  readonly turns?: SessionsModuleOptions['turns'];
  /** Ends the turn, whose handler is blocked, and sends the next message. */
  readonly end: (turn: CutTurn) => Promise<unknown>;
}

const ENDINGS: readonly Ending[] = [
  {
    name: 'a stop',
    keeps: true,
    end: ({ app, turnId, next }) => app.turns.cancel(turnId, { keep: true }).then(() => next()),
  },
  { name: 'a stop by the chat', keeps: true, end: (turn) => stop(turn).then(() => turn.next()) },
  { name: 'a cancel', keeps: false, end: ({ app, turnId, next }) => app.turns.cancel(turnId).then(() => next()) },
  { name: 'a message that interrupts', keeps: true, end: ({ next }) => next({ whenBusy: 'interrupt' }) },
  { name: 'a message that replaces', keeps: true, end: ({ next }) => next({ whenBusy: 'replace' }) },
  {
    name: 'a timeout',
    keeps: false,
    turns: { timeoutMs: 3000, retry: { attempts: 1 } },
    end: async ({ app, turnId, next }) => {
      await rejection(app.turns.result(turnId), Error);
      await next();
    },
  },
];

/** Stops a turn as the chat controller does. */
async function stop({ app, turnId }: CutTurn): Promise<void> {
  const shown = stoppedAnswer(chunksOf(await app.adapter.events.read(turnId, 0, 500)));
  await app.turns.cancel(turnId, { keep: shown ? [shown] : true });
}

/** The number of events after which clients have seen text. */
const SEEN = 8;

interface Cut {
  /** The number of events that are stored before the handler blocks. */
  readonly at: number;
  readonly reached: Gate;
  count: number;
}

describe.each(CHAT_SDKS.slice(0, 2))('streamReply with $name, if its turn is cut', ({ sdk, scripted }) => {
  const cuts = new Map<string, Cut>();
  /** The prompts of the answers to the next messages, by session. */
  const prompts = new Map<string, ModelOptions['prompt']>();

  const { model } = scripted((_, { prompt }) => {
    const at = prompt.findLastIndex(({ role }) => role === 'user');
    const [{ text }] = prompt[at].content as { text: string }[];
    if (text.startsWith('next ')) {
      prompts.set(text.slice('next '.length), prompt);
      return { text: 'Fine.' };
    }
    return STEPS[prompt.slice(at).filter(({ role }) => role === 'assistant').length];
  });

  const tool = sdk.tool({
    inputSchema,
    execute: ({ id }) => {
      if (id === '9') throw new Error('There is no order 9.');
      return 'shipped';
    },
  });
  const chat = defineOrchestrator({
    name: 'chat',
    intents: { answer: (turn) => streamReplyWith(sdk, cutting(turn), { model, tools: { find: tool } }) },
  });

  /** Returns a turn that stores each event before the next one is created, and blocks at the cut. */
  function cutting(turn: TurnContext): TurnContext {
    const cut = cuts.get(turn.input.text);
    if (!cut) return turn;
    const emit: TurnContext['emit'] = async (event: EmittedEvent) => {
      if (cut.count === cut.at) {
        cut.reached.open();
        await aborted(turn.signal);
      }
      cut.count += 1;
      await turn.emit(event);
      await turn.flush();
    };
    return { ...turn, emit };
  }

  async function start(adapter: SessionsAdapter, turns: SessionsModuleOptions['turns'] = {}): Promise<Application> {
    return startApplication({
      adapter,
      orchestrators: [chat],
      turns: { concurrency: 50, events: { batchMs: 0 }, ...turns },
    });
  }

  async function begin(app: Application, at: number): Promise<CutTurn & { readonly reached: Gate }> {
    const sessionId = await app.session();
    const reached = gate();
    cuts.set(sessionId, { at, reached, count: 0 });
    const { id: turnId } = await app.turns.submit('chat', sessionId, { sessionId });
    const next = (options?: object) => app.turns.execute('chat', `next ${sessionId}`, { sessionId, ...options });
    return { sessionId, turnId, next, app, reached };
  }

  /** Checks the conversation after the next message. */
  async function expectAccepted({ app, sessionId, turnId }: CutTurn, at: number): Promise<readonly unknown[]> {
    const steps = await app.adapter.turns.steps(turnId);
    const answers = steps.filter(({ name }) => name === 'model call').length;
    const isStored = (item: string): boolean => Number.parseInt(item, 10) < answers;
    const log = await app.adapter.conversations.page(sessionId);
    expect(log.at(-1)).toMatchObject({ role: 'assistant', content: [{}, { text: 'Fine.' }] });
    const bySdk = await sdk.convertToModelMessages(toUIMessages<UIMessage>(log));
    const prompt = prompts.get(sessionId) as unknown as ModelMessage[];
    expect({
      at,
      problems: [rejections(prompt, isStored), rejections(bySdk, isStored), rejectedCalls(log)].flat(),
    }).toEqual({ at, problems: [] });
    return log;
  }

  /** Returns the number of events of an answer that is not cut. */
  async function eventsOf(app: Application): Promise<number> {
    const { sessionId, turnId } = await begin(app, Infinity);
    await app.turns.result(turnId);
    return cuts.get(sessionId)!.count;
  }

  describe.each(LIVE_STORES)('over $name', ({ open }) => {
    it.each(ENDINGS)('AIS-30 answers the next message after $name at every chunk', async ({ keeps, turns, end }) => {
      const app = await start(open(), turns);
      const events = await eventsOf(app);
      expect(events).toBeGreaterThan(20);
      await Promise.all(
        Array.from({ length: events }, async (_, at) => {
          const turn = await begin(app, at);
          // On a slow machine, a turn times out at an earlier chunk.
          await Promise.race([turn.reached.pass(), app.turns.result(turn.turnId).catch(() => undefined)]);
          await end(turn);
          const log = await expectAccepted(turn, at);
          if (at >= SEEN) expect(log).toHaveLength(keeps ? 4 : 2);
        }),
      );
    });

    it('AIS-30 answers the next message after a crash at every write and a stop', async () => {
      const store = new KillableStores();
      const app = await start(store.wrap(open()));
      const first = await begin(app, Infinity);
      await app.turns.result(first.turnId);
      const kills = Array.from({ length: 2 * (store.writes(first.sessionId) - 1) }, (_, at): Kill => {
        return { at: 1 + (at >> 1), isStored: at % 2 === 0 };
      });
      await Promise.all(
        kills.map(async (kill, at) => {
          const sessionId = await app.session();
          const killed = gate();
          // The next attempt blocks at its first event.
          const then = (): void => {
            cuts.set(sessionId, { at: 0, reached: gate(), count: 0 });
            killed.open();
          };
          store.kill(sessionId, { ...kill, then });
          cuts.set(sessionId, { at: Infinity, reached: gate(), count: 0 });
          const { id: turnId } = await app.turns.submit('chat', sessionId, { sessionId });
          await killed.pass();
          const next = () => app.turns.execute('chat', `next ${sessionId}`, { sessionId });
          const turn = { sessionId, turnId, next, app };
          // The next attempt has nothing to add if clients have the whole answer.
          await stop(turn).catch((error: unknown) => expect(error).toBeInstanceOf(TurnSettledError));
          await turn.next();
          await expectAccepted(turn, at);
        }),
      );
    });
  });
});
