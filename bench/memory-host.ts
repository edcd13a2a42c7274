import { once, setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import v8 from 'node:v8';
import { type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  defineOrchestrator,
  type JsonValue,
  reply,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  SessionsModule,
  TurnCancelledError,
  type TurnContext,
  TurnService,
  TurnWaitTimeoutError,
} from 'nestjs-agent-sessions';
import { expectSame, WrongAnswerError } from './wrong-answer.error.js';
import { adapterAt, type MemoryPlace, queueAt } from './memory-place.js';
import { words } from './text.js';

const NAME = 'memory';
/** Callers with a running turn, each with its own sessions. */
const CALLERS = 64;
const EVENTS = 4;
const POLL_MS = 5;
/** The time after a garbage collection until the memory is returned to the system. */
const REST_MS = 200;
const PAGE = 1000;

export interface MemoryUse {
  /** The resident set size of the process. */
  readonly rss: number;
  /** The heap after a garbage collection. */
  readonly heap: number;
}

/** The kinds of turns, which alternate in a session. @throws WrongAnswerError */
type Deed = (host: Caller, sessionId: string, text: string) => Promise<void>;

interface Caller {
  readonly turns: TurnService;
  /** A signal that lives as long as the process. */
  readonly signal: AbortSignal;
}

const answered: Deed = async ({ turns }, sessionId, text) => {
  const { reply: said } = await turns.execute(NAME, text, { sessionId });
  expectSame(`reply in ${sessionId}`, said, `did ${text}`);
};

const DEEDS: Readonly<Record<string, Deed>> = {
  say: answered,
  greet: answered,
  thank: answered,
  step: answered,
  watch: async ({ turns }, sessionId, text) => {
    const { id } = await turns.submit(NAME, text, { sessionId });
    const seen: JsonValue[] = [];
    for await (const { offset } of turns.readEvents(id)) seen.push(offset);
    expectSame(`events of ${id}`, seen.length, EVENTS + 1);
  },
  carry: async ({ turns, signal }, sessionId, text) => {
    const context = { handle: { of: sessionId, text } };
    const { reply: said } = await turns.execute(NAME, text, { sessionId, context, signal });
    expectSame(`reply in ${sessionId}`, said, `did ${text}`);
  },
  ask: async ({ turns }, sessionId, text) => {
    const { id } = await turns.submit(NAME, text, { sessionId, context: { of: sessionId } });
    while ((await turns.get(id))?.status !== 'waiting') await delay(POLL_MS);
    await turns.signal(id, 'answer', text);
    expectSame(`what ${id} was told`, (await turns.result(id)).reply, text);
  },
  leave: async ({ turns }, sessionId, text) => {
    const error: unknown = await turns
      .execute(NAME, text, { sessionId, timeoutMs: 1 })
      .catch((thrown: unknown) => thrown);
    if (!(error instanceof TurnWaitTimeoutError))
      throw new WrongAnswerError(`A caller waited for '${text}': ${String(error)}`);
    expectSame(`reply in ${sessionId}`, (await turns.result(error.turnId ?? '')).reply, `did ${text}`);
  },
  cancel: async ({ turns }, sessionId, text) => {
    const { id } = await turns.submit(NAME, text, { sessionId, context: { of: sessionId } });
    await turns.cancel(id);
    const error: unknown = await turns.result(id).catch((thrown: unknown) => thrown);
    if (!(error instanceof TurnCancelledError)) throw new WrongAnswerError(`Turn ${id} was not cancelled.`);
  },
  hold: async ({ turns }, sessionId, text) => {
    await turns.lanes.pause({ sessionId });
    const { id } = await turns.submit(NAME, text, { sessionId, context: { of: sessionId } });
    await turns.lanes.resume({ sessionId });
    expectSame(`reply in ${sessionId}`, (await turns.result(id)).reply, `did ${text}`);
  },
};

/** The number of turns after which the kinds repeat. */
export const KINDS = Object.keys(DEEDS);

@Module({})
class MemoryModule {}

/** A Nest application that accepts and runs turns in this process, and reports its memory. */
export class MemoryHost {
  private app!: INestApplicationContext;
  private readonly lasting = new AbortController();
  private ids = 0;
  /** The prefix of all ids. */
  private mark = '';

  async open(place: MemoryPlace): Promise<void> {
    // One slot per caller.
    setMaxListeners(0, this.lasting.signal);
    const queue = queueAt(place);
    const imports = [
      SessionsModule.forRoot({
        adapter: adapterAt(place),
        generateId: () => `${this.mark}-turn-${(this.ids += 1)}`,
        // The sweep's lease is a key that exists from the first sweep on.
        sweep: false,
        ...(queue ? { turns: { queue } } : {}),
      }),
      SessionsModule.forFeature([orchestrator()]),
    ];
    this.app = await NestFactory.createApplicationContext(
      { module: MemoryModule, imports },
      { logger: ['error', 'fatal'] },
    );
  }

  async prepare(mark: string, sessions: number): Promise<void> {
    const now = new Date().toISOString();
    for (let session = 0; session < sessions; session += 1) {
      await this.adapter.sessions.insert({
        id: idOf(mark, session),
        userId: `${mark}-user-${session}`,
        state: 'created',
        createdAt: now,
        lastActivityAt: now,
        attachedSurfaces: [],
        metadata: {},
        version: 1,
      });
    }
  }

  /** Runs one turn after the other in each session, starting with this number. @throws WrongAnswerError */
  async runTurns(mark: string, sessions: number, from: number, count: number): Promise<void> {
    this.mark = mark;
    const caller: Caller = { turns: this.turns, signal: this.lasting.signal };
    const callers = Array.from({ length: CALLERS }, async (_, first) => {
      for (let turn = from; turn < from + count; turn += 1) {
        for (let session = first; session < sessions; session += CALLERS) {
          const kind = kindOf(turn);
          await DEEDS[kind](caller, idOf(mark, session), `${kind} ${turn}`);
        }
      }
    });
    await Promise.all(callers);
  }

  /** Reads the memory while no turn is running. */
  async measure(): Promise<MemoryUse> {
    expectSame('lanes that are open', (await this.adapter.turns.lanes({})).lanes, []);
    expectSame('lanes that are due', await this.adapter.turns.due(PAGE), []);
    globalThis.gc?.();
    await delay(REST_MS);
    globalThis.gc?.();
    const { rss, heapUsed: heap } = process.memoryUsage();
    return { rss, heap };
  }

  async writeHeap(file: string): Promise<void> {
    v8.writeHeapSnapshot(file);
  }

  /** Checks that every turn is stored, in order. @throws WrongAnswerError */
  async verify(mark: string, sessions: number, count: number): Promise<void> {
    const wanted = Array.from({ length: count }, (_, turn) => {
      const kind = kindOf(turn);
      return [turn + 1, kind === 'cancel' ? 'cancelled' : 'awaiting-input', `${kind} ${turn}`];
    });
    for (let session = 0; session < sessions; session += 1) {
      const sessionId = idOf(mark, session);
      const stored = await this.adapter.turns.list({ sessionId, limit: PAGE });
      expectSame(
        `turns of ${sessionId}`,
        stored.map(({ position, status, request }) => [position, status, request.input.text]),
        wanted,
      );
    }
  }

  close(): Promise<void> {
    return this.app.close();
  }

  private get turns(): TurnService {
    return this.app.get(TurnService, { strict: false });
  }

  private get adapter(): SessionsAdapter {
    return this.app.get<SessionsAdapter>(SESSIONS_ADAPTER, { strict: false });
  }
}

function orchestrator() {
  const did = ({ input }: TurnContext) =>
    reply(`did ${input.text}`, { state: { note: words(250, input.text.length) } });
  return defineOrchestrator({
    name: NAME,
    route: ({ input }) => input.text.split(' ')[0],
    intents: {
      say: did,
      greet: did,
      thank: did,
      carry: did,
      hold: did,
      step: async (turn) => {
        await turn.step('look up', () => ({ found: words(200, turn.turnIndex) }));
        return did(turn);
      },
      watch: async (turn) => {
        for (let n = 0; n < EVENTS; n += 1) await turn.emit({ type: 'token', data: { n, text: 'token ' } });
        return did(turn);
      },
      ask: async (turn) => reply(await turn.waitFor<string>('answer')),
      leave: async (turn) => {
        await delay(POLL_MS);
        return did(turn);
      },
      cancel: async ({ signal }) => {
        if (!signal.aborted) await once(signal, 'abort');
        throw signal.reason;
      },
    },
  });
}

function kindOf(turn: number): string {
  return KINDS[turn % KINDS.length];
}

function idOf(mark: string, session: number): string {
  return `${mark}-lane-${session}`;
}
