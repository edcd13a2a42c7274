import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type * as BullMQ from 'bullmq';
import { type JobsOptions, type Queue, type QueueOptions, type Worker } from 'bullmq';
import { traceOf } from '../../common/error-trace.js';
import { isPlainObject } from '../../common/json.js';
import { loadPeer, requirePeer } from '../../common/load-peer.js';
import { assertKnownKeys } from '../../common/known-keys.js';
import { assertUrlIsSet, serverPlace } from '../../common/server-place.js';
import { SessionsConfigurationError } from '../../common/sessions.error.js';
import { Deadline } from '../../common/deadline.js';
import { type FindProvider, type TurnQueue, type LaneVisit, type VisitPlace } from '../../ledger/turn-queue.js';
import { LaneVisits } from '../lane-visits.js';
import { VisitRoom } from '../visit-room.js';
import { type BullmqQueueOptions } from './bullmq-queue.options.js';
import { closeInTime } from './close-in-time.js';
import { guardConnections } from './guard-connections.js';

/** A ring, which is worth nothing once it was heard. */
const RING: JobsOptions = { removeOnComplete: true, removeOnFail: true };
/** Who watches the queue's events needs no more of them. */
const MAX_EVENTS = 1000;
const PING_MS = 2000;
/**
 * A connection that owes an answer for this long is made anew: nobody tells of one that is half-open. BullMQ waits for a job
 * for ten seconds at most.
 */
const REDIS_SILENCE = { socketTimeout: 12_000 };
/**
 * The same on PostgreSQL, where the wait for a job is no query. There a half-open connection holds its locks besides, until
 * the server ends it: BullMQ's is for all who start, and those who wait for it must outlast that.
 */
const POSTGRES_SILENCE = { query_timeout: 8_000, idle_in_transaction_session_timeout: 5_000 };
const REDIS_PORT = 6379;
const POSTGRES_PORT = 5432;
/** Before another attempt at a server that refused the worker. */
const RETRY_MS = 1000;
/** How long a ring that was heard waits here for visits that were not rung for; other processes may have room. */
const PATIENCE_MS = 250;
/** The most that BullMQ's PostgreSQL backend can count. */
const WITHOUT_END = 2_147_483_647;

const KEYS = {
  connection: true,
  configKey: true,
  backendFactory: true,
  name: true,
  prefix: true,
  concurrency: true,
} as const;

/** What a job carries. @inline */
interface Ring {
  readonly sessionId: string;
}

/**
 * A doorbell for many processes on the open-source BullMQ (TRN-21, TRN-22): a job says that a session's lane has work, and
 * carries nothing else. Which turn runs, and whether any, is decided by the ledger; so a job that is lost, stalled or
 * repeated does no harm, and a lane whose worker died goes on when its lease has lapsed, whatever BullMQ's locks say.
 */
export class BullmqQueue implements TurnQueue {
  private readonly logger = new Logger(BullmqQueue.name);
  private readonly name: string;
  private shared: Partial<QueueOptions> = {};
  private opened: Promise<Queue<Ring>> | null = null;
  private worker: Worker<Ring> | null = null;
  private readonly concurrency: number;
  private readonly room: VisitRoom;
  private readonly visits: LaneVisits;
  /** Rings that BullMQ has delivered and whose visits have not ended. */
  private delivered = 0;
  /** Whether rings may wait that BullMQ has not delivered: it fetches until none is left, or `concurrency` of them are here. */
  private ringsWait = true;
  private pinging: Promise<unknown> | null = null;
  private paused = false;
  private closing = false;
  private closed = false;
  private failing = false;

  constructor(private readonly options: BullmqQueueOptions) {
    assertKnownKeys(options, KEYS, 'bullmqQueue: ');
    this.name = options.name ?? 'agent-sessions';
    // BullMQ would say so at the first ring.
    if (this.name === '' || this.name.includes(':')) {
      throw new SessionsConfigurationError(`bullmqQueue: name is '${this.name}'; it must not be empty or contain ':'.`);
    }
    const { concurrency = 32 } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1) {
      throw new SessionsConfigurationError(
        `bullmqQueue: concurrency is ${concurrency}; it must be a whole number from 1.`,
      );
    }
    assertUrlIsSet(options.connection, 'bullmqQueue: connection.');
    this.concurrency = concurrency;
    this.room = new VisitRoom(concurrency);
    this.visits = new LaneVisits(this.room, () => undefined);
  }

  /** BullMQ's own queue, for Bull Board and metrics. */
  get queue(): Promise<Queue<Ring>> {
    if (this.closed) return Promise.reject(new Error(`The queue ${this.name} is closed.`));
    return (this.opened ??= this.open());
  }

  async init(find: FindProvider): Promise<void> {
    if (this.options.connection === undefined) this.shared = await this.sharedOptions(find);
    const { RedisConnection } = await loadBullmq();
    // BullMQ makes a client of options, unless it was told how to make another one; it would look for ioredis again and again.
    const { connection } = this.connection();
    if (!this.backendFactory && isPlainObject(connection) && !RedisConnection.clientFactory) requirePeer('ioredis');
  }

  async ring(sessionId: string, delayMs = 0): Promise<void> {
    const queue = await this.queue;
    await queue.add('ring', { sessionId }, delayMs > 0 ? { ...RING, delay: delayMs } : RING);
    this.failing = false;
  }

  async process(handler: LaneVisit): Promise<void> {
    const worker = await this.openWorker(handler);
    if (this.closing) return void closeInTime(worker);
    this.worker = worker;
    void this.work(worker, handler);
  }

  reserve(sessionId: string): VisitPlace | null {
    // Whatever was rung comes first, here and in other processes.
    if (this.paused || this.ringsWait || this.room.isWanted) return null;
    if (this.visits.has(sessionId)) return this.visits.keepOn(sessionId);
    return this.room.tryEnter() ? this.visits.keep(sessionId) : null;
  }

  async pause(): Promise<void> {
    this.paused = true;
    await this.worker?.pause(true);
  }

  /** Goes on after `pause`. */
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
    this.closed = true;
    const queue = await this.opened?.catch(() => null);
    this.opened = null;
    if (queue) await this.closePart(queue);
  }

  async ping(): Promise<void> {
    const queue = await this.queue;
    // While there is no answer, one is enough to ask for.
    this.pinging ??= queue.getJobCountByTypes('waiting').finally(() => (this.pinging = null));
    await new Deadline(PING_MS).wait(this.pinging);
  }

  /** Until it is closed. */
  private async work(worker: Worker<Ring>, handler: LaneVisit): Promise<void> {
    try {
      await worker.waitUntilReady();
      if (this.paused) await worker.pause(true);
      if (!worker.isRunning()) await worker.run();
    } catch (error) {
      if (this.closing) return;
      // A PostgreSQL that is away, or lacks the tables, is not asked again by the same worker.
      this.failed(error as Error);
      await closeInTime(worker);
      await delay(RETRY_MS, undefined, { ref: false });
      if (!this.closing) await this.process(handler);
    }
  }

  private async visit(sessionId: string, handler: LaneVisit): Promise<void> {
    // A ring that is heard ends an outage.
    this.failing = false;
    this.delivered += 1;
    if (this.delivered >= this.concurrency) this.ringsWait = true;
    try {
      await this.visitInRoom(sessionId, handler);
    } finally {
      this.delivered -= 1;
    }
  }

  private async visitInRoom(sessionId: string, handler: LaneVisit): Promise<void> {
    const entered = await this.room.enter(PATIENCE_MS);
    // BullMQ may have fetched it just before the pause, or there is no room: for somebody else, then.
    if (entered && !this.paused) return this.begin(sessionId, handler);
    if (entered) this.room.leave();
    return this.ring(sessionId);
  }

  /** Resolves when the visit ends or releases its slot: its job is done then, so that BullMQ delivers another one. */
  private begin(sessionId: string, handler: LaneVisit): Promise<void> {
    return new Promise((resolve) => {
      void this.visits.begin(sessionId, (slot) => handler(sessionId, slot), resolve).then(resolve);
    });
  }

  private async closePart(part: Queue | Worker): Promise<void> {
    if (await closeInTime(part)) return;
    this.logger.warn(`The queue ${this.name} did not answer and was not closed properly; its connection is cut.`);
  }

  private async open(): Promise<Queue<Ring>> {
    const { Queue } = await loadBullmq();
    const options = { ...this.connection(), streams: { events: { maxLen: MAX_EVENTS } } };
    const queue = new Queue<Ring>(this.name, options, this.backendFactory);
    guardConnections(queue);
    queue.on('error', (error) => this.failed(error));
    queue.waitUntilReady().catch(async () => {
      if (this.closing) return;
      // As with the worker: the next ring tries with another one.
      this.opened = null;
      await closeInTime(queue);
    });
    return queue;
  }

  private async openWorker(handler: LaneVisit): Promise<Worker<Ring>> {
    const { Worker } = await loadBullmq();
    const { concurrency } = this;
    // A stalled ring is a ring: it is heard again, as often as it takes.
    const options = { ...this.connection(), concurrency, maxStalledCount: WITHOUT_END, autorun: false };
    const work = ({ data }: { readonly data: Ring }): Promise<void> => this.visit(data.sessionId, handler);
    const worker = new Worker<Ring>(this.name, work, options, this.backendFactory);
    guardConnections(worker);
    worker.on('error', (error) => this.failed(error));
    worker.on('drained', () => (this.ringsWait = false));
    return worker;
  }

  private async sharedOptions(find: FindProvider): Promise<Partial<QueueOptions>> {
    const { getSharedConfigToken } = await loadPeer('@nestjs/bullmq', () => import('@nestjs/bullmq'));
    const shared = find<Partial<QueueOptions>>(getSharedConfigToken(this.options.configKey));
    if (!shared?.connection) {
      throw new SessionsConfigurationError(
        'bullmqQueue: give it a connection, or import BullModule.forRoot({ connection }) of @nestjs/bullmq in the application.',
      );
    }
    assertUrlIsSet(shared.connection, 'BullModule.forRoot: connection.');
    return shared;
  }

  private connection(): Pick<QueueOptions, 'connection' | 'prefix'> {
    const { connection = this.shared.connection, prefix = this.shared.prefix } = this.options;
    if (connection === undefined) {
      throw new SessionsConfigurationError('bullmqQueue: the queue is used before the application has started.');
    }
    // A client, a pool or a text is the application's own business.
    const patience = this.backendFactory ? POSTGRES_SILENCE : REDIS_SILENCE;
    const patient = isPlainObject(connection) ? { ...patience, ...connection } : connection;
    return { connection: patient, ...(prefix === undefined ? {} : { prefix }) };
  }

  private get place(): string {
    const place = serverPlace(this.connection().connection, this.backendFactory ? POSTGRES_PORT : REDIS_PORT);
    return place === undefined ? '' : ` at ${place}`;
  }

  /** BullMQ takes it or does without, which its overloads do not say in one. */
  private get backendFactory(): undefined {
    return this.options.backendFactory as undefined;
  }

  /** Once per outage: BullMQ tells of every attempt to connect. */
  private failed(error: Error): void {
    if (!this.failing)
      this.logger.error(`The queue ${this.name}${this.place} has a problem; trying on.`, traceOf(error));
    this.failing = true;
  }
}

function loadBullmq(): Promise<Pick<typeof BullMQ, 'Queue' | 'RedisConnection' | 'Worker'>> {
  return loadPeer('bullmq', () => import('bullmq'));
}
