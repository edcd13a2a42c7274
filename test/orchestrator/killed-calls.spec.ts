import { type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import {
  type ConversationMessage,
  defineOrchestrator,
  type MessageDraft,
  type SubmitOptions,
  type TurnService,
} from 'nestjs-agent-sessions';
import { rejectedCalls } from '../conversation/histories.js';
import { forkProgram, kill } from '../support/child-process.js';
import { eventually } from '../support/eventually.js';
import { startApplication } from '../support/running-application.js';
import { adapterOf, type StoreOptions, SHARED_STORES } from '../support/stores.js';
import { ANSWER, isInterrupted, openIn } from './scripted-answer.js';

const PROGRAM = join(import.meta.dirname, 'fixtures/calling-worker.mjs');
const LONG = { limitMs: 60_000 };

/** Before the dispatch of each iteration, inside its step, and between the step and the end of the iteration. */
const PLACES = ANSWER.flatMap((_, cut) =>
  ['route', 'inside', 'after'].map((place) => ({ cut, stopsAt: `${place} ${cut}` })),
);

/** How a turn goes on whose worker was killed in the iteration `cut`. */
interface Ending {
  readonly name: string;
  /** The attempt that ends, or goes on: the killed one, or the one of the next worker. */
  readonly attempts: 1 | 2;
  readonly kept: (cut: number) => readonly MessageDraft[];
  /** Ends the turn, and submits the next one. */
  readonly end: (
    next: (options?: Partial<SubmitOptions>) => Promise<{ readonly id: string }>,
    turns: TurnService,
    turnId: string,
    cut: number,
  ) => Promise<{ readonly id: string }>;
}

const ENDINGS: readonly Ending[] = [
  { name: 'runs again', attempts: 1, kept: () => ANSWER, end: (next) => next() },
  { name: 'interrupt', attempts: 1, kept: () => [], end: (next) => next({ whenBusy: 'interrupt' }) },
  {
    name: 'cancel that keeps messages',
    attempts: 1,
    kept: (cut) => ANSWER.slice(0, cut),
    end: (next, turns, id, cut) => turns.cancel(id, { keep: ANSWER.slice(0, cut) }).then(() => next()),
  },
  {
    name: 'interrupt of the next attempt',
    attempts: 2,
    kept: (cut) => ANSWER.slice(0, cut),
    end: (next) => next({ whenBusy: 'interrupt' }),
  },
  {
    name: 'cancel of the next attempt that keeps the turn',
    attempts: 2,
    kept: (cut) => ANSWER.slice(0, cut),
    end: (next, turns, id) => turns.cancel(id, { keep: true }).then(() => next()),
  },
];

async function killInEveryIteration(store: StoreOptions): Promise<void> {
  let stopped = 0;
  async function startWorker(): Promise<ChildProcess> {
    const child = forkProgram(PROGRAM, { store, answer: ANSWER });
    let ready = false;
    child.on('message', (message) => {
      if (message === 'ready') ready = true;
      else stopped += 1;
    });
    await eventually(() => ready, LONG);
    return child;
  }

  const agent = defineOrchestrator({ name: 'agent', intents: { act: () => 'not here' } });
  const { adapter, session, turns } = await startApplication({
    adapter: adapterOf(store),
    orchestrators: [agent],
    role: 'submit',
  });
  const begun = await Promise.all(
    PLACES.flatMap(({ cut, stopsAt }) =>
      ENDINGS.map(async (ending) => {
        const sessionId = await session();
        const attributes = { stopsAt, attempts: ending.attempts };
        const { id } = await turns.submit('agent', 'go', { sessionId, attributes });
        const next = (options: Partial<SubmitOptions> = {}) => turns.submit('agent', 'next', { sessionId, ...options });
        return { cut, stopsAt, ending, sessionId, end: () => ending.end(next, turns, id, cut) };
      }),
    ),
  );
  const first = await startWorker();
  await eventually(() => stopped === begun.length, LONG);
  await kill(first);

  const nextTurns = new Map<string, { readonly id: string }>();
  const endAttempt = async (attempt: number): Promise<void> => {
    for (const { ending, sessionId, end } of begun) {
      if (ending.attempts === attempt) nextTurns.set(sessionId, await end());
    }
  };
  await endAttempt(1);
  await startWorker();
  const again = begun.filter(({ ending }) => ending.attempts === 2).length;
  await eventually(() => stopped === begun.length + again, LONG);
  await endAttempt(2);

  for (const { cut, stopsAt, ending, sessionId } of begun) {
    const { reply } = await turns.result(nextTurns.get(sessionId)!.id, { timeoutMs: 60_000 });
    const history = JSON.parse(reply!) as ConversationMessage[];
    const log = await adapter.conversations.page(sessionId);
    const kept = ending.kept(cut);
    const spoken = history.filter((message) => message.role !== 'user' && !isInterrupted(message));
    expect({
      ending: ending.name,
      stopsAt,
      rejected: [...rejectedCalls(history), ...rejectedCalls(log)],
      user: history.filter(({ role }) => role === 'user').map(({ content }) => content),
      spoken: spoken.map(describeCalls),
      interrupted: history.filter(isInterrupted).map(({ toolCallId }) => toolCallId),
    }).toEqual({
      ending: ending.name,
      stopsAt,
      rejected: [],
      user: ['go'],
      spoken: kept.map(describeCalls),
      interrupted: openIn(kept),
    });
  }
}

function describeCalls({ role, toolCalls = [], toolCallId = '' }: MessageDraft): string {
  return [role, ...toolCalls.map(({ id }) => id), toolCallId].join(' ');
}

const NAMES = SHARED_STORES.map(({ name }) => name).join(', ');

it(`FIX-60 leaves a conversation that models accept if the worker is killed at any point of an iteration (${NAMES})`, async () => {
  // The stores run in parallel, because most of the time is spent waiting for process starts and leases.
  await Promise.all(SHARED_STORES.map(({ place }) => killInEveryIteration(place())));
}, 120_000);
