import { Logger } from '@nestjs/common';
import { type SchedulerRegistry } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { mintId } from '../common/ids.js';
import { type SessionStore } from '../session/session-store.service.js';
import { type LeaseStore } from './lease.store.js';

/** The job's name in the application's SchedulerRegistry and in the lease table. */
export const SWEEP_JOB = 'agent-sessions:sweep';

/** A run that takes longer lets another process take over; sweeping twice does no harm. */
const LEASE_MS = 120_000;

export interface SweepSettings {
  /** `null`: nothing is swept unless somebody asks for it. */
  readonly cron: string | null;
  /** Sessions of each kind in a run. */
  readonly maxPerRun: number;
  /** Milliseconds; left out: nothing expires for being idle. */
  readonly expireAfterMs: number | undefined;
  /** Milliseconds; left out: nothing is deleted. */
  readonly purgeAfterMs: number | undefined;
}

/** What the sweeps of this process did so far. */
export interface SweepCounts {
  readonly runs: number;
  /** Runs that were left out because one of this process, or another process's, was still at it. */
  readonly skipped: number;
  readonly suspended: number;
  readonly expired: number;
  readonly purged: number;
}

/** Suspends, expires and deletes idle sessions by cron, one process at a time when several share a store (SES-20, NST-06). */
export class SessionSweeper {
  private readonly logger = new Logger(SessionSweeper.name);
  private readonly holder = mintId();
  private job: CronJob | null = null;
  private running: Promise<void> | null = null;
  private count = { runs: 0, skipped: 0, suspended: 0, expired: 0, purged: 0 };

  /** @param registry of the application's ScheduleModule, when it has one: the job is listed there */
  constructor(
    private readonly sessions: SessionStore,
    private readonly leases: LeaseStore,
    private readonly settings: SweepSettings,
    private readonly registry: SchedulerRegistry | null,
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

  async stop(): Promise<void> {
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
      this.logger.error('The sweep of idle sessions failed; the next run tries again.', String(error));
    }
  }

  /** One sweep now, unless one is under way here or in another process. @throws what the store throws */
  async sweep(): Promise<void> {
    if (this.running) {
      this.count.skipped += 1;
      return;
    }
    this.running = this.sweepAlone().finally(() => {
      this.running = null;
    });
    await this.running;
  }

  private async sweepAlone(): Promise<void> {
    const lease = await this.leases.acquire(SWEEP_JOB, this.holder, LEASE_MS);
    if (!lease) {
      this.count.skipped += 1;
      return;
    }
    try {
      await this.sweepSessions(this.settings);
    } finally {
      await this.leases.release(lease);
    }
  }

  private async sweepSessions({ maxPerRun, expireAfterMs, purgeAfterMs }: SweepSettings): Promise<void> {
    const bound = { maxSessions: maxPerRun };
    const suspended = await this.sessions.sweepStale(undefined, bound);
    const expired = await this.sessions.sweepExpired(expireAfterMs, bound);
    const purged = purgeAfterMs === undefined ? [] : await this.sessions.purgeExpired(purgeAfterMs, bound);
    this.count.runs += 1;
    this.count.suspended += suspended.length;
    this.count.expired += expired.length;
    this.count.purged += purged.length;
    if (suspended.length + expired.length + purged.length > 0) {
      this.logger.log(
        `Sessions suspended: ${suspended.length}, expired: ${expired.length}, deleted: ${purged.length}.`,
      );
    }
  }
}
