import { Logger } from '@nestjs/common';
import { type SchedulerRegistry } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { traceOf } from '../common/error-trace.js';
import { mintId } from '../common/ids.js';
import { inBatches } from '../common/in-batches.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type StateStore } from '../ledger/state.store.js';
import { SWEEP_ACTION, SWEEP_OUTCOME } from '../telemetry/attributes.js';
import { type Telemetry } from '../telemetry/telemetry.js';
import { type TurnEventLog } from '../ledger/turn-event-log.js';
import { type TurnLedger } from '../ledger/turn.store.js';
import { type LeaseStore } from '../ledger/lease.store.js';
import { type SweepSettings } from './sweep.settings.js';

/** The job's name in the application's SchedulerRegistry and in the lease table. */
export const SWEEP_JOB = 'agent-sessions:sweep';

/** A run that takes longer lets another process take over; sweeping twice does no harm. */
const LEASE_MS = 120_000;
/** What else is deleted in a run: no store is kept busy by one operation for long. */
const BATCH = 500;
/** Of turns whose events are deleted: each may have hundreds of rows. */
const EVENTS_BATCH = 50;
const MAX_TRIM_MS = 60_000;

/** What is swept besides sessions, and the lease under which that is done. */
export interface SweptStore {
  readonly leases: LeaseStore;
  readonly turns: Pick<TurnLedger, 'purgeSettled'>;
  readonly events: Pick<TurnEventLog, 'deleteExpired'>;
  readonly state: Pick<StateStore, 'deleteExpired' | 'evictIdle'>;
}

/** What the sweeps of this process did so far. */
export interface SweepCounts {
  readonly runs: number;
  /** Runs that were left out because one of this process, or another process's, was still at it. */
  readonly skipped: number;
  /** Runs that the store did not let come to their end. */
  readonly failed: number;
  readonly suspended: number;
  readonly expired: number;
  readonly purged: number;
  /** Settled turns that were deleted. */
  readonly turns: number;
  /** Turns whose events had expired and were deleted by the sweep. */
  readonly events: number;
  /** State documents that had expired, or were one too many, and were deleted. */
  readonly documents: number;
}

/**
 * Keeps a store from growing, by cron and one process at a time when several share it (SES-20, NST-06): suspends, expires
 * and deletes idle sessions, and deletes settled turns and expired state documents, in batches.
 */
export class SessionSweeper {
  private readonly logger = new Logger(SessionSweeper.name);
  private readonly holder = mintId();
  private job: CronJob | null = null;
  private running: Promise<void> | null = null;
  private stopping = false;
  private count = {
    runs: 0,
    skipped: 0,
    failed: 0,
    suspended: 0,
    expired: 0,
    purged: 0,
    turns: 0,
    events: 0,
    documents: 0,
  };

  /** @param registry of the application's ScheduleModule, when it has one: the job is listed there */
  constructor(
    private readonly sessions: SessionStore,
    private readonly store: SweptStore,
    private readonly settings: SweepSettings,
    private readonly registry: SchedulerRegistry | null,
    private readonly telemetry: Telemetry,
  ) {}

  get counts(): SweepCounts {
    return { ...this.count };
  }

  start(): void {
    if (this.settings.cron === null) return;
    this.job = new CronJob(this.settings.cron, () => void this.run());
    this.job.start();
    this.registry?.addCronJob(SWEEP_JOB, this.job);
  }

  /** Waits for the batch that is under way; another process, or the next start, goes on. */
  async stop(): Promise<void> {
    this.stopping = true;
    await this.job?.stop();
    if (this.job && this.registry?.doesExist('cron', SWEEP_JOB)) this.registry.deleteCronJob(SWEEP_JOB);
    this.job = null;
    // Its failure is told to whoever asked for it.
    await this.running?.catch(() => undefined);
  }

  /** As {@link sweep}, for a clock: a failure is logged, and the next run tries again. */
  async run(): Promise<void> {
    try {
      await this.sweep();
    } catch (error) {
      this.logger.error('The sweep of idle sessions failed; the next run tries again.', traceOf(error));
    }
  }

  /** One sweep now, unless one is under way here or in another process. @throws what the store throws */
  async sweep(): Promise<void> {
    if (this.running) {
      this.tellRun('skipped');
      return;
    }
    this.running = this.telemetry
      .span({ name: 'sweep', parent: null }, () => this.sweepAlone())
      .catch((error: unknown) => {
        this.tellRun('failed');
        throw error;
      })
      .finally(() => {
        this.running = null;
      });
    await this.running;
  }

  private async sweepAlone(): Promise<void> {
    const { leases } = this.store;
    const lease = await leases.acquire(SWEEP_JOB, this.holder, LEASE_MS);
    if (!lease) {
      this.tellRun('skipped');
      return;
    }
    try {
      // One kind that fails does not keep the others from going.
      await this.sweepSessions(this.settings).finally(() => this.trim(this.settings));
      this.tellRun('runs');
    } finally {
      await leases.release(lease);
    }
  }

  private async sweepSessions({ maxPerRun, expireAfterMs, purgeAfterMs }: SweepSettings): Promise<void> {
    const bound = { maxSessions: maxPerRun };
    const suspended = await this.sessions.sweepStale(undefined, bound);
    const expired = await this.sessions.sweepExpired(expireAfterMs, bound);
    const purged = purgeAfterMs === undefined ? [] : await this.sessions.purgeExpired(purgeAfterMs, bound);
    this.tellSwept({ suspended: suspended.length, expired: expired.length, purged: purged.length });
    if (suspended.length + expired.length + purged.length > 0) {
      this.logger.log(
        `Sessions suspended: ${suspended.length}, expired: ${expired.length}, deleted: ${purged.length}.`,
      );
    }
  }

  private async trim({ purgeTurnsAfterMs, maxDocuments }: SweepSettings): Promise<void> {
    const { turns, events, state } = this.store;
    const ends = performance.now() + MAX_TRIM_MS;
    const isOver = (): boolean => this.stopping || performance.now() >= ends;
    const settled =
      purgeTurnsAfterMs === undefined
        ? 0
        : await inBatches(BATCH, (limit) => turns.purgeSettled(purgeTurnsAfterMs, limit), isOver);
    const streams = await inBatches(EVENTS_BATCH, (limit) => events.deleteExpired(limit), isOver);
    let documents = await inBatches(BATCH, (limit) => state.deleteExpired(limit), isOver);
    for (const { namespace, keep } of maxDocuments) {
      documents += await inBatches(BATCH, (limit) => state.evictIdle(namespace, keep, limit), isOver);
    }
    this.tellSwept({ turns: settled, events: streams, documents });
    if (settled + streams + documents > 0) {
      this.logger.log(
        `Settled turns deleted: ${settled}, turns whose events expired: ${streams}, state documents: ${documents}.`,
      );
    }
  }

  private tellRun(outcome: 'runs' | 'skipped' | 'failed'): void {
    this.count[outcome] += 1;
    const name = outcome === 'runs' ? 'done' : outcome;
    this.telemetry.count('agent_sessions.sweep.runs', 1, { [SWEEP_OUTCOME]: name });
  }

  private tellSwept(counts: Partial<SweepCounts>): void {
    for (const [action, items] of Object.entries(counts) as [keyof SweepCounts, number][]) {
      this.count[action] += items;
      if (items > 0) this.telemetry.count('agent_sessions.sweep.items', items, { [SWEEP_ACTION]: action });
    }
  }
}
