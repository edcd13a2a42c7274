import { type Job, Queue, Worker } from 'bullmq';
import pg from 'pg';
import { CREATE_MESSAGE_TABLE, expectMessages, INSERT_MESSAGES } from './job-message-table.js';
import {
  answer,
  expectAnswer,
  expectStateBefore,
  type JobOptions,
  type JobState,
  type JobSystem,
  question,
  stateAfter,
  turnOf,
} from './job-system.js';
import { type CheckpointSaver, loadPeer, type PostgresSaverLibrary, putState, threadOf } from './langgraph-library.js';
import { expectSame } from './wrong-answer.error.js';

const QUEUE = 'jobs';

interface JobData {
  readonly session: number;
  readonly said: string;
}

/** BullMQ with LangGraph's checkpoints and a table of messages in PostgreSQL. The caller keeps the order by waiting for each answer. */
class BullmqAndPostgresSaver implements JobSystem {
  private readonly queue: Queue<JobData, string>;
  private readonly worker: Worker<JobData, string>;
  private readonly waiting = new Map<string, (answer: string) => void>();

  constructor(
    private readonly options: JobOptions,
    private readonly pool: pg.Pool,
    private readonly saver: CheckpointSaver,
  ) {
    const { places, concurrency, witness } = options;
    const connection = { connection: { url: places.redis }, prefix: 'bench-peer' };
    this.queue = new Queue(QUEUE, {
      ...connection,
      streams: { events: { maxLen: 1000 } },
      defaultJobOptions: { removeOnComplete: true },
    });
    this.worker = new Worker(QUEUE, (job) => this.work(job), { ...connection, concurrency });
    // The worker's own event is earlier than the event of QueueEvents.
    this.worker.on('completed', ({ data, id }, result) => {
      witness.settled(data.session);
      this.waiting.get(id!)?.(result);
    });
    this.worker.on('failed', (_, error) => witness.failed(error.message));
    this.worker.on('error', (error) => witness.failed(error.message));
  }

  async prepare(): Promise<void> {
    await Promise.all([this.queue.waitUntilReady(), this.worker.waitUntilReady()]);
  }

  async execute(session: number, turn: number): Promise<void> {
    const jobId = `${this.idOf(session)}.${turn}`;
    const completed = new Promise<string>((resolve) => this.waiting.set(jobId, resolve));
    await this.queue.add('turn', { session, said: question(turn) }, { jobId });
    const result = await completed;
    this.waiting.delete(jobId);
    expectAnswer(session, turn, result);
  }

  async verify(): Promise<void> {
    for (const [session, turns] of this.options.witness.load.entries()) {
      const id = this.idOf(session);
      const tuple = await this.saver.getTuple(threadOf(id));
      expectSame(`state of ${id}`, tuple?.checkpoint.channel_values.state, stateAfter(turns - 1));
      await expectMessages(this.pool, id, turns);
    }
  }

  async close(): Promise<void> {
    await this.worker.close();
    await this.queue.close();
    await this.pool.end();
  }

  private async work({ data: { session, said } }: Job<JobData, string>): Promise<string> {
    const { witness } = this.options;
    const [id, turn] = [this.idOf(session), turnOf(said)];
    witness.begin(session, turn);
    const before = await this.saver.getTuple(threadOf(id));
    const state = before?.checkpoint.channel_values.state as JobState | undefined;
    expectStateBefore(turn, id, state?.turn);
    const reply = answer(turn);
    await putState(this.saver, id, before, turn, stateAfter(turn));
    await this.pool.query(INSERT_MESSAGES, [id, 2 * turn, said, reply]);
    witness.end(session);
    return reply;
  }

  private idOf(session: number): string {
    return `${this.options.prefix}-${session}`;
  }
}

export async function openBullmqAndPostgresSaver(options: JobOptions): Promise<JobSystem> {
  const pool = new pg.Pool({ connectionString: options.places.database });
  const { PostgresSaver } = loadPeer<PostgresSaverLibrary>('@langchain/langgraph-checkpoint-postgres');
  const saver = new PostgresSaver(pool);
  await saver.setup();
  await pool.query(CREATE_MESSAGE_TABLE);
  return new BullmqAndPostgresSaver(options, pool, saver);
}
