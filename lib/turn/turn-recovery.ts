import QuickLRU from 'quick-lru';
import { type Turn } from '../ledger/turn.js';

/** The number of remembered ids: at least this many, at most twice as many. */
const REMEMBERED = 5000;

/** Counts the results of lanes that the reconciler of this process notifies, and of turns that it takes over. */
export class TurnRecovery {
  private count = { resumed: 0, skipped: 0, failed: 0 };
  /** Notified lanes. Lanes that another process visits are evicted over time. */
  private readonly notified = new QuickLRU<string, true>({ maxSize: REMEMBERED });
  /** Lanes that could not be claimed because of a store error. */
  private readonly refused = new QuickLRU<string, true>({ maxSize: REMEMBERED });
  private readonly resumed = new QuickLRU<string, true>({ maxSize: REMEMBERED });
  private readonly passed = new QuickLRU<string, true>({ maxSize: REMEMBERED });

  /** Counts since the start of the process. Repeated offers count once (BOT-32). */
  get counts(): { readonly resumed: number; readonly skipped: number; readonly failed: number } {
    return { ...this.count };
  }

  /** Called before the reconciler notifies a lane. */
  notifies(sessionId: string): void {
    add(this.notified, sessionId);
  }

  /** Observes the first claim of a visit. */
  async watch<T extends { readonly hasWork: boolean }>(sessionId: string, claim: () => Promise<T>): Promise<T> {
    const wasNotified = this.notified.delete(sessionId);
    try {
      const answer = await claim();
      this.refused.delete(sessionId);
      if (wasNotified && !answer.hasWork) this.count.skipped += 1;
      return answer;
    } catch (error) {
      if (wasNotified && add(this.refused, sessionId)) this.count.failed += 1;
      throw error;
    }
  }

  /** Called when an attempt begins. */
  begins(turn: Turn): void {
    if (turn.lost > 0 && add(this.resumed, turn.id)) this.count.resumed += 1;
  }

  /** Called when this process has returned a turn to its lane, because it does not have the orchestrator. */
  passes(turn: Turn): void {
    if (add(this.passed, turn.id)) this.count.skipped += 1;
  }

  /** Called when a turn has ended. */
  ends(turn: Turn): void {
    if (this.resumed.delete(turn.id) && turn.status === 'failed') this.count.failed += 1;
  }
}

/** @returns true if the id is new */
function add(ids: QuickLRU<string, true>, id: string): boolean {
  if (ids.has(id)) return false;
  ids.set(id, true);
  return true;
}
