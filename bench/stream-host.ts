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
import { expectSame } from './wrong-answer.error.js';

const NAME = 'stream';
/** 200 tokens a second. */
export const EVERY_MS = 5;
const PAGE = 1000;

export interface StreamOptions {
  readonly url: string;
  readonly role: ProcessRole;
}

/** What a turn is to do. */
export interface Tokens {
  readonly count: number;
  /** Otherwise they are made and kept. */
  readonly emit: boolean;
}

export interface Token {
  readonly n: number;
  /** When it was made, by `clock`. */
  readonly at: number;
  readonly text: string;
}

@Module({})
class StreamModule {}

/** A Nest application whose turns make tokens. */
export class StreamHost {
  private app!: INestApplicationContext;
  private batches = 0;

  async open({ url, role }: StreamOptions): Promise<void> {
    const adapter = redisAdapter({ url, keyPrefix: 'bench-streams' });
    const append = adapter.events.append.bind(adapter.events);
    adapter.events.append = (...args) => {
      this.batches += 1;
      return append(...args);
    };
    const queue = bullmqQueue({ connection: { url }, prefix: 'bench-streams-queue' });
    const imports = [
      SessionsModule.forRoot({ role, adapter, turns: { queue } }),
      SessionsModule.forFeature([makingTokens()]),
    ];
    this.app = await NestFactory.createApplicationContext(
      { module: StreamModule, imports },
      { logger: ['error', 'fatal'] },
    );
  }

  /** @returns the id of a turn in a session of its own */
  async submit(tokens: Tokens): Promise<string> {
    const { id: sessionId } = await this.app.get(SessionStore, { strict: false }).create({ userId: 'somebody' });
    const { id } = await this.turns.submit(NAME, JSON.stringify(tokens), { sessionId });
    return id;
  }

  /** Every reader gets every token. @returns milliseconds from emit to reader, of each token and reader */
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

  /** @returns milliseconds that the turn took to make its tokens */
  async made(turnId: string): Promise<number> {
    return (await this.turns.result(turnId)).data as number;
  }

  /** Each token is stored once. @returns how many batches were written since the last time. @throws WrongAnswerError */
  async verify(turnId: string, count: number): Promise<number> {
    const { events } = this.app.get<SessionsAdapter>(SESSIONS_ADAPTER, { strict: false });
    const stored: number[] = [];
    for (let after = 0; after === stored.length; after += PAGE) {
      stored.push(...(await events.read(turnId, after, PAGE)).map(({ data }) => (data as { n: number }).n));
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

/** The same in every process of this machine, in milliseconds. */
export function clock(): number {
  return performance.timeOrigin + performance.now();
}

/** All of them, once, in order. @throws WrongAnswerError */
export function expectNumbers(what: string, found: readonly number[], count: number): void {
  expectSame(
    what,
    found,
    Array.from({ length: count }, (_, n) => n),
  );
}
