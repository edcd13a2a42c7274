import { type Turn } from '../ledger/turn.js';

const REMEMBERED = 10_000;

/** What came of the turns that others left behind, in this process since it started (BOT-32); however often they are offered. */
export interface RecoveryCounts {
  /**
   * Turns whose worker was lost and that this process has attempted since, each counted once.
   */
  readonly resumed: number;
  /** Turns that this process has no orchestrator for, or one too old; lanes that it looked at to find nothing to do. */
  readonly skipped: number;
  /** Resumed turns that then failed for good here; lanes that the store would not let it claim. */
  readonly failed: number;
}

/** Counts what comes of the lanes that the reconciler of this process rings for, and of the turns that it takes over. */
export class TurnRecovery {
  private count = { resumed: 0, skipped: 0, failed: 0 };
  /** Lanes that were rung for; those that another process visits are forgotten in time. */
  private readonly rung = new Set<string>();
  private readonly refused = new Set<string>();
  private readonly resumed = new Set<string>();
  private readonly passed = new Set<string>();

  get counts(): RecoveryCounts {
    return { ...this.count };
  }

  /** The reconciler is about to ring. */
  rings(sessionId: string): void {
    add(this.rung, sessionId);
  }

  /** The first claim of a visit. */
  async watch<T extends { readonly hasWork: boolean }>(sessionId: string, claim: () => Promise<T>): Promise<T> {
    const wasRung = this.rung.delete(sessionId);
    try {
      const answer = await claim();
      this.refused.delete(sessionId);
      if (wasRung && !answer.hasWork) this.count.skipped += 1;
      return answer;
    } catch (error) {
      if (wasRung && add(this.refused, sessionId)) this.count.failed += 1;
      throw error;
    }
  }

  /** An attempt begins. */
  begins(turn: Turn): void {
    if (turn.lost > 0 && add(this.resumed, turn.id)) this.count.resumed += 1;
  }

  passes(turn: Turn): void {
    if (add(this.passed, turn.id)) this.count.skipped += 1;
  }

  /** A turn is over. */
  ends(turn: Turn): void {
    if (this.resumed.delete(turn.id) && turn.status === 'failed') this.count.failed += 1;
  }
}

/** Forgets the one that was added first when there are too many. @returns whether it is new */
function add(set: Set<string>, id: string): boolean {
  if (set.has(id)) return false;
  set.add(id);
  if (set.size > REMEMBERED) set.delete(set.values().next().value!);
  return true;
}
