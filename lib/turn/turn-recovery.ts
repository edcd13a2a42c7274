import { type Lane } from './lane.js';

/** What a process has found where turns might be left behind, since it started (BOT-32). */
export interface RecoveryCounts {
  /** Turns that had begun and had no live worker: lost, stopped or between two attempts. Each was offered for another attempt. */
  readonly resumed: number;
  /** Lanes with nothing to resume: their turn has not begun, waits for a signal, or has a live worker by now. */
  readonly skipped: number;
  /** Lanes that could not be read; they were offered all the same. */
  readonly failed: number;
}

/** Counts the lanes that the reconciler of this process finds. */
export class TurnRecovery {
  private count = { resumed: 0, skipped: 0, failed: 0 };

  get counts(): RecoveryCounts {
    return { ...this.count };
  }

  found({ head }: Lane): void {
    const isResumed = head?.status === 'running' ? isLapsed(head.leaseUntil) : head?.startedAt !== undefined;
    this.count[isResumed && head?.status !== 'waiting' ? 'resumed' : 'skipped'] += 1;
  }

  failed(): void {
    this.count.failed += 1;
  }
}

/** By the clock of this process: only a count depends on it. */
function isLapsed(leaseUntil = ''): boolean {
  return Date.parse(leaseUntil) <= Date.now();
}
