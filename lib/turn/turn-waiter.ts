import { outsideRequests } from '../common/outside-requests.js';
import { ShuttingDownError, TurnNotFoundError } from '../ledger/turn.errors.js';
import { type TurnHints, type TurnLedger } from '../ledger/turn.store.js';
import { isTerminal, type Turn } from '../ledger/turn.js';

interface Waiting {
  readonly sessionId: string;
  readonly resolve: (turn: Turn) => void;
  readonly reject: (error: unknown) => void;
}

/** A turn of which hints are listened for. */
interface Watch {
  readonly waiting: Set<Waiting>;
  /** It was there at the last look by the clock. */
  isOld: boolean;
  /** Something was heard that the ledger was not asked about yet. */
  heard: boolean;
  asking: Promise<void> | null;
  ended: Turn | null;
}

/**
 * Waits for turns to end, whichever process runs them (TRN-10): a hint brings the ended turn or makes it read the ledger, and
 * because hints can be lost it also reads once in a while. One subscription and one timer for all that wait.
 */
export class TurnWaiter {
  private readonly watches = new Map<string, Watch>();
  private unsubscribe: (() => void) | null = null;
  private timer: NodeJS.Timeout | null = null;
  private closed = false;
  /** Neither hints nor looks by the clock belong to the request that happened to wait first. */
  private readonly outsideRequests = outsideRequests();

  constructor(
    private readonly ledger: TurnLedger,
    private readonly hints: TurnHints,
    /** Whether an attempt of the turn runs in this process; then `hear` is called at its end. */
    private readonly runsHere: (turnId: string) => boolean,
    private readonly pollMs = 1000,
  ) {}

  /** Listens for a turn that is about to be accepted, so that `settled` need not look. Follow with it, or with `forget`. */
  expect(turnId: string): void {
    // The same turn may be submitted twice at once.
    if (!this.watches.has(turnId)) this.watch(turnId);
  }

  forget(turnId: string): void {
    const watch = this.watches.get(turnId);
    if (watch?.waiting.size === 0) {
      // The map's former tables may hold the watch for a while, see RunningAttempts: the turn goes at once.
      watch.ended = null;
      this.watches.delete(turnId);
    }
    if (this.watches.size > 0) return;
    this.unsubscribe?.();
    this.unsubscribe = null;
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
  }

  /**
   * Resolves with the ended turn.
   * @param timeoutMs then resolves with `null`; the turn is not touched
   * @throws ShuttingDownError when the process stops first
   */
  async settled(turn: Turn, timeoutMs?: number): Promise<Turn | null> {
    const known = this.watches.get(turn.id);
    const ended = isTerminal(turn.status) ? turn : known?.ended;
    if (ended || this.closed) {
      this.forget(turn.id);
      if (ended) return ended;
      throw new ShuttingDownError(turn.sessionId, turn.id);
    }
    const expected = known?.waiting.size === 0 && !known.heard;
    const watch = known ?? this.watch(turn.id);
    let entry: Waiting | undefined;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Turn | null>((resolve, reject) => {
        entry = { sessionId: turn.sessionId, resolve, reject };
        watch.waiting.add(entry);
        if (timeoutMs !== undefined) timer = setTimeout(() => resolve(null), timeoutMs);
        // It may have ended between the caller's read and the subscription.
        if (!expected) void this.check(turn.id);
      });
    } finally {
      clearTimeout(timer);
      if (entry) watch.waiting.delete(entry);
      this.forget(turn.id);
    }
  }

  /** Something became of the turn. @param turn as it is now, where that is known */
  hear(turnId: string, turn?: Turn): void {
    const watch = this.watches.get(turnId);
    if (!watch) return;
    if (turn && isTerminal(turn.status)) return this.end(watch, turn);
    if (this.runsHere(turnId)) return;
    watch.heard = true;
    if (watch.waiting.size > 0) void this.check(turnId);
  }

  /** Looks a last time, because the hint of what has just settled may be on its way; then rejects what still waits. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.watches.keys()].map((turnId) => this.check(turnId)));
    for (const [turnId, { waiting }] of this.watches) {
      for (const { sessionId, reject } of waiting) reject(new ShuttingDownError(sessionId, turnId));
    }
  }

  private watch(turnId: string): Watch {
    const watch: Watch = { waiting: new Set(), isOld: false, heard: false, asking: null, ended: null };
    this.watches.set(turnId, watch);
    this.outsideRequests(() => this.listen());
    return watch;
  }

  private listen(): void {
    this.unsubscribe ??= this.hints.subscribe((changed, turn) => this.hear(changed, turn));
    this.timer ??= setInterval(() => this.checkAll(), this.pollMs);
  }

  private checkAll(): void {
    for (const [turnId, watch] of this.watches) {
      // Where hints come from everywhere a turn is seldom forgotten, and most are over before long.
      const isNew = this.hints.reach === 'store' && !watch.isOld;
      watch.isOld = true;
      if (!isNew && !this.runsHere(turnId)) void this.check(turnId);
    }
  }

  private async check(turnId: string): Promise<void> {
    const watch = this.watches.get(turnId);
    if (!watch) return;
    watch.heard = true;
    if (watch.waiting.size === 0) return;
    watch.asking ??= this.ask(turnId, watch).finally(() => (watch.asking = null));
    await watch.asking;
  }

  /** One question at a time, and another one when something was heard meanwhile: the answer may be older. */
  private async ask(turnId: string, watch: Watch): Promise<void> {
    while (watch.heard && !watch.ended && watch.waiting.size > 0) {
      watch.heard = false;
      try {
        const turn = await this.ledger.get(turnId);
        if (turn && isTerminal(turn.status)) this.end(watch, turn);
        if (!turn) for (const { reject } of watch.waiting) reject(new TurnNotFoundError(turnId));
      } catch {
        // The store is away for a moment: the next poll asks again.
      }
    }
  }

  private end(watch: Watch, turn: Turn): void {
    watch.ended = turn;
    for (const { resolve } of watch.waiting) resolve(turn);
  }
}
