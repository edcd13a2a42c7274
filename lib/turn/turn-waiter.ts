import { SessionsError, StoreUnavailableError } from '../common/sessions.error.js';
import { ShuttingDownError, TurnNotFoundError } from '../ledger/turn.errors.js';
import { type TurnChanges, type TurnLedger } from '../ledger/turn.store.js';
import { isTerminal, type Turn } from '../ledger/turn.js';
import { ChangesSubscription } from './changes-subscription.js';

interface Waiting {
  readonly sessionId: string;
  readonly resolve: (turn: Turn) => void;
  readonly reject: (error: unknown) => void;
}

/** A turn whose notifications are observed. */
interface Watch {
  readonly waiting: Set<Waiting>;
  /** True if the turn was already watched at the last interval. */
  isOld: boolean;
  /** True after a notification for which the ledger was not read yet. */
  isStale: boolean;
  reading: Promise<void> | null;
  ended: Turn | null;
}

/**
 * Waits for turns to end in any process (TRN-10). A notification contains the ended turn, or causes a read of the
 * ledger. Because notifications can be lost, the ledger is also read at intervals. All waits share one subscription and
 * one timer.
 */
export class TurnWaiter {
  private readonly watches = new Map<string, Watch>();
  private closed = false;
  private readonly subscription: ChangesSubscription;

  constructor(
    private readonly ledger: TurnLedger,
    private readonly changes: TurnChanges,
    /** Returns true if an attempt of the turn runs in this process; `onChange` is then called at its end. */
    private readonly runsHere: (turnId: string) => boolean,
    pollMs = 1000,
  ) {
    this.subscription = new ChangesSubscription(changes, (changed, turn) => this.onChange(changed, turn), {
      everyMs: pollMs,
      check: () => this.checkAll(),
      keepsProcess: true,
    });
  }

  /**
   * Watches a turn that is about to be accepted, so that `settled` needs no read. Call `settled` or `forget` after it.
   */
  expect(turnId: string): void {
    // The same turn may be submitted twice at once.
    if (!this.watches.has(turnId)) this.watch(turnId);
  }

  forget(turnId: string): void {
    const watch = this.watches.get(turnId);
    if (watch?.waiting.size === 0) {
      // Release the turn at once: the map's former tables may keep the watch for a while, see RunningAttempts.
      watch.ended = null;
      this.watches.delete(turnId);
    }
    if (this.watches.size === 0) this.subscription.close();
  }

  /**
   * Resolves with the ended turn.
   * @param timeoutMs resolves with `null` after this time; the turn is not affected
   * @throws ShuttingDownError when the process stops first; TurnNotFoundError; UnreadableRecordError
   */
  async settled(turn: Turn, timeoutMs?: number): Promise<Turn | null> {
    const known = this.watches.get(turn.id);
    const ended = isTerminal(turn.status) ? turn : known?.ended;
    if (ended || this.closed) {
      this.forget(turn.id);
      if (ended) return ended;
      throw new ShuttingDownError(turn.sessionId, turn.id);
    }
    const expected = known?.waiting.size === 0 && !known.isStale;
    const watch = known ?? this.watch(turn.id);
    let entry: Waiting | undefined;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Turn | null>((resolve, reject) => {
        entry = { sessionId: turn.sessionId, resolve, reject };
        watch.waiting.add(entry);
        if (timeoutMs !== undefined) timer = setTimeout(() => resolve(null), timeoutMs);
        // The turn may have ended between the caller's read and the subscription.
        if (!expected) void this.check(turn.id);
      });
    } finally {
      clearTimeout(timer);
      if (entry) watch.waiting.delete(entry);
      this.forget(turn.id);
    }
  }

  /** Handles a change of the turn. @param turn its current record, if known */
  onChange(turnId: string, turn?: Turn): void {
    const watch = this.watches.get(turnId);
    if (!watch) return;
    if (turn && isTerminal(turn.status)) return this.end(watch, turn);
    if (this.runsHere(turnId)) return;
    watch.isStale = true;
    if (watch.waiting.size > 0) void this.check(turnId);
  }

  /** Checks a last time, because a notification may still be on its way; then rejects all remaining waits. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.watches.keys()].map((turnId) => this.check(turnId)));
    for (const [turnId, { waiting }] of this.watches) {
      for (const { sessionId, reject } of waiting) reject(new ShuttingDownError(sessionId, turnId));
    }
  }

  private watch(turnId: string): Watch {
    const watch: Watch = { waiting: new Set(), isOld: false, isStale: false, reading: null, ended: null };
    this.watches.set(turnId, watch);
    this.subscription.open();
    return watch;
  }

  private checkAll(): void {
    for (const [turnId, watch] of this.watches) {
      // With store-wide notifications a loss is rare, and most turns end soon: skip the first interval.
      const isNew = this.changes.reach === 'store' && !watch.isOld;
      watch.isOld = true;
      if (!isNew && !this.runsHere(turnId)) void this.check(turnId);
    }
  }

  private async check(turnId: string): Promise<void> {
    const watch = this.watches.get(turnId);
    if (!watch) return;
    watch.isStale = true;
    if (watch.waiting.size === 0) return;
    watch.reading ??= this.read(turnId, watch).finally(() => (watch.reading = null));
    await watch.reading;
  }

  /**
   * Reads the ledger, one read at a time. A notification during a read causes another one, because the result may be
   * older.
   */
  private async read(turnId: string, watch: Watch): Promise<void> {
    while (watch.isStale && !watch.ended && watch.waiting.size > 0) {
      watch.isStale = false;
      try {
        const turn = await this.ledger.get(turnId);
        if (turn && isTerminal(turn.status)) this.end(watch, turn);
        if (!turn) for (const { reject } of watch.waiting) reject(new TurnNotFoundError(turnId));
      } catch (error) {
        // While the store is unavailable, the next interval checks again. A record that cannot be read stays so.
        const isPermanent = SessionsError.isInstance(error) && !StoreUnavailableError.isInstance(error);
        if (isPermanent) for (const { reject } of watch.waiting) reject(error);
      }
    }
  }

  private end(watch: Watch, turn: Turn): void {
    watch.ended = turn;
    for (const { resolve } of watch.waiting) resolve(turn);
  }
}
