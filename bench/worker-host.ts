import { setTimeout as delay } from 'node:timers/promises';
import { type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createPostgresBackend } from 'bullmq';
import {
  defineOrchestrator,
  type ProcessRole,
  reply,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  SessionsModule,
  SessionStore,
  type TurnQueue,
  TurnService,
} from 'nestjs-agent-sessions';
import { bullmqQueue, type BullmqQueueOptions } from 'nestjs-agent-sessions/bullmq';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import { expectSame } from './wrong-answer.error.js';

const NAME = 'model';
/** A short version of a model's response time. */
const TURN_MS = 50;
/** Concurrent turns per process. */
const CONCURRENCY = 16;
const PAGE = 1000;

export interface WorkerOptions {
  readonly store: 'redis' | 'postgres';
  readonly url: string;
  /** The prefix of keys and tables. */
  readonly prefix: string;
  readonly role: ProcessRole;
}

@Module({})
class WorkerModule {}

/** A Nest application that submits turns, or one that runs them. BullMQ uses the server of the store. */
export class WorkerHost {
  private app!: INestApplicationContext;
  private sessions: string[] = [];

  async open(options: WorkerOptions): Promise<void> {
    const imports = [
      SessionsModule.forRoot({
        role: options.role,
        adapter: adapterOf(options),
        turns: { queue: queueOf(options) },
        sweep: false,
      }),
      SessionsModule.forFeature([waiting()]),
    ];
    this.app = await NestFactory.createApplicationContext(
      { module: WorkerModule, imports },
      { logger: ['error', 'fatal'] },
    );
  }

  async prepare(sessions: number): Promise<void> {
    const store = this.app.get(SessionStore, { strict: false });
    const created = Array.from({ length: sessions }, () => store.create({ userId: 'somebody' }));
    this.sessions = (await Promise.all(created)).map(({ id }) => id);
  }

  /** Every session has a caller that submits a turn when the previous one has returned its result. @returns milliseconds */
  async closedLoop(turns: number): Promise<number> {
    const service = this.app.get(TurnService, { strict: false });
    const startedAt = performance.now();
    const callers = this.sessions.map(async (sessionId) => {
      for (let turn = 0; turn < turns; turn += 1) {
        const { turnIndex } = await service.execute(NAME, String(turn), { sessionId });
        if (turnIndex !== turn) expectSame(`index of turn ${turn} of ${sessionId}`, turnIndex, turn);
      }
    });
    await Promise.all(callers);
    return performance.now() - startedAt;
  }

  /** Checks that all turns of the last loop ran in order, one after the other. @throws WrongAnswerError */
  async verify(turns: number): Promise<void> {
    const adapter = this.app.get<SessionsAdapter>(SESSIONS_ADAPTER, { strict: false });
    for (const sessionId of this.sessions) {
      const stored = await adapter.turns.list({ sessionId, limit: PAGE });
      expectSame(
        `turns of ${sessionId}`,
        stored.map(({ position, status, request }) => [position, status, request.input.text]),
        Array.from({ length: turns }, (_, turn) => [turn + 1, 'awaiting-input', String(turn)]),
      );
    }
  }

  close(): Promise<void> {
    return this.app.close();
  }
}

function waiting() {
  return defineOrchestrator({
    name: NAME,
    intents: {
      wait: async ({ input }) => {
        await delay(TURN_MS);
        return reply(input.text);
      },
    },
  });
}

function adapterOf({ store, url, prefix }: WorkerOptions): SessionsAdapter {
  if (store === 'redis') return redisAdapter({ url, keyPrefix: prefix });
  return typeormAdapter({ dataSource: { type: 'postgres', url }, tablePrefix: prefix, migrationsRun: true });
}

function queueOf({ store, url, prefix }: WorkerOptions): TurnQueue {
  const shared = { concurrency: CONCURRENCY };
  if (store === 'redis') return bullmqQueue({ ...shared, connection: { url }, prefix: `${prefix}queue` });
  const connection = { connectionString: url, schema: `${prefix}queue`, migrate: true };
  const options: unknown = { ...shared, connection, name: `${prefix}queue`, backendFactory: createPostgresBackend };
  return bullmqQueue(options as BullmqQueueOptions);
}
