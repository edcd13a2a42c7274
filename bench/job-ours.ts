import { type DynamicModule, type INestApplicationContext, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  defineOrchestrator,
  reply,
  SESSIONS_ADAPTER,
  type SessionsAdapter,
  SessionsModule,
  type SessionsModuleOptions,
  TurnService,
} from 'nestjs-agent-sessions';
import { bullmqQueue } from 'nestjs-agent-sessions/bullmq';
import { typeormAdapter } from 'nestjs-agent-sessions/typeorm';
import {
  answer,
  expectAnswer,
  expectStateBefore,
  type JobOptions,
  type JobState,
  type JobSystem,
  messagesOf,
  question,
  stateAfter,
  turnOf,
} from './job-system.js';
import { openTypeormLedger } from './typeorm-ledger.js';
import { type Witness } from './witness.js';
import { expectSame } from './wrong-answer.error.js';

const NAME = 'job';
const PAGE = 1000;

/** A Nest application. */
class OurJobs implements JobSystem {
  private readonly turns: TurnService;
  private readonly adapter: SessionsAdapter;

  constructor(
    private readonly app: INestApplicationContext,
    private readonly options: JobOptions,
    /** Closes the parts that the adapter does not close. */
    private readonly closeRest: () => Promise<void> = async () => {},
  ) {
    this.turns = app.get(TurnService, { strict: false });
    this.adapter = app.get<SessionsAdapter>(SESSIONS_ADAPTER, { strict: false });
  }

  async prepare(sessions: number): Promise<void> {
    const now = new Date().toISOString();
    const blank = { state: 'created' as const, attachedSurfaces: [], metadata: {}, version: 1 };
    for (let session = 0; session < sessions; session += 1) {
      const id = this.idOf(session);
      await this.adapter.sessions.insert({ ...blank, id, userId: 'somebody', createdAt: now, lastActivityAt: now });
    }
  }

  async execute(session: number, turn: number): Promise<void> {
    const { reply } = await this.turns.execute(NAME, question(turn), { sessionId: this.idOf(session) });
    expectAnswer(session, turn, reply);
  }

  async verify(): Promise<void> {
    for (const [session, turns] of this.options.witness.load.entries()) await this.verifySession(session, turns);
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.closeRest();
  }

  private async verifySession(session: number, turns: number): Promise<void> {
    const sessionId = this.idOf(session);
    const stored = await this.adapter.turns.list({ sessionId, limit: PAGE });
    expectSame(
      `turns of ${sessionId}`,
      stored.map(({ position, status, turnIndex, request }) => [
        position,
        status,
        turnIndex,
        turnOf(request.input.text),
      ]),
      Array.from({ length: turns }, (_, turn) => [turn + 1, 'awaiting-input', turn, turn]),
    );
    const checkpoint = await this.adapter.checkpoints.load(NAME, sessionId);
    expectSame(`state of ${sessionId}`, checkpoint?.state, stateAfter(turns - 1));
    const messages = await this.adapter.conversations.page(sessionId, { limit: PAGE });
    expectSame(
      `log of ${sessionId}`,
      messages.map(({ content }) => content),
      messagesOf(turns),
    );
  }

  private idOf(session: number): string {
    return `${this.options.prefix}-${session}`;
  }
}

@Module({})
class JobModule {
  static with(adapter: SessionsAdapter, turns: SessionsModuleOptions['turns'], { witness }: JobOptions): DynamicModule {
    const orchestrator = defineOrchestrator<JobState>({
      name: NAME,
      // The answer does not depend on the history, and the peers do not read it either.
      historyWindow: 0,
      keepCheckpoints: 'all',
      intents: {
        answer: ({ sessionId, input, state }) => {
          const turn = turnOf(input.text);
          witness.begin(sessionOf(sessionId), turn);
          expectStateBefore(turn, sessionId, state.turn);
          return reply(answer(turn), { state: stateAfter(turn) });
        },
      },
    });
    return {
      module: JobModule,
      imports: [
        SessionsModule.forRoot({ adapter: witnessed(adapter, witness), turns }),
        SessionsModule.forFeature([orchestrator]),
      ],
    };
  }
}

export async function openOurPostgres(options: JobOptions): Promise<JobSystem> {
  return open(postgresAdapter(options), { concurrency: options.concurrency }, options);
}

export async function openOurPostgresAndBullmq(options: JobOptions): Promise<JobSystem> {
  const { places, concurrency } = options;
  const queue = bullmqQueue({ connection: { url: places.redis }, prefix: 'bench-ours', concurrency });
  return open(postgresAdapter(options), { queue }, options);
}

export async function openOurSqlite(options: JobOptions): Promise<JobSystem> {
  const dataSource = { type: 'better-sqlite3', database: options.places.database } as const;
  const adapter = typeormAdapter({ dataSource, sqlite: { synchronous: 'FULL' } });
  return open(adapter, { concurrency: options.concurrency }, options);
}

export async function openOurMariadb(options: JobOptions): Promise<JobSystem> {
  return open(mariadbAdapter(options), { concurrency: options.concurrency }, options);
}

/** Our system with ordinary TypeORM transactions as the ledger's operations. */
export async function openTypeormTransactions(options: JobOptions): Promise<JobSystem> {
  const ours = mariadbAdapter(options);
  const { adapter, close } = await openTypeormLedger(ours, options.places.database);
  return open(adapter, { concurrency: options.concurrency }, options, close);
}

function postgresAdapter({ places }: JobOptions): SessionsAdapter {
  return typeormAdapter({ dataSource: { type: 'postgres', url: places.database }, migrationsRun: true });
}

function mariadbAdapter({ places }: JobOptions): SessionsAdapter {
  return typeormAdapter({ dataSource: { type: 'mariadb', url: places.database }, migrationsRun: true });
}

async function open(
  adapter: SessionsAdapter,
  turns: SessionsModuleOptions['turns'],
  options: JobOptions,
  closeRest?: () => Promise<void>,
): Promise<JobSystem> {
  const module = JobModule.with(adapter, turns, options);
  const app = await NestFactory.createApplicationContext(module, { logger: ['error', 'fatal'] });
  return new OurJobs(app, options, closeRest);
}

/** A turn ends when its settle is sent, because its caller may receive the result before this process receives the store's answer. */
function witnessed(adapter: SessionsAdapter, witness: Witness): SessionsAdapter {
  const { turns } = adapter;
  const settle = turns.settle.bind(turns);
  turns.settle = async (hold, ...rest) => {
    const session = sessionOf(hold.sessionId);
    witness.end(session);
    const settled = await settle(hold, ...rest);
    witness.settled(session);
    return settled;
  };
  return adapter;
}

function sessionOf(id: string): number {
  return Number(id.slice(id.lastIndexOf('-') + 1));
}
