import { type Database } from 'better-sqlite3';
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
} from './job-system.js';
import {
  type CheckpointSaver,
  loadPeer,
  type PQueueLibrary,
  putState,
  type SqliteSaverLibrary,
  threadOf,
} from './langgraph-library.js';
import { expectSame } from './wrong-answer.error.js';

type PQueue = InstanceType<PQueueLibrary['default']>;

/** A queue of p-queue per session, with LangGraph's checkpoints and a table of messages in a SQLite file. */
class PQueueAndSqliteSaver implements JobSystem {
  private readonly queues = new Map<number, PQueue>();
  private readonly append: (id: string, turn: number, said: string, reply: string) => void;

  constructor(
    private readonly options: JobOptions,
    private readonly saver: CheckpointSaver & { readonly db: Database },
    private readonly newQueue: () => PQueue,
  ) {
    const insert = saver.db.prepare(
      'INSERT INTO bench_message (session_id, position, role, content) VALUES (?, ?, ?, ?)',
    );
    this.append = saver.db.transaction((id: string, turn: number, said: string, reply: string) => {
      insert.run(id, 2 * turn, 'user', said);
      insert.run(id, 2 * turn + 1, 'assistant', reply);
    });
  }

  async prepare(): Promise<void> {}

  async execute(session: number, turn: number): Promise<void> {
    let queue = this.queues.get(session);
    if (!queue) this.queues.set(session, (queue = this.newQueue()));
    const reply = await queue.add(() => this.work(session, turn, question(turn)));
    expectAnswer(session, turn, reply);
  }

  async verify(): Promise<void> {
    const select = this.saver.db.prepare('SELECT content FROM bench_message WHERE session_id = ? ORDER BY position');
    for (const [session, turns] of this.options.witness.load.entries()) {
      const id = this.idOf(session);
      const tuple = await this.saver.getTuple(threadOf(id));
      expectSame(`state of ${id}`, tuple?.checkpoint.channel_values.state, stateAfter(turns - 1));
      expectSame(`log of ${id}`, select.pluck().all(id), messagesOf(turns));
    }
  }

  async close(): Promise<void> {
    this.saver.db.close();
  }

  private async work(session: number, turn: number, said: string): Promise<string> {
    const { witness } = this.options;
    const id = this.idOf(session);
    witness.begin(session, turn);
    const before = await this.saver.getTuple(threadOf(id));
    const state = before?.checkpoint.channel_values.state as JobState | undefined;
    expectStateBefore(turn, id, state?.turn);
    const reply = answer(turn);
    await putState(this.saver, id, before, turn, stateAfter(turn));
    this.append(id, turn, said, reply);
    witness.end(session);
    witness.settled(session);
    return reply;
  }

  private idOf(session: number): string {
    return `${this.options.prefix}-${session}`;
  }
}

export async function openPQueueAndSqliteSaver(options: JobOptions): Promise<JobSystem> {
  const { SqliteSaver } = loadPeer<SqliteSaverLibrary>('@langchain/langgraph-checkpoint-sqlite');
  const { default: Queue } = loadPeer<PQueueLibrary>('p-queue');
  const saver = SqliteSaver.fromConnString(options.places.database);
  saver.db.pragma('journal_mode = WAL');
  // Durable commits, like ours. The driver's default is NORMAL.
  saver.db.pragma('synchronous = FULL');
  saver.db.exec(
    `CREATE TABLE IF NOT EXISTS bench_message (
      session_id TEXT, position INTEGER, role TEXT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (session_id, position))`,
  );
  return new PQueueAndSqliteSaver(options, saver, () => new Queue({ concurrency: 1 }));
}
