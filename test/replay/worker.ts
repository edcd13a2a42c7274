/**
 * The worker process, which the parent kills: an application that handles the parent's calls over the IPC
 * channel and ends with it.
 */
import 'reflect-metadata';
import { once } from 'node:events';
import { join } from 'node:path';
import { Inject, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  InjectOrchestrator,
  memoryAdapter,
  type ConversationMessage,
  OrchestratorHandle,
  SessionConflictError,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  SessionsModule,
  SessionStore,
  type Turn,
  TurnService,
} from 'nestjs-agent-sessions';
import { adapterOf } from '../support/connections.js';
import { queueAt } from '../support/queues.js';
import { readAll } from '../support/read-all.js';
import { EffectLog } from './effect-log.js';
import { toInput } from './message-mapping.js';
import { readRecords } from './record.js';
import { Recorded, Recording } from './recorded.orchestrator.js';
import {
  effectFile,
  type StoredConversation,
  type WorkerCalls,
  type WorkerMessage,
  type WorkerRequest,
  type WorkerSetup,
} from './worker-calls.js';

const setup = JSON.parse(process.argv[2]) as WorkerSetup;
const recording = new Recording(readRecords(setup.file));

@Injectable()
class Replay implements WorkerCalls {
  constructor(
    private readonly sessions: SessionStore,
    private readonly turns: TurnService,
    @InjectOrchestrator(Recorded) private readonly recorded: OrchestratorHandle,
    @Inject(SESSIONS_ADAPTER) private readonly store: SessionsAdapter,
  ) {}

  async ping(): Promise<void> {}

  async submit(conversation: string, turn: number): Promise<string> {
    if (turn === 0) await this.open(conversation);
    const { id } = await this.recorded.submit(toInput(recording.turn(conversation, turn).user), {
      sessionId: conversation,
      idempotencyKey: `turn ${turn}`,
    });
    return id;
  }

  async settled(turnId: string): Promise<void> {
    await this.turns.result(turnId);
  }

  async read(conversation: string): Promise<StoredConversation> {
    return {
      messages: await readAll<ConversationMessage>((last, limit) =>
        this.store.conversations.page(conversation, { after: last?.position ?? 0, limit }),
      ),
      turns: await readAll<Turn>((last, limit) =>
        this.turns.list({ sessionId: conversation, after: last?.position ?? 0, limit }),
      ),
    };
  }

  private async open(id: string): Promise<void> {
    try {
      await this.sessions.create({ id, userId: 'recorded' });
    } catch (error) {
      // An earlier worker created it and was killed before it could answer.
      if (!(error instanceof SessionConflictError)) throw error;
    }
  }
}

@Module({
  imports: [
    SessionsModule.forRoot({
      adapter: setup.store ? adapterOf(setup.store) : memoryAdapter(),
      role: setup.role,
      turns: {
        // Kills may end many attempts of a turn without being caused by it.
        retry: { maxLost: 1000, backoff: { type: 'fixed', delayMs: 100 } },
        // Short, so that the lane of a killed worker is soon free.
        leaseMs: 1000,
        ...(setup.queue ? { queue: queueAt(setup.queue, setup.concurrency) } : { concurrency: setup.concurrency }),
      },
    }),
    SessionsModule.forFeature([Recorded]),
  ],
  providers: [
    Replay,
    { provide: Recording, useValue: recording },
    { provide: EffectLog, useValue: new EffectLog(join(setup.folder, effectFile)) },
  ],
})
class WorkerModule {}

function send(message: WorkerMessage): void {
  // Ignore errors: the parent may have ended.
  process.send?.(message, undefined, undefined, () => undefined);
}

const parentGone = once(process, 'disconnect');
const app = await NestFactory.createApplicationContext(WorkerModule, { logger: ['warn', 'error'] });
const replay = app.get(Replay);

process.on('message', ({ id, method, args }: WorkerRequest) => {
  const call = Reflect.get(replay, method) as (...args: readonly unknown[]) => Promise<unknown>;
  Reflect.apply(call, replay, args).then(
    (value) => send({ type: 'result', id, value }),
    (error: unknown) => send({ type: 'error', id, message: String(error) }),
  );
});
send({ type: 'ready' });
await parentGone;
await app.close();
