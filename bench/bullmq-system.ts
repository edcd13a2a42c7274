import { type Job, Queue, QueueEvents, Worker } from 'bullmq';
import { expectSame } from './wrong-answer.error.js';
import { type SystemOptions, type TurnSystem } from './turn-system.js';

const QUEUE = 'turns';
const MAX_EVENTS = 1000;
/** The number of finished jobs that BullMQ keeps, so that callers can read their result. */
const KEEP = { count: 1000 };

interface JobData {
  readonly session: number;
  readonly turn: number;
}

/** Plain BullMQ: a job is a turn. It keeps neither the order nor the messages. */
class BullmqSystem implements TurnSystem {
  private readonly queue: Queue<JobData>;
  private readonly worker: Worker<JobData> | null = null;
  private readonly waiting = new Map<number, () => void>();
  private events: QueueEvents | null = null;

  constructor(private readonly options: SystemOptions) {
    const { role, concurrency, witness } = options;
    this.queue = new Queue(QUEUE, {
      ...this.connection,
      streams: { events: { maxLen: MAX_EVENTS } },
      defaultJobOptions: { removeOnComplete: true },
    });
    if (role === 'submit') return;
    const work = async ({ data }: Job<JobData>): Promise<void> => witness.begin(data.session, data.turn);
    this.worker = new Worker(QUEUE, work, { ...this.connection, concurrency });
    this.worker.on('completed', ({ data }) => {
      witness.settled(data.session);
      this.waiting.get(data.session)?.();
    });
    this.worker.on('failed', (_, error) => witness.failed(error.message));
    this.worker.on('error', (error) => witness.failed(error.message));
  }

  async prepare(): Promise<void> {
    await this.queue.waitUntilReady();
  }

  async submit(session: number, turn: number): Promise<void> {
    await this.queue.add('turn', { session, turn });
  }

  execute(session: number, turn: number): Promise<void> {
    return this.worker ? this.executeHere(session, turn) : this.executeElsewhere(session, turn);
  }

  async verify(): Promise<void> {
    const counts = await this.queue.getJobCounts('wait', 'active', 'delayed', 'prioritized', 'failed');
    expectSame('jobs that are left', Object.values(counts), [0, 0, 0, 0, 0]);
  }

  async close(): Promise<void> {
    await this.worker?.close();
    await this.events?.close();
    await this.queue.close();
  }

  /** The worker's own event is earlier than the event of QueueEvents. */
  private async executeHere(session: number, turn: number): Promise<void> {
    const completed = new Promise<void>((resolve) => this.waiting.set(session, resolve));
    await this.submit(session, turn);
    await completed;
  }

  private async executeElsewhere(session: number, turn: number): Promise<void> {
    this.events ??= await this.openEvents();
    const job = await this.queue.add('turn', { session, turn }, { removeOnComplete: KEEP });
    await job.waitUntilFinished(this.events);
  }

  private async openEvents(): Promise<QueueEvents> {
    const events = new QueueEvents(QUEUE, this.connection);
    await events.waitUntilReady();
    return events;
  }

  private get connection() {
    return { connection: { url: this.options.url }, prefix: 'bench-bullmq' };
  }
}

export async function openBullmq(options: SystemOptions): Promise<TurnSystem> {
  return new BullmqSystem(options);
}
