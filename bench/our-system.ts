import { type DynamicModule, type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  defineOrchestrator,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  SessionsModule,
  TurnService,
} from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { redisAdapter } from 'nestjs-agent-sessions/redis';
import { expectSame } from './wrong-answer.error.js';
import { type SystemOptions, type TurnSystem } from './turn-system.js';
import { type Load, type Witness } from './witness.js';

const NAME = 'no-op';
/** More than the number of turns in any session. */
const MAX_QUEUED = 10_000;
const PAGE = 1000;

/** A Nest application with the Redis store and the BullMQ queue. */
class OurSystem implements TurnSystem {
  private readonly turns: TurnService;
  private readonly adapter: SessionsAdapter;

  constructor(
    private readonly app: INestApplicationContext,
    private readonly load: Load,
  ) {
    this.turns = app.get(TurnService, { strict: false });
    this.adapter = app.get<SessionsAdapter>(SESSIONS_ADAPTER, { strict: false });
  }

  async prepare(sessions: number): Promise<void> {
    const now = new Date().toISOString();
    const blank = { state: 'created' as const, attachedSurfaces: [], metadata: {}, version: 1 };
    for (let session = 0; session < sessions; session += 1) {
      await this.adapter.sessions.insert({
        ...blank,
        id: idOf(session),
        userId: `user-${session}`,
        createdAt: now,
        lastActivityAt: now,
      });
    }
  }

  async submit(session: number, turn: number): Promise<void> {
    await this.turns.submit(NAME, String(turn), { sessionId: idOf(session) });
  }

  async execute(session: number, turn: number): Promise<void> {
    const { turnIndex } = await this.turns.execute(NAME, String(turn), { sessionId: idOf(session) });
    if (turnIndex !== turn) expectSame(`index of turn ${turn} of session ${session}`, turnIndex, turn);
  }

  async verify(): Promise<void> {
    for (const [session, turns] of this.load.entries()) await this.verifySession(idOf(session), turns);
  }

  close(): Promise<void> {
    return this.app.close();
  }

  private async verifySession(sessionId: string, turns: number): Promise<void> {
    const numbers = Array.from({ length: turns }, (_, turn) => turn);
    const stored = await this.adapter.turns.list({ sessionId, limit: PAGE });
    expectSame(
      `turns of ${sessionId}`,
      stored.map(({ position, status, turnIndex, request }) => [position, status, turnIndex, request.input.text]),
      numbers.map((turn) => [turn + 1, 'awaiting-input', turn, String(turn)]),
    );
    const settled = stored.map(({ settledAt }) => settledAt);
    expectSame(`order in which ${sessionId} settled`, settled, [...settled].sort());
    const messages = await this.adapter.conversations.page(sessionId, { limit: PAGE });
    expectSame(
      `log of ${sessionId}`,
      messages.map(({ content }) => content),
      numbers.map(String),
    );
  }
}

@Module({})
class NoOpModule {
  static with({ url, role, concurrency, witness }: SystemOptions): DynamicModule {
    const orchestrator = defineOrchestrator({
      name: NAME,
      // A no-op turn does not use the messages.
      historyWindow: 0,
      intents: {
        pass: ({ sessionId, input }) => witness.begin(sessionOf(sessionId), Number(input.text)),
      },
    });
    const queue = bullmqQueue({ connection: { url }, prefix: 'bench-ours-queue', concurrency });
    return {
      module: NoOpModule,
      imports: [
        SessionsModule.forRoot({
          role,
          adapter: witnessed(redisAdapter({ url, keyPrefix: 'bench-ours' }), witness),
          turns: { queue, maxQueuedPerSession: MAX_QUEUED },
        }),
        SessionsModule.forFeature([orchestrator]),
      ],
    };
  }
}

export async function openOurs(options: SystemOptions): Promise<TurnSystem> {
  const app = await NestFactory.createApplicationContext(NoOpModule.with(options), { logger: ['error', 'fatal'] });
  return new OurSystem(app, options.witness.load);
}

/** A turn has settled when the store has acknowledged it. */
function witnessed(adapter: SessionsAdapter, witness: Witness): SessionsAdapter {
  const { turns } = adapter;
  const settle = turns.settle.bind(turns);
  turns.settle = async (hold, ...rest) => {
    const settled = await settle(hold, ...rest);
    const session = sessionOf(hold.sessionId);
    witness.end(session);
    witness.settled(session);
    return settled;
  };
  return adapter;
}

function idOf(session: number): string {
  return `s${session}`;
}

function sessionOf(id: string): number {
  return Number(id.slice(1));
}
