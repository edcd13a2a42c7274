import { createRequire } from 'node:module';
import pg from 'pg';
import { BENCH } from './chart-library.js';
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
import { expectSame } from './wrong-answer.error.js';

/** The parts of DBOS that the benchmarks use. */
interface Dbos {
  setConfig(config: object): void;
  launch(): Promise<void>;
  shutdown(): Promise<void>;
  registerQueue(name: string, options: object): Promise<unknown>;
  registerWorkflow<A extends unknown[], R>(
    work: (...args: A) => Promise<R>,
    options: object,
  ): (...args: A) => Promise<R>;
  startWorkflow<A extends unknown[], R>(
    workflow: (...args: A) => Promise<R>,
    options: object,
  ): (...args: A) => Promise<{ getResult(options: object): Promise<R> }>;
  runStep<R>(work: () => Promise<R>, options: { readonly name: string }): Promise<R>;
}

const QUEUE = 'jobs';
const DATABASE = 'bench_dbos';
/** The interval at which DBOS polls its database for work and results; its default is one second. */
const POLL_MS = 10;

/** A queue with a partition per session and one workflow at a time in each, and tables for state and messages. */
class DbosJobs implements JobSystem {
  constructor(
    private readonly dbos: Dbos,
    private readonly workflow: (session: number, said: string) => Promise<string>,
    private readonly options: JobOptions,
    private readonly pool: pg.Pool,
  ) {}

  async prepare(): Promise<void> {}

  async execute(session: number, turn: number): Promise<void> {
    const start = this.dbos.startWorkflow(this.workflow, {
      queueName: QUEUE,
      workflowID: `${this.idOf(session)}.${turn}`,
      enqueueOptions: { queuePartitionKey: this.idOf(session) },
    });
    const handle = await start(session, question(turn));
    const result = await handle.getResult({ pollingIntervalMs: POLL_MS });
    expectAnswer(session, turn, result);
    this.options.witness.settled(session);
  }

  async verify(): Promise<void> {
    for (const [session, turns] of this.options.witness.load.entries()) {
      const id = this.idOf(session);
      expectSame(`state of ${id}`, await this.stateOf(id), stateAfter(turns - 1));
      await expectMessages(this.pool, id, turns);
    }
  }

  async close(): Promise<void> {
    await this.dbos.shutdown();
    await this.pool.end();
  }

  /** The workflow: two steps with stored results. */
  async work(session: number, said: string): Promise<string> {
    const { witness } = this.options;
    const [id, turn] = [this.idOf(session), turnOf(said)];
    witness.begin(session, turn);
    const before = await this.dbos.runStep(async () => (await this.stateOf(id))?.turn, { name: 'read' });
    expectStateBefore(turn, id, before);
    const reply = answer(turn);
    await this.dbos.runStep(() => this.store(id, turn, said, reply), { name: 'store' });
    witness.end(session);
    return reply;
  }

  private async stateOf(id: string): Promise<JobState | undefined> {
    const { rows } = await this.pool.query<{ state: string }>('SELECT state FROM dbos_state WHERE session_id = $1', [
      id,
    ]);
    return rows.length === 0 ? undefined : (JSON.parse(rows[0].state) as JobState);
  }

  /** Stores state and messages in one commit. */
  private async store(id: string, turn: number, said: string, reply: string): Promise<void> {
    await this.pool.query(
      `WITH kept AS (
         INSERT INTO dbos_state (session_id, state) VALUES ($1, $5)
         ON CONFLICT (session_id) DO UPDATE SET state = excluded.state)
       ${INSERT_MESSAGES}`,
      [id, 2 * turn, said, reply, JSON.stringify(stateAfter(turn))],
    );
  }

  private idOf(session: number): string {
    return `${this.options.prefix}-${session}`;
  }
}

/** The systems of the running slice. A workflow is registered once per process. */
let jobs: DbosJobs | null = null;
let workflow: ((session: number, said: string) => Promise<string>) | null = null;

export async function openDbos(options: JobOptions): Promise<JobSystem> {
  const { DBOS } = createRequire(BENCH)('@dbos-inc/dbos-sdk') as { DBOS: Dbos };
  const { database } = options.places;
  const pool = new pg.Pool({ connectionString: database });
  await pool.query(
    `CREATE TABLE IF NOT EXISTS dbos_state (session_id text PRIMARY KEY, state text NOT NULL); ${CREATE_MESSAGE_TABLE}`,
  );
  workflow ??= DBOS.registerWorkflow((session: number, said: string) => jobs!.work(session, said), { name: 'answer' });
  const url = new URL(database);
  url.pathname = DATABASE;
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url.href, logLevel: 'error' });
  await DBOS.launch();
  await DBOS.registerQueue(QUEUE, {
    partitionConcurrency: 1,
    workerConcurrency: options.concurrency,
    minPollingIntervalMs: POLL_MS,
  });
  jobs = new DbosJobs(DBOS, workflow, options, pool);
  return jobs;
}
