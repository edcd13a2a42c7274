import { Redis } from 'ioredis';
import { expectSame } from './wrong-answer.error.js';
import { type GroupmqQueue, type GroupmqWorker, loadGroupmq } from './groupmq-library.js';
import { type SystemOptions, type TurnSystem } from './turn-system.js';

const NAMESPACE = 'bench';
const RESULTS = 'bench-groupmq-results';

interface JobData {
  readonly session: number;
  readonly turn: number;
  /** Whether another process waits for the job. */
  readonly tell?: boolean;
}

/** groupmq: a job is a turn, a group is a session. It stores no messages. */
class GroupmqSystem implements TurnSystem {
  private readonly redis: Redis;
  private readonly queue: GroupmqQueue<JobData>;
  private readonly worker: GroupmqWorker<JobData> | null = null;
  private readonly waiting = new Map<number, () => void>();
  private results: Redis | null = null;

  constructor({ url, role, concurrency, witness }: SystemOptions) {
    const { Queue, Worker } = loadGroupmq();
    this.redis = new Redis(url, { maxRetriesPerRequest: null });
    this.queue = new Queue({ redis: this.redis, namespace: NAMESPACE });
    if (role === 'submit') return;
    this.worker = new Worker({
      queue: this.queue,
      concurrency,
      handler: async ({ data }) => {
        witness.begin(data.session, data.turn);
        witness.end(data.session);
      },
    });
    this.worker.on('completed', ({ data }) => {
      witness.settled(data.session);
      this.waiting.get(data.session)?.();
      // groupmq cannot wait for a job of another process; this is the fastest way.
      if (data.tell) void this.redis.publish(RESULTS, String(data.session));
    });
    this.worker.on('failed', ({ id }) => witness.failed(`job ${id} failed`));
    this.worker.on('error', (error) => witness.failed(error.message));
    void this.worker.run();
  }

  async prepare(): Promise<void> {
    await this.redis.ping();
  }

  async submit(session: number, turn: number): Promise<void> {
    await this.add({ session, turn });
  }

  async execute(session: number, turn: number): Promise<void> {
    if (!this.worker) this.results ??= await this.openResults();
    const completed = new Promise<void>((resolve) => this.waiting.set(session, resolve));
    await this.add({ session, turn, ...(this.worker ? {} : { tell: true }) });
    await completed;
  }

  async verify(): Promise<void> {
    const { active, waiting, delayed } = await this.queue.getJobCounts();
    expectSame('jobs that are left', [active, waiting, delayed], [0, 0, 0]);
  }

  async close(): Promise<void> {
    await this.worker?.close();
    await this.queue.close();
    this.results?.disconnect();
    this.redis.disconnect();
  }

  private async add(data: JobData): Promise<void> {
    await this.queue.add({ groupId: `s${data.session}`, data });
  }

  private async openResults(): Promise<Redis> {
    const results = this.redis.duplicate();
    results.on('message', (_: string, session: string) => this.waiting.get(Number(session))?.());
    await results.subscribe(RESULTS);
    return results;
  }
}

export async function openGroupmq(options: SystemOptions): Promise<TurnSystem> {
  return new GroupmqSystem(options);
}
