import { isTerminal, type Turn } from '../ledger/turn.js';
import { type TurnChanges, type TurnLedger } from '../ledger/turn.store.js';
import { ChangesSubscription } from './changes-subscription.js';

const KEEP_AT_MOST = 10_000;
/** The interval of checks for ended turns whose notification was lost. */
const CHECK_MS = 60_000;

/** Values from the caller that exist only in its process. */
export interface CallerParts {
  readonly context?: Record<string, unknown> | undefined;
  readonly onEvent?: TurnListener | undefined;
}

/** Receives the events of a turn while it runs in the caller's process. The runner defines their types. */
export type TurnListener = EventMethod['listen'];

/** Declared as a method, so that a listener can accept a narrower event type. */
interface EventMethod {
  listen(event: { readonly type: string }): unknown;
}

interface Kept {
  readonly context: Readonly<Record<string, unknown>>;
  readonly onEvent: TurnListener | undefined;
  /** By `performance.now()`. */
  readonly since: number;
}

/**
 * The `context` and `onEvent` of turns from callers in this process, until the turns have ended in any process. They
 * are never stored: an attempt in another process, or after a restart, does not have them (BOT-02).
 */
export class TurnContexts {
  private readonly kept = new Map<string, Kept>();
  private readonly subscription: ChangesSubscription;

  /** @param runsTurns false if this process runs no turns; nothing is kept then */
  constructor(
    private readonly runsTurns: boolean,
    private readonly ledger: Pick<TurnLedger, 'get'>,
    changes: TurnChanges,
    private readonly checkMs = CHECK_MS,
  ) {
    this.subscription = new ChangesSubscription(changes, (changed, turn) => this.onChange(changed, turn), {
      everyMs: checkMs,
      check: () => this.checkOld(),
      keepsProcess: false,
    });
  }

  /**
   * Keeps the values of a turn. Call it before the turn is accepted, because its attempt may begin at once. The first
   * call wins.
   */
  keep(turnId: string, { context, onEvent }: CallerParts): void {
    if (!this.runsTurns || (!context && !onEvent) || this.kept.has(turnId)) return;
    this.kept.set(turnId, { context: Object.freeze({ ...context }), onEvent, since: performance.now() });
    this.subscription.open();
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEEP_AT_MOST) break;
      this.drop(oldest);
    }
  }

  get(turnId: string): Readonly<Record<string, unknown>> | undefined {
    return this.kept.get(turnId)?.context;
  }

  listener(turnId: string): TurnListener | undefined {
    return this.kept.get(turnId)?.onEvent;
  }

  drop(turnId: string): void {
    this.kept.delete(turnId);
    if (this.kept.size === 0) this.close();
  }

  close(): void {
    this.kept.clear();
    this.subscription.close();
  }

  private onChange(turnId: string, turn?: Turn): void {
    if (!this.kept.has(turnId)) return;
    if (turn && isTerminal(turn.status)) this.drop(turnId);
    // Wait, because this process's own worker may drop it in a moment.
    else setImmediate(() => void this.check(turnId));
  }

  private async check(turnId: string): Promise<void> {
    if (!this.kept.has(turnId)) return;
    // If the store is unavailable, a later check repeats this.
    const turn = await this.ledger.get(turnId).catch(() => undefined);
    if (turn === null || (turn && isTerminal(turn.status))) this.drop(turnId);
  }

  /** Checks turns one after the other, except recent ones, which may not have been accepted yet. */
  private async checkOld(): Promise<void> {
    const before = performance.now() - this.checkMs;
    for (const [turnId, { since }] of this.kept) {
      if (since > before) break;
      await this.check(turnId);
    }
  }
}
