import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { StoreUnavailableError } from '../common/sessions.error.js';
import { type TurnDependencies } from './turn-dependencies.js';

const BATCH = 500;
/**
 * The interval varies by up to this share. A lane that one process was offered is not offered to others for a while. If
 * all processes queried in step, the first one could always get the lanes that only another one can run.
 */
const SPREAD = 0.2;

/**
 * Notifies lanes that are due: lost notifications, lapsed leases, due retries and timeouts. Runs in every working
 * process, at start and then about every `reconcileMs`. It needs no lease, because an extra notification has no effect.
 */
export class LaneReconciler {
  private readonly logger = new Logger(LaneReconciler.name);
  private timer: NodeJS.Timeout | null = null;
  private running: Promise<void> = Promise.resolve();
  private stopped = false;
  /** When queries began to fail, by `performance.now()`. */
  private failingSince: number | null = null;

  constructor(
    private readonly dependencies: Pick<
      TurnDependencies,
      'ledger' | 'notifier' | 'recovery' | 'settings' | 'storeWatch'
    >,
  ) {}

  /**
   * Offers all due lanes, the longest waiting first. The first {@link BATCH} include lanes that were offered before,
   * because the process that received the offer may have ended (FIX-16). Later calls find the rest when their period is
   * over, see `TurnLedger.due`.
   */
  async start(): Promise<void> {
    let offered = 0;
    this.running = this.reconcile(true, (lanes) => {
      offered += lanes;
    });
    await this.running;
    if (offered === 0) return;
    const lanes = offered === 1 ? '1 lane is' : `${offered} lanes are`;
    this.logger.log(`Recovery at start: ${lanes} offered to workers.`);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    if (this.timer) clearTimeout(this.timer);
    await this.running;
  }

  /**
   * Notifies due lanes once. A process whose queue does not answer leaves the lanes to others, because lanes that the
   * ledger returns here are not returned to other processes for a while.
   * @param includeOffered see `TurnLedger.due`
   * @param isStart true at the start of the process: all lanes have waited, and are offered in order (FIX-16)
   * @returns the number of lanes that were notified
   */
  async notifyDue(includeOffered = false, isStart = false): Promise<number> {
    const { ledger, notifier, recovery } = this.dependencies;
    if (!(await notifier.isAnswered())) return 0;
    const due = await ledger.due(BATCH, includeOffered);
    // Notify all in parallel: a slow queue would otherwise delay the next search for lost workers.
    await Promise.all(
      due.map(async (sessionId) => {
        recovery.notifies(sessionId);
        await notifier.notify(sessionId, 0, !isStart);
      }),
    );
    return due.length;
  }

  /** @param onBatch receives the number of notified lanes of each batch */
  private async reconcile(isStart = false, onBatch: (lanes: number) => void = () => undefined): Promise<void> {
    const { storeWatch } = this.dependencies;
    try {
      // A process that claims nothing leaves the lanes to others.
      for (let includeOffered = isStart; storeWatch.isUsable; includeOffered = false) {
        const lanes = await this.notifyDue(includeOffered, isStart);
        onBatch(lanes);
        // A full batch may leave some behind, for example after an outage, or when all lanes are resumed.
        if (lanes < BATCH || this.stopped) break;
      }
      if (this.failingSince !== null) storeWatch.outages.ended();
      this.failingSince = null;
    } catch (error) {
      storeWatch.failed(error);
      const isFirst = this.failingSince === null;
      this.failingSince ??= performance.now();
      if (StoreUnavailableError.isInstance(error)) storeWatch.outages.repeats('due', this.failingSince, error);
      else if (isFirst) this.logger.error('Could not query the lanes that are due; retrying.', traceOf(error));
    }
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.running = this.reconcile();
    }, spread(this.dependencies.settings.reconcileMs));
  }
}

function spread(intervalMs: number): number {
  return intervalMs * (1 + SPREAD * (2 * Math.random() - 1));
}
