import { ShuttingDownError, TurnNotFoundError } from './turn.errors.js';
import { type TurnHints, type TurnLedger } from './turn.store.js';
import { isTerminal, type Turn } from './turn.js';

interface Waiting {
  readonly sessionId: string;
  readonly resolve: (turn: Turn) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Waits for turns to end, whichever process runs them (TRN-10): a hint makes it read the ledger, and because hints can
 * be lost it also reads once in a while. One subscription and one timer for all that wait.
 */
export class TurnWaiter {
  private readonly waiting = new Map<string, Set<Waiting>>();
  private unsubscribe: (() => void) | null = null;
  private timer: NodeJS.Timeout | null = null;
  private closed = false;

  constructor(
    private readonly ledger: TurnLedger,
    private readonly hints: TurnHints,
    private readonly pollMs = 1000,
  ) {}

  /**
   * Resolves with the ended turn.
   * @param timeoutMs then resolves with `null`; the turn is not touched
   * @throws ShuttingDownError when the process stops first
   */
  async settled(turn: Turn, timeoutMs?: number): Promise<Turn | null> {
    if (isTerminal(turn.status)) return turn;
    if (this.closed) throw new ShuttingDownError(turn.sessionId, turn.id);
    let entry: Waiting | undefined;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Turn | null>((resolve, reject) => {
        entry = { sessionId: turn.sessionId, resolve, reject };
        this.add(turn.id, entry);
        if (timeoutMs !== undefined) timer = setTimeout(() => resolve(null), timeoutMs);
        // It may have ended between the caller's read and the subscription.
        void this.check(turn.id);
      });
    } finally {
      clearTimeout(timer);
      if (entry) this.remove(turn.id, entry);
    }
  }

  /** Looks a last time, because the hint of what has just settled may be on its way; then rejects what still waits. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.waiting.keys()].map((turnId) => this.check(turnId)));
    for (const [turnId, entries] of this.waiting) {
      for (const { sessionId, reject } of entries) reject(new ShuttingDownError(sessionId, turnId));
    }
  }

  private add(turnId: string, entry: Waiting): void {
    const entries = this.waiting.get(turnId) ?? new Set();
    this.waiting.set(turnId, entries.add(entry));
    this.unsubscribe ??= this.hints.subscribe((changed) => void this.check(changed));
    this.timer ??= setInterval(() => this.checkAll(), this.pollMs);
  }

  private remove(turnId: string, entry: Waiting): void {
    const entries = this.waiting.get(turnId);
    entries?.delete(entry);
    if (entries?.size === 0) this.waiting.delete(turnId);
    if (this.waiting.size > 0) return;
    this.unsubscribe?.();
    this.unsubscribe = null;
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
  }

  private checkAll(): void {
    for (const turnId of this.waiting.keys()) void this.check(turnId);
  }

  private async check(turnId: string): Promise<void> {
    const entries = this.waiting.get(turnId);
    if (!entries) return;
    try {
      const turn = await this.ledger.get(turnId);
      if (turn && !isTerminal(turn.status)) return;
      for (const { resolve, reject } of entries) {
        if (turn) resolve(turn);
        else reject(new TurnNotFoundError(turnId));
      }
    } catch {
      // The store is away for a moment: the next poll asks again.
    }
  }
}
