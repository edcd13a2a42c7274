import { setTimeout as delay } from 'node:timers/promises';
import { type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  defineOrchestrator,
  type ProcessRole,
  reply,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  SessionsModule,
  SessionStore,
  TurnService,
} from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { expectSame } from './wrong-answer.error.js';

const NAME = 'stream';
/** 200 tokens per second. */
export const EVERY_MS = 5;
const PAGE = 1000;

export interface StreamOptions {
  /** The URL of the store: Redis or PostgreSQL. */
  readonly store: string;
  /** The URL of the Redis of the queue. */
  readonly queue: string;
  readonly role: ProcessRole;
  /** Separates applications that share the servers. */
  readonly prefix: string;
  /** Default: the module's. */
  readonly batchMs?: number;
}

/** The tasks of a turn. */
export interface Tokens {
  readonly count: number;
  /** Whether to stream the tokens; otherwise they are created and stored. */
  readonly emit: boolean;
}

export interface Token {
  readonly n: number;
  /** When the token was emitted, by `clock`. */
  readonly at: number;
  readonly text: string;
}

@Module({})
class StreamModule {}

/** A Nest application whose turns emit tokens. */
export class StreamHost {
  private app!: INestApplicationContext;
  private batches = 0;

  async open({ store, queue: url, role, prefix, batchMs }: StreamOptions): Promise<void> {
    const adapter = adapterFor(store, prefix);
    const append = adapter.events.append.bind(adapter.events);
    adapter.events.append = (...args) => {
      this.batches += 1;
      return append(...args);
    };
    const queue = bullmqQueue({ connection: { url }, prefix: `${prefix}-queue` });
    const imports = [
      SessionsModule.forRoot({
        role,
        adapter,
        turns: { queue, ...(batchMs === undefined ? {} : { events: { batchMs } }) },
      }),
      SessionsModule.forFeature([makingTokens()]),
    ];
    this.app = await NestFactory.createApplicationContext(
      { module: StreamModule, imports },
      { logger: ['error', 'fatal'] },
    );
  }

  /** @returns the id of a turn in a new session */
  async submit(tokens: Tokens): Promise<string> {
    const { id: sessionId } = await this.app.get(SessionStore, { strict: false }).create({ userId: 'somebody' });
    const { id } = await this.turns.submit(NAME, JSON.stringify(tokens), { sessionId });
    return id;
  }

  /** Reads every token with every reader. @returns the milliseconds from emit to reader, per token and reader */
  async read(turnId: string, readers: number, count: number): Promise<number[]> {
    const lags: number[] = [];
    const read = async (): Promise<void> => {
      const seen: number[] = [];
      for await (const { type, data } of this.turns.readEvents(turnId)) {
        const now = clock();
        if (type !== 'token') continue;
        const { n, at } = data as unknown as Token;
        seen.push(n);
        lags.push(now - at);
      }
      expectNumbers('tokens that a reader got', seen, count);
    };
    await Promise.all(Array.from({ length: readers }, read));
    return lags;
  }

  /** @returns the milliseconds until the turn had emitted its tokens */
  async made(turnId: string): Promise<number> {
    return (await this.turns.result(turnId)).data as number;
  }

  /** Checks that each token is stored once. @returns the number of batches since the last check. @throws WrongAnswerError */
  async verify(turnId: string, count: number): Promise<number> {
    const { events } = this.app.get<SessionsAdapter>(SESSIONS_ADAPTER, { strict: false });
    const stored: number[] = [];
    for (let page = PAGE; page >= PAGE;) {
      const read = await events.read(turnId, stored.length, PAGE);
      stored.push(...read.map(({ data }) => (data as { n: number }).n));
      page = read.length;
    }
    expectNumbers('tokens that are stored', stored, count);
    const { batches } = this;
    this.batches = 0;
    return batches;
  }

  close(): Promise<void> {
    return this.app.close();
  }

  private get turns(): TurnService {
    return this.app.get(TurnService, { strict: false });
  }
}

function adapterFor(url: string, prefix: string): SessionsAdapter {
  if (url.startsWith('redis:')) return redisAdapter({ url, keyPrefix: prefix });
  return typeormAdapter({ dataSource: { type: 'postgres', url }, tablePrefix: `${prefix}_`, migrationsRun: true });
}

function makingTokens() {
  return defineOrchestrator({
    name: NAME,
    intents: {
      stream: async (turn) => {
        const { count, emit } = JSON.parse(turn.input.text) as Tokens;
        const startedAt = performance.now();
        for (let n = 0; n < count; n += 1) {
          await delay(EVERY_MS);
          if (emit) await turn.emit({ type: 'token', data: { n, at: clock(), text: 'token ' } });
        }
        return reply('done', { data: performance.now() - startedAt });
      },
    },
  });
}

/** Returns milliseconds that are comparable between the processes of this machine. */
export function clock(): number {
  return performance.timeOrigin + performance.now();
}

/** Checks that all tokens exist once, in order. @throws WrongAnswerError */
export function expectNumbers(what: string, found: readonly number[], count: number): void {
  expectSame(
    what,
    found,
    Array.from({ length: count }, (_, n) => n),
  );
}
