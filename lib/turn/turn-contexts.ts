import { outsideRequests } from '../common/outside-requests.js';
import { isTerminal, type Turn } from '../ledger/turn.js';
import { type TurnHints, type TurnLedger } from '../ledger/turn.store.js';

const KEEP_AT_MOST = 10_000;
/** Between looks at turns of whose end no hint told. */
const LOOK_MS = 60_000;

/** What a caller gave that only its own process has. */
export interface CallerParts {
  readonly context?: Record<string, unknown> | undefined;
  readonly onEvent?: TurnListener | undefined;
}

/** Told what happens to a turn while it runs in the caller's process; of what exactly, those know who run it. */
export type TurnListener = EventMethod['listen'];

/** A method, so that a listener may ask for events of a narrower type. */
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
 * The `context` and `onEvent` that callers of this process gave with their turns, until these are over, wherever and however they
 * end. Never stored: an attempt elsewhere, or after a restart, does without (BOT-02).
 */
export class TurnContexts {
  private readonly kept = new Map<string, Kept>();
  private unsubscribe: (() => void) | null = null;
  private timer: NodeJS.Timeout | null = null;
  /** Neither hints nor looks by the clock belong to the request that happened to be first. */
  private readonly outsideRequests = outsideRequests();

  /** @param runsTurns whether this process does; otherwise nobody would ask for what was kept, and nothing is */
  constructor(
    private readonly runsTurns: boolean,
    private readonly ledger: Pick<TurnLedger, 'get'>,
    private readonly hints: TurnHints,
    private readonly lookMs = LOOK_MS,
  ) {}

  /** Before the turn is accepted, since its attempt may begin at once. What the first caller gave stays. */
  keep(turnId: string, { context, onEvent }: CallerParts): void {
    if (!this.runsTurns || (!context && !onEvent) || this.kept.has(turnId)) return;
    this.kept.set(turnId, { context: Object.freeze({ ...context }), onEvent, since: performance.now() });
    this.outsideRequests(() => this.listen());
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
    this.unsubscribe?.();
    this.unsubscribe = null;
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  private listen(): void {
    this.unsubscribe ??= this.hints.subscribe((changed, turn) => this.hear(changed, turn));
    this.timer ??= this.lookLater();
  }

  private hear(turnId: string, turn?: Turn): void {
    if (!this.kept.has(turnId)) return;
    if (turn && isTerminal(turn.status)) this.drop(turnId);
    // This process's own worker may drop it in a moment.
    else setImmediate(() => void this.look(turnId));
  }

  private async look(turnId: string): Promise<void> {
    if (!this.kept.has(turnId)) return;
    // The store is away for a moment: the next look finds it.
    const turn = await this.ledger.get(turnId).catch(() => undefined);
    if (turn === null || (turn && isTerminal(turn.status))) this.drop(turnId);
  }

  private lookLater(): NodeJS.Timeout {
    return setTimeout(() => void this.lookAtOld(), this.lookMs).unref();
  }

  /** One after the other; younger ones may not have been accepted yet. */
  private async lookAtOld(): Promise<void> {
    const { timer } = this;
    const before = performance.now() - this.lookMs;
    for (const [turnId, { since }] of this.kept) {
      if (since > before) break;
      await this.look(turnId);
    }
    if (this.timer === timer) this.timer = this.lookLater();
  }
}
