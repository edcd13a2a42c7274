import { Logger } from '@nestjs/common';
import { type SchedulerRegistry } from '@nestjs/schedule';
import { CronJob } from 'cron';
import { traceOf } from '../common/error-trace.js';
import { mintId } from '../common/ids.js';
import { inBatches } from '../common/batches.js';
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

/** After this time another process can take over; a repeated sweep is harmless. */
const LEASE_MS = 120_000;
/** The batch size of deletes, so that no operation keeps the store busy for long. */
const BATCH = 500;
/** The number of turns per batch of deleted events: each turn may have hundreds of rows. */
const EVENTS_BATCH = 50;
const MAX_TRIM_MS = 60_000;

/** The stores that are swept besides sessions, and the lease for the sweep. */
export interface SweptStore {
  readonly leases: LeaseStore;
  readonly turns: Pick<TurnLedger, 'purgeSettled'>;
  readonly events: Pick<TurnEventLog, 'deleteExpired'>;
  readonly state: Pick<StateStore, 'deleteExpired' | 'evictIdle'>;
}

/** Runs a part of the sweep. @returns `otherwise` if it fails */
type Attempt = <T>(part: () => Promise<T>, otherwise: T) => Promise<T>;

/** Counts of the sweeps of this process. */
export interface SweepCounts {
  readonly runs: number;
  /** Runs that were skipped because another run was still active, in this or another process. */
  readonly skipped: number;
  /** Runs that a store error ended. */
  readonly failed: number;
  readonly suspended: number;
  readonly expired: number;
  readonly purged: number;
  /** Settled turns that were deleted. */
  readonly turns: number;
  /** Turns whose events had expired and were deleted by the sweep. */
  readonly events: number;
  /** State documents that were deleted because they had expired, or exceeded the limit of their namespace. */
  readonly documents: number;
}

/**
 * Limits the size of a store, by cron, in one process at a time (SES-20, NST-06). It suspends, expires and deletes idle
 * sessions, and deletes settled turns and expired state documents, in batches.
 */
export class SessionSweeper {
  private readonly logger = new Logger(SessionSweeper.name);
  private readonly holder = mintId();
  private job: CronJob | null = null;
  private running: Promise<void> | null = null;
  private readonly stopping = new AbortController();
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

  /** @param registry of the application's ScheduleModule, if it exists: the job is registered there */
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

  /** Waits for the current batch. Another process, or the next start, continues. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.job?.stop();
    if (this.job && this.registry?.doesExist('cron', SWEEP_JOB)) this.registry.deleteCronJob(SWEEP_JOB);
    this.job = null;
    // The caller of the sweep receives its error.
    await this.running?.catch(() => undefined);
  }

  /** Works like {@link sweep}, for a timer: an error is logged, and the next run retries. */
  async run(): Promise<void> {
    try {
      await this.sweep();
    } catch (error) {
      this.logger.error('The sweep of idle sessions failed; the next run retries.', traceOf(error));
    }
  }

  /** Sweeps once now, unless a sweep is active here or in another process. @throws what the store throws */
  async sweep(): Promise<void> {
    if (this.running) {
      this.countRun('skipped');
      return;
    }
    this.running = this.telemetry
      .span({ name: 'sweep', parent: null }, () => this.sweepWithLease())
      .catch((error: unknown) => {
        this.countRun('failed');
        throw error;
      })
      .finally(() => {
        this.running = null;
      });
    await this.running;
  }

  private async sweepWithLease(): Promise<void> {
    const { leases } = this.store;
    const lease = await leases.acquire(SWEEP_JOB, this.holder, LEASE_MS);
    if (!lease) {
      this.countRun('skipped');
      return;
    }
    try {
      await this.sweepAll(this.settings);
      this.countRun('runs');
    } finally {
      await leases.release(lease).catch((error: unknown) => {
        this.logger.warn(
          `The lease of the sweep was not released. It ends after ${LEASE_MS / 1000} s.`,
          traceOf(error),
        );
      });
    }
  }

  /** Runs all parts, also if one of them fails. @throws the first error; the others are logged */
  private async sweepAll(settings: SweepSettings): Promise<void> {
    const errors: unknown[] = [];
    const attempt: Attempt = (part, otherwise) =>
      part().catch((error: unknown) => {
        errors.push(error);
        return otherwise;
      });
    await this.sweepSessions(settings, attempt);
    if (!this.stopping.signal.aborted) await this.trim(settings, attempt);
    const [first, ...others] = errors;
    for (const error of others) this.logger.error('A part of the sweep failed.', traceOf(error));
    if (errors.length > 0) throw first;
  }

  private async sweepSessions(
    { maxPerRun, expireAfterMs, purgeAfterMs }: SweepSettings,
    attempt: Attempt,
  ): Promise<void> {
    const bound = { maxSessions: maxPerRun, signal: this.stopping.signal };
    const suspended = await attempt(() => this.sessions.sweepStale(undefined, bound), []);
    const expired = await attempt(() => this.sessions.sweepExpired(expireAfterMs, bound), []);
    const purged =
      purgeAfterMs === undefined ? [] : await attempt(() => this.sessions.purgeExpired(purgeAfterMs, bound), []);
    this.countSwept({ suspended: suspended.length, expired: expired.length, purged: purged.length });
    if (suspended.length + expired.length + purged.length > 0) {
      this.logger.log(
        `Sessions suspended: ${suspended.length}, expired: ${expired.length}, deleted: ${purged.length}.`,
      );
    }
  }

  private async trim({ purgeTurnsAfterMs, maxDocuments }: SweepSettings, attempt: Attempt): Promise<void> {
    const { turns, events, state } = this.store;
    const ends = performance.now() + MAX_TRIM_MS;
    const isOver = (): boolean => this.stopping.signal.aborted || performance.now() >= ends;
    const deleteWith = (batch: number, work: (limit: number) => Promise<number>): Promise<number> =>
      attempt(() => inBatches(batch, work, isOver), 0);
    const settled =
      purgeTurnsAfterMs === undefined
        ? 0
        : await deleteWith(BATCH, (limit) => turns.purgeSettled(purgeTurnsAfterMs, limit));
    const streams = await deleteWith(EVENTS_BATCH, (limit) => events.deleteExpired(limit));
    let documents = await deleteWith(BATCH, (limit) => state.deleteExpired(limit));
    for (const { namespace, keep } of maxDocuments) {
      documents += await deleteWith(BATCH, (limit) => state.evictIdle(namespace, keep, limit));
    }
    this.countSwept({ turns: settled, events: streams, documents });
    if (settled + streams + documents > 0) {
      this.logger.log(
        `Deleted: ${settled} settled turns, expired events of ${streams} turns, ${documents} state documents.`,
      );
    }
  }

  private countRun(outcome: 'runs' | 'skipped' | 'failed'): void {
    this.count[outcome] += 1;
    const name = outcome === 'runs' ? 'done' : outcome;
    this.telemetry.count('agent_sessions.sweep.runs', 1, { [SWEEP_OUTCOME]: name });
  }

  private countSwept(counts: Partial<SweepCounts>): void {
    for (const [action, items] of Object.entries(counts) as [keyof SweepCounts, number][]) {
      this.count[action] += items;
      if (items > 0) this.telemetry.count('agent_sessions.sweep.items', items, { [SWEEP_ACTION]: action });
    }
  }
}
