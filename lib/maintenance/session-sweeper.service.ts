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

/** What the sweeps of this process did so far. */
export interface SweepCounts {
  readonly runs: number;
  /** Runs that were left out because one of this process, or another process's, was still at it. */
  readonly skipped: number;
  readonly suspended: number;
}

/** Suspends idle sessions by cron, one process at a time when several share a store (SES-20, NST-06). */
export class SessionSweeper {
  private readonly logger = new Logger(SessionSweeper.name);
  private readonly holder = mintId();
  private job: CronJob | null = null;
  private running: Promise<void> | null = null;
  private count = { runs: 0, skipped: 0, suspended: 0 };

  /** @param registry of the application's ScheduleModule, when it has one: the job is listed there */
  constructor(
    private readonly sessions: SessionStore,
    private readonly leases: LeaseStore,
    private readonly settings: { readonly cron: string; readonly maxPerRun: number } | null,
    private readonly registry: SchedulerRegistry | null,
  ) {}

  get counts(): SweepCounts {
    return { ...this.count };
  }

  start(): void {
    if (!this.settings) return;
    this.job = new CronJob(this.settings.cron, () => void this.run());
    this.job.start();
    this.registry?.addCronJob(SWEEP_JOB, this.job);
  }

  async stop(): Promise<void> {
    await this.job?.stop();
    if (this.job && this.registry?.doesExist('cron', SWEEP_JOB)) this.registry.deleteCronJob(SWEEP_JOB);
    this.job = null;
    await this.running;
  }

  /** One sweep now, unless one is under way here or in another process. */
  async run(): Promise<void> {
    if (this.running) {
      this.count.skipped += 1;
      return;
    }
    this.running = this.sweep().finally(() => {
      this.running = null;
    });
    await this.running;
  }

  private async sweep(): Promise<void> {
    try {
      const lease = await this.leases.acquire(SWEEP_JOB, this.holder, LEASE_MS);
      if (!lease) {
        this.count.skipped += 1;
        return;
      }
      try {
        const maxSessions = this.settings?.maxPerRun;
        const swept = await this.sessions.sweepStale(undefined, maxSessions === undefined ? {} : { maxSessions });
        this.count.runs += 1;
        this.count.suspended += swept.length;
        if (swept.length > 0)
          this.logger.log(`Suspended ${swept.length} idle session${swept.length === 1 ? '' : 's'}.`);
      } finally {
        await this.leases.release(lease);
      }
    } catch (error) {
      this.logger.error('The sweep of idle sessions failed; the next run tries again.', String(error));
    }
  }
}
