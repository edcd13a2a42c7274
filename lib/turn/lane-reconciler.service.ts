import { Logger } from '@nestjs/common';
import { traceOf } from '../common/error-trace.js';
import { type TurnRuntime } from './turn-runtime.js';

const BATCH = 500;
/** A look comes up to this share of its interval sooner or later: in step, one process would get what another one waits for, for ever. */
const SPREAD = 0.2;

/**
 * Rings the lanes that somebody must look at: work whose ring was lost, lapsed leases, due retries and time-outs. Runs in
 * every working process, at start and then about every `reconcileMs`; needs no lease, because a ring too many does no harm.
 */
export class LaneReconciler {
  private readonly logger = new Logger(LaneReconciler.name);
  private timer: NodeJS.Timeout | null = null;
  private running: Promise<void> = Promise.resolve();
  private stopped = false;
  private failing = false;

  constructor(private readonly runtime: TurnRuntime) {}

  /** What the lanes were offered to before may be gone with its process, so those that wait longest are offered first (FIX-16). */
  async start(): Promise<void> {
    let offered = 0;
    this.running = this.reconcile(true, (lanes) => {
      offered += lanes;
    });
    await this.running;
    if (offered === 0) return;
    const lanes = offered === 1 ? '1 lane is' : `${offered} lanes are`;
    this.logger.log(`Looked for turns that were left behind: ${lanes} offered.`);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    if (this.timer) clearTimeout(this.timer);
    await this.running;
  }

  /**
   * One look. A process whose queue does not answer leaves the lanes to others: what it is given by the ledger, they are not
   * given for a while.
   * @param includeOffered see `TurnLedger.due`
   * @returns how many lanes were rung
   */
  async ringDue(includeOffered = false): Promise<number> {
    const { ledger, bell, recovery } = this.runtime;
    if (!(await bell.isHeard())) return 0;
    const due = await ledger.due(BATCH, includeOffered);
    // All at once: while one after the other is rung on a slow queue, nobody would look for the next lost worker.
    await Promise.all(
      due.map(async (sessionId) => {
        recovery.rings(sessionId);
        await bell.ring(sessionId);
      }),
    );
    return due.length;
  }

  /** @param tell is told how many lanes were rung, batch by batch */
  private async reconcile(isStart = false, tell: (lanes: number) => void = () => undefined): Promise<void> {
    try {
      for (let includeOffered = isStart; ; includeOffered = false) {
        const lanes = await this.ringDue(includeOffered);
        tell(lanes);
        // A full batch may leave some behind: after an outage, or when all lanes go on again.
        if (lanes < BATCH || this.stopped) break;
      }
      this.failing = false;
    } catch (error) {
      // Once per outage, not once a second.
      if (!this.failing) this.logger.error('Could not look for lanes that need attention; trying on.', traceOf(error));
      this.failing = true;
    }
    if (this.stopped) return;
    this.timer = setTimeout(() => {
      this.running = this.reconcile();
    }, spread(this.runtime.settings.reconcileMs));
  }
}

function spread(intervalMs: number): number {
  return intervalMs * (1 + SPREAD * (2 * Math.random() - 1));
}
