import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type * as BullMQ from 'bullmq';
import { type Job, type JobsOptions, type Queue, type QueueOptions, type Worker } from 'bullmq';
import { traceOf } from '../../common/error-trace.js';
import { isPlainObject } from '../../common/json.js';
import { loadPeer, requirePeer } from '../../common/load-peer.js';
import { assertKnownKeys } from '../../common/check-options.js';
import { assertUrlIsSet, serverPlace } from '../../common/server-place.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { Deadline } from '../../common/deadline.js';
import { type FindProvider, type TurnQueue, type LaneVisit, type ReservedSlot } from '../../ledger/turn-queue.js';
import { LaneVisits } from '../lane-visits.js';
import { Semaphore } from '../semaphore.js';
import { type BullmqQueueOptions } from './bullmq-queue.options.js';
import { bullmqMessages } from './bullmq.messages.js';
import { closeInTime } from './close-in-time.js';
import { assertReadsNumbers, jobData } from './driver-settings.js';
import { guardConnections } from './guard-connections.js';

/** A notification, which is not needed after it was delivered. */
const NOTIFICATION: JobsOptions = { removeOnComplete: true, removeOnFail: true };
/** The number of events that BullMQ keeps, enough for observers of the queue. */
const MAX_EVENTS = 1000;
const PING_MS = 2000;
/**
 * Replaces a connection that has not answered for this long, because a half-open connection reports no error. BullMQ
 * waits for a job for at most ten seconds.
 */
const REDIS_SILENCE = { socketTimeout: 12_000 };
/**
 * The same for PostgreSQL, where waiting for a job is not a query. The server ends a half-open connection, and frees its
 * locks, after `idle_in_transaction_session_timeout`. All starting processes wait for one lock of BullMQ, so
 * `query_timeout` is longer.
 */
const POSTGRES_SILENCE = { query_timeout: 8_000, idle_in_transaction_session_timeout: 5_000 };
const REDIS_PORT = 6379;
const POSTGRES_PORT = 5432;
/** The pause before another attempt to start the worker. */
const RETRY_MS = 1000;
/**
 * How long a delivered notification waits for a slot that an unnotified visit holds; then another process may take it.
 */
const PATIENCE_MS = 250;
/** The largest integer of BullMQ's PostgreSQL backend. */
const WITHOUT_END = 2_147_483_647;

const KEYS = {
  connection: true,
  configKey: true,
  backendFactory: true,
  name: true,
  prefix: true,
  concurrency: true,
} as const;

/** The part of BullMQ that this package uses. */
type Bullmq = Pick<typeof BullMQ, 'Queue' | 'RedisConnection' | 'Worker'>;

/** The data of a job. @inline */
interface Notification {
  readonly sessionId: string;
}

/**
 * A queue for several processes on the open-source BullMQ (TRN-21, TRN-22). A job only notifies that a session's lane
 * has work; the ledger decides which turn runs. A lost, stalled or repeated job is therefore harmless. A lane whose
 * worker died continues when its lease has lapsed, independently of BullMQ's locks.
 */
export class BullmqQueue implements TurnQueue {
  private readonly logger = new Logger(BullmqQueue.name);
  private readonly name: string;
  private shared: Partial<QueueOptions> = {};
  private opened: Promise<Queue<Notification>> | null = null;
  private worker: Worker<Notification> | null = null;
  readonly concurrency: number;
  private readonly semaphore: Semaphore;
  private readonly visits: LaneVisits;
  /** Notifications that BullMQ has delivered and whose visits have not ended. */
  private delivered = 0;
  /**
   * True if undelivered notifications may be waiting. BullMQ fetches until the queue is empty, or `concurrency` of them
   * are here.
   */
  private mayHaveBacklog = true;
  private pinging: Promise<unknown> | null = null;
  private paused = false;
  private closing = false;
  private closed = false;
  private failing = false;

  constructor(private readonly options: BullmqQueueOptions) {
    assertKnownKeys(options, KEYS, 'bullmqQueue: ');
    this.name = options.name ?? 'agent-sessions';
    // BullMQ would only report it at the first notification.
    if (this.name === '' || this.name.includes(':')) {
      throw new SessionsConfigurationError(
        `bullmqQueue: name must not be empty or contain ':'. Received: '${this.name}'.`,
      );
    }
    const { concurrency = 32 } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1) {
      throw new SessionsConfigurationError(
        `bullmqQueue: concurrency must be an integer of at least 1. Received: ${concurrency}.`,
      );
    }
    assertUrlIsSet(options.connection, 'bullmqQueue: connection.');
    assertReadsNumbers(options.connection, 'bullmqQueue: connection');
    this.concurrency = concurrency;
    this.semaphore = new Semaphore(concurrency);
    this.visits = new LaneVisits(this.semaphore, () => undefined);
  }

  /** Available after `init`, which finds a shared connection. */
  get label(): string {
    return `BullMQ ${this.name}${this.place}`;
  }

  /** BullMQ's own queue, for Bull Board and metrics. */
  get queue(): Promise<Queue<Notification>> {
    if (this.closed)
      return Promise.reject(new Error(`The queue ${this.name} is closed. Use it only while the application runs.`));
    this.opened ??= this.open().catch((error: unknown) => {
      // The next call opens it again, for example after `init`.
      this.opened = null;
      throw error;
    });
    return this.opened;
  }

  async init(find: FindProvider): Promise<void> {
    // The same queue may serve several applications, one after the other.
    this.closing = this.closed = this.paused = false;
    this.mayHaveBacklog = true;
    if (this.options.connection === undefined) this.shared = await this.sharedOptions(find);
    const { Queue, RedisConnection } = await this.load();
    // BullMQ 6 creates an ioredis client from options, unless a client factory is set. Without ioredis it would retry
    // forever. BullMQ 5 depends on ioredis.
    const { connection } = this.connection();
    const needsIoredis = hasBackends(Queue) && !this.backendFactory && isPlainObject(connection);
    if (needsIoredis && !RedisConnection.clientFactory) requirePeer('ioredis');
  }

  async notify(sessionId: string, delayMs = 0, overdue = false): Promise<void> {
    const queue = await this.queue;
    const later = delayMs > 0 ? { delay: delayMs } : {};
    // A lane is overdue again every five seconds, so add none while one waits.
    const once = overdue ? { deduplication: { id: sessionId } } : {};
    await queue.add('notify', { sessionId }, { ...NOTIFICATION, ...later, ...once });
    this.recovered();
  }

  async process(handler: LaneVisit): Promise<void> {
    const worker = await this.openWorker(handler);
    if (this.closing) return void closeInTime(worker);
    this.worker = worker;
    void this.work(worker, handler);
  }

  reserve(sessionId: string): ReservedSlot | null {
    // Notified lanes have priority, here and in other processes.
    if (this.paused || this.mayHaveBacklog || this.semaphore.hasWaiters) return null;
    if (this.visits.has(sessionId)) return this.visits.reserveNext(sessionId);
    return this.semaphore.tryAcquire() ? this.visits.reserve(sessionId) : null;
  }

  async pause(): Promise<void> {
    this.paused = true;
    await this.worker?.pause(true);
  }

  /** Continues after `pause`. */
  async resume(): Promise<void> {
    if (!this.paused) return;
    this.paused = false;
    await this.worker?.resume();
  }

  async close(): Promise<void> {
    this.closing = true;
    await this.pause();
    await this.visits.settled();
    if (this.worker) await this.closePart(this.worker);
    this.worker = null;
    this.closed = true;
    const queue = await this.opened?.catch(() => null);
    this.opened = null;
    if (queue) await this.closePart(queue);
  }

  async ping(): Promise<void> {
    const queue = await this.queue;
    // Concurrent pings share one query.
    this.pinging ??= queue.getJobCountByTypes('waiting').finally(() => (this.pinging = null));
    await new Deadline(PING_MS).wait(this.pinging);
  }

  /** Runs the worker until the queue is closed. */
  private async work(worker: Worker<Notification>, handler: LaneVisit): Promise<void> {
    try {
      await worker.waitUntilReady();
      if (this.paused) await worker.pause(true);
      if (!worker.isRunning()) await worker.run();
    } catch (error) {
      if (this.closing || this.worker !== worker) return;
      // A worker does not reconnect to a PostgreSQL that is unavailable or lacks the tables, so start another one.
      this.failed(error as Error);
      await closeInTime(worker);
      await delay(RETRY_MS, undefined, { ref: false });
      if (!this.closing) await this.process(handler);
    }
  }

  private async deliver(job: Job<Notification>, handler: LaneVisit): Promise<void> {
    // A delivered notification ends an outage.
    this.recovered();
    this.delivered += 1;
    if (this.delivered >= this.concurrency) this.mayHaveBacklog = true;
    try {
      // Only waiting notifications are merged: if this worker is killed, the lane must be notified at once. On an error
      // BullMQ allows others when the job has ended.
      if (job.deduplicationId !== undefined) await job.removeDeduplicationKey().catch(() => undefined);
      await this.visitInSlot(jobData(job.data).sessionId, handler);
    } finally {
      this.delivered -= 1;
    }
  }

  private async visitInSlot(sessionId: string, handler: LaneVisit): Promise<void> {
    const acquired = await this.semaphore.acquire(PATIENCE_MS);
    // BullMQ fetched the job just before the pause, or no slot is free: another process takes it.
    if (acquired && !this.paused) return this.begin(sessionId, handler);
    if (acquired) this.semaphore.release();
    return this.notify(sessionId);
  }

  /** Resolves when the visit ends or releases its slot. The job is then done, and BullMQ delivers the next one. */
  private begin(sessionId: string, handler: LaneVisit): Promise<void> {
    return new Promise((resolve) => {
      void this.visits.begin(sessionId, (slot) => handler(sessionId, slot), resolve).then(resolve);
    });
  }

  private async closePart(part: Queue | Worker): Promise<void> {
    if (await closeInTime(part)) return;
    this.logger.warn(`The queue ${this.name} did not answer and could not be closed properly; its connection was cut.`);
  }

  private async open(): Promise<Queue<Notification>> {
    const { Queue } = await this.load();
    const options = { ...this.connection(), streams: { events: { maxLen: MAX_EVENTS } } };
    const queue = new Queue<Notification>(this.name, options, this.backendFactory);
    guardConnections(queue);
    queue.on('error', (error) => this.failed(error));
    queue.waitUntilReady().catch(async () => {
      if (this.closing) return;
      // The next notification opens another queue, like the worker above.
      this.opened = null;
      await closeInTime(queue);
    });
    return queue;
  }

  private async openWorker(handler: LaneVisit): Promise<Worker<Notification>> {
    const { Worker } = await this.load();
    const { concurrency } = this;
    // A stalled notification is delivered again without a limit.
    const options = { ...this.connection(), concurrency, maxStalledCount: WITHOUT_END, autorun: false };
    const work = (job: Job<Notification>): Promise<void> => this.deliver(job, handler);
    const worker = new Worker<Notification>(this.name, work, options, this.backendFactory);
    guardConnections(worker);
    worker.on('error', (error) => this.failed(error));
    worker.on('drained', () => (this.mayHaveBacklog = false));
    return worker;
  }

  /** @throws SessionsConfigurationError if BullMQ is missing, or is version 5 and a backend is set (DAY-07) */
  private async load(): Promise<Bullmq> {
    const bullmq: Bullmq = await loadPeer('bullmq', () => import('bullmq'));
    if (!this.options.backendFactory || hasBackends(bullmq.Queue)) return bullmq;
    throw new SessionsConfigurationError(bullmqMessages.backendsNeedBullmq6());
  }

  private async sharedOptions(find: FindProvider): Promise<Partial<QueueOptions>> {
    const { getSharedConfigToken } = await loadPeer('@nestjs/bullmq', () => import('@nestjs/bullmq'));
    const shared = find<Partial<QueueOptions>>(getSharedConfigToken(this.options.configKey));
    if (!shared?.connection) throw new SessionsConfigurationError(bullmqMessages.noConnection());
    assertUrlIsSet(shared.connection, 'BullModule.forRoot: connection.');
    assertReadsNumbers(shared.connection, 'BullModule.forRoot: connection');
    return shared;
  }

  private connection(): Pick<QueueOptions, 'connection' | 'prefix'> {
    const { connection = this.shared.connection, prefix = this.shared.prefix } = this.options;
    if (connection === undefined) throw new SessionsConfigurationError(bullmqMessages.tooEarly());
    // A client, a pool or a string is configured by the application.
    const patience = this.backendFactory ? POSTGRES_SILENCE : REDIS_SILENCE;
    const patient = isPlainObject(connection) ? { ...patience, ...connection } : connection;
    return { connection: patient, ...(prefix === undefined ? {} : { prefix }) };
  }

  private get place(): string {
    const place = serverPlace(this.connection().connection, this.backendFactory ? POSTGRES_PORT : REDIS_PORT);
    return place === undefined ? '' : ` at ${place}`;
  }

  /** BullMQ accepts a factory or `undefined`, but its overloads do not accept the union. */
  private get backendFactory(): undefined {
    return this.options.backendFactory as undefined;
  }

  /** Logs once per outage, because BullMQ reports every connection attempt. */
  private failed(error: Error): void {
    if (!this.failing)
      this.logger.error(`The queue ${this.name}${this.place} reported an error; retrying.`, traceOf(error));
    this.failing = true;
  }

  private recovered(): void {
    if (this.failing) this.logger.log(`The queue ${this.name}${this.place} is connected again.`);
    this.failing = false;
  }
}

/** Returns whether this is BullMQ 6. BullMQ 5 has no backends. */
function hasBackends({ prototype }: Bullmq['Queue']): boolean {
  return 'getBackend' in prototype;
}
