import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { type FailureLog } from './failure-log.js';
import { SuspectSlot } from './suspect-slot.js';
import { type VisitSlot } from '../ledger/turn-queue.js';
import { type TurnRuntime } from './turn-runtime.js';
import { type ClaimedTurn, type ClaimNotice, type ClaimRequest } from '../ledger/turn.store.js';
import { SUSPECT_FROM_LOST } from '../ledger/turn.js';

export interface SentClaim {
  readonly request: ClaimRequest;
  /** By `performance.now()`: the lease runs from then on at the latest. */
  readonly sentAt: number;
}

/** The head of a lane, claimed. */
export interface ClaimedHead {
  readonly claimed: ClaimedTurn;
  /** As in {@link SentClaim}. */
  readonly sentAt: number;
  /** The visit's slot as the handler's waits release it. */
  readonly slotOf: (slot: VisitSlot | undefined) => VisitSlot | undefined;
  /** Called when the attempt has ended. */
  readonly ended: () => void;
}

interface ClaimAnswer {
  readonly head: ClaimedHead | null;
  readonly isSuspect: boolean;
  /** Whether the lane had work. */
  readonly hasWork: boolean;
}

const NOTHING = (): void => undefined;

/** Claims the heads of lanes for a worker. */
export class LaneClaims {
  /** What operators see of who holds a lane; the random part tells apart what has the same host name and process id. */
  private readonly name = `${hostname()}-${process.pid}-${randomBytes(6).toString('hex')}`;
  private count = 0;
  private readonly suspects = new SuspectSlot();

  constructor(
    private readonly runtime: TurnRuntime,
    private readonly failures: FailureLog,
  ) {}

  /** To be sent at once. */
  next(): SentClaim {
    const { runner, settings } = this.runtime;
    const { delayMs, maxDelayMs, type } = settings.retry.backoff;
    const request = {
      holder: `${this.name}/${(this.count += 1)}`,
      leaseMs: settings.leaseMs,
      maxLost: settings.retry.maxLost,
      lossPauseMs: delayMs,
      maxLossPauseMs: type === 'fixed' ? delayMs : maxDelayMs,
      ...runner.needs(),
    };
    return { request, sentAt: performance.now() };
  }

  /** @returns null when nothing is due, or when a suspect is, and another one runs here: the lane is notified after that */
  async head(sessionId: string, first: SentClaim): Promise<ClaimedHead | null> {
    const { head, isSuspect } = await this.runtime.recovery.watch(sessionId, () => this.send(sessionId, first));
    if (!isSuspect || !this.suspects.take(sessionId)) return head;
    let suspect: ClaimedHead | null = null;
    const isSuspectStill = (): boolean => suspect !== null && suspect.claimed.turn.lost >= SUSPECT_FROM_LOST;
    try {
      const { request, sentAt } = this.next();
      ({ head: suspect } = await this.send(sessionId, { request: { ...request, suspects: true }, sentAt }));
    } finally {
      if (!isSuspectStill()) this.leave();
    }
    return suspect && isSuspectStill() ? this.withSlot(suspect) : suspect;
  }

  private withSlot(head: ClaimedHead): ClaimedHead {
    let left = false;
    const ended = (): void => {
      if (!left) this.leave();
      left = true;
    };
    const slotOf = (slot: VisitSlot | undefined): VisitSlot => ({
      // The turn that it waits for may be a suspect as well. It does not take the slot again: one that waited lives.
      release: () => {
        ended();
        slot?.release();
      },
      take: async () => slot?.take(),
    });
    return { ...head, ended, slotOf };
  }

  private async send(sessionId: string, { request, sentAt }: SentClaim): Promise<ClaimAnswer> {
    const notices: ClaimNotice[] = [];
    const onNotice = (notice: ClaimNotice): void => void notices.push(notice);
    const claimed = await this.runtime.ledger.claim(sessionId, { onNotice, ...request });
    for (const notice of notices) {
      if (notice.type !== 'lost') continue;
      this.failures.lost(notice.turn, notice.holder);
      if (notice.turn.status === 'failed') this.runtime.recovery.ends(notice.turn);
    }
    return {
      head: claimed && { claimed, sentAt, slotOf: (slot) => slot, ended: NOTHING },
      isSuspect: notices.some(({ type }) => type === 'suspect'),
      hasWork: claimed !== null || notices.length > 0,
    };
  }

  private leave(): void {
    const next = this.suspects.leave();
    if (next !== undefined) void this.runtime.bell.ring(next);
  }
}
