import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { instant, type Instant } from '../common/instant.js';
import { type FailureLog } from './failure-log.js';
import { SuspectSlot } from './suspect-slot.js';
import { type VisitSlot } from '../ledger/turn-queue.js';
import { type TurnDependencies } from './turn-dependencies.js';
import { type ClaimedTurn, type ClaimNotice, type ClaimRequest } from '../ledger/turn.store.js';
import { SUSPECT_FROM_LOST } from '../ledger/turn.js';

export interface SentClaim {
  readonly request: ClaimRequest;
  /** The lease ends no earlier than `leaseMs` after this time. */
  readonly sentAt: Instant;
}

/** The claimed head of a lane. */
export interface ClaimedHead {
  readonly claimed: ClaimedTurn;
  /** See {@link SentClaim}. */
  readonly sentAt: Instant;
  /** Wraps the visit's slot, so that the handler's waits release it. */
  readonly slotOf: (slot: VisitSlot | undefined) => VisitSlot | undefined;
  /** Called when the attempt has ended. */
  readonly ended: () => void;
}

interface ClaimAnswer {
  readonly head: ClaimedHead | null;
  readonly isSuspect: boolean;
  /** True if the lane had work. */
  readonly hasWork: boolean;
}

const NOTHING = (): void => undefined;

/** Claims the heads of lanes for a worker. */
export class LaneClaims {
  /**
   * The name of the lane's holder for operators. The random part distinguishes processes with the same host name and
   * process id.
   */
  private readonly name = `${hostname()}-${process.pid}-${randomBytes(6).toString('hex')}`;
  private count = 0;
  private readonly suspects = new SuspectSlot();

  constructor(
    private readonly dependencies: Pick<TurnDependencies, 'ledger' | 'recovery' | 'runner' | 'settings' | 'storeWatch'>,
    private readonly failures: FailureLog,
  ) {}

  /** Returns the next claim, which must be sent at once. */
  next(): SentClaim {
    const { runner, settings } = this.dependencies;
    const { delayMs, maxDelayMs, type } = settings.retry.backoff;
    const request = {
      holder: `${this.name}/${(this.count += 1)}`,
      leaseMs: settings.leaseMs,
      maxLost: settings.retry.maxLost,
      lossPauseMs: delayMs,
      maxLossPauseMs: type === 'fixed' ? delayMs : maxDelayMs,
      ...runner.needs(),
    };
    return { request, sentAt: instant() };
  }

  /**
   * Claims the head of a lane. If a suspect is due while another one runs here, waits until it may run, without a slot.
   * @returns null if nothing is due
   */
  async head(sessionId: string, first: SentClaim, slot: VisitSlot | undefined): Promise<ClaimedHead | null> {
    const { head, isSuspect } = await this.dependencies.recovery.watch(sessionId, () => this.send(sessionId, first));
    if (!isSuspect || !(await this.takeSuspectSlot(sessionId, slot))) return head;
    let suspect: ClaimedHead | null = null;
    const isSuspectStill = (): boolean => suspect !== null && suspect.claimed.turn.lost >= SUSPECT_FROM_LOST;
    try {
      const { request, sentAt } = this.next();
      ({ head: suspect } = await this.send(sessionId, { request: { ...request, suspects: true }, sentAt }));
    } finally {
      if (!isSuspectStill()) this.suspects.leave();
    }
    return suspect && isSuspectStill() ? this.withSuspectSlot(suspect) : suspect;
  }

  /** Claims no more suspects. */
  stop(): void {
    this.suspects.close();
  }

  /**
   * Takes the suspect slot, after a wait if another suspect runs here. The visit does not hold its own slot while it
   * waits, and gets the next free one before lanes in the queue.
   * @returns false if the lane is offered again later instead
   */
  private async takeSuspectSlot(sessionId: string, slot: VisitSlot | undefined): Promise<boolean> {
    if (this.suspects.tryTake()) return true;
    // The queue does not let the visit release its slot, so it must not wait.
    if (!slot) return false;
    const { head } = await this.dependencies.ledger.lane(sessionId);
    if (!head) return false;
    slot.release();
    const taken = await this.suspects.wait(sessionId, head.acceptedAt);
    if (taken) await slot.take();
    return taken;
  }

  private withSuspectSlot(head: ClaimedHead): ClaimedHead {
    let left = false;
    const ended = (): void => {
      if (!left) this.suspects.leave();
      left = true;
    };
    const slotOf = (slot: VisitSlot | undefined): VisitSlot => ({
      // Leaves the suspect slot too, because the awaited turn may be a suspect. It is not taken again: the process has
      // survived this turn so far.
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
    const { ledger, storeWatch } = this.dependencies;
    const claimed = await ledger.claim(sessionId, { onNotice, ...request }).catch((error: unknown) => {
      storeWatch.failed(error);
      throw error;
    });
    for (const notice of notices) {
      if (notice.type !== 'lost') continue;
      this.failures.lost(notice);
      if (notice.turn.status === 'failed') this.dependencies.recovery.ends(notice.turn);
    }
    return {
      head: claimed && { claimed, sentAt, slotOf: (slot) => slot, ended: NOTHING },
      isSuspect: notices.some(({ type }) => type === 'suspect'),
      hasWork: claimed !== null || notices.length > 0,
    };
  }
}
