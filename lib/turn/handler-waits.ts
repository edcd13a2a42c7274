import { type AwaitedTurns } from './awaited-turns.js';
import { type VisitSlot } from '../ledger/turn-queue.js';
import { ProcessLimitError } from '../ledger/turn.errors.js';
import { type AwaitedTurn } from '../ledger/turn.store.js';

/** Limits the handlers of this process that wait for other turns. They use memory, in addition to the running ones. */
export class WaitingParents {
  private count = 0;

  constructor(private readonly limit: number) {}

  /** @throws ProcessLimitError */
  enter(): void {
    if (this.count >= this.limit) throw new ProcessLimitError('TOO_MANY_WAITING_PARENTS', this.limit);
    this.count += 1;
  }

  leave(): void {
    this.count -= 1;
  }
}

/** Registers an awaited turn before it is submitted or waited for. A second call replaces the first turn. */
export type Awaits = (turn: AwaitedTurn) => Promise<void>;

/**
 * The waits of one attempt's handler for other turns. The visit's slot is released while at least one wait is active
 * (FIX-03): a handler that waits for two turns must not hold a slot that the second one needs.
 */
export class HandlerWaits {
  private waits = 0;
  private taking: Promise<void> | null = null;
  private released = false;
  private closed = false;

  constructor(
    private readonly parents: WaitingParents,
    private readonly slot: VisitSlot | undefined,
    private readonly awaited: AwaitedTurns,
  ) {}

  /** The handler's own turn. */
  get turnId(): string {
    return this.awaited.turnId;
  }

  /** True while the visit does not hold a slot. */
  get isReleased(): boolean {
    return this.released;
  }

  /**
   * @param wait resolves when the turn has ended; it gets no `awaits` after the attempt has ended
   * @throws ProcessLimitError; `awaits` TurnReentryError
   */
  async during<T>(wait: (awaits?: Awaits) => Promise<T>): Promise<T> {
    if (this.closed) return wait();
    this.release();
    const awaiting: AwaitedTurn[] = [];
    const drop = (): void => awaiting.splice(0).forEach((turn) => this.awaited.drop(turn));
    try {
      return await wait((turn) => {
        drop();
        awaiting.push(turn);
        return this.awaited.add(turn);
      });
    } catch (error) {
      // The turn may still be open, so store the removal. Ended turns are ignored in any case.
      drop();
      if (!this.closed) await this.awaited.store().catch(() => undefined);
      throw error;
    } finally {
      drop();
      this.waits -= 1;
      if (this.waits === 0) await this.take();
    }
  }

  /** Ends the attempt. Waits that its handler left running no longer count. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    if (this.released) this.parents.leave();
  }

  private release(): void {
    if (!this.released) {
      this.parents.enter();
      this.released = true;
      this.slot?.release();
    }
    this.waits += 1;
  }

  private async take(): Promise<void> {
    if (this.closed) return;
    this.taking ??= this.takeSlot().finally(() => (this.taking = null));
    await this.taking;
  }

  private async takeSlot(): Promise<void> {
    await this.slot?.take();
    if (this.closed) return;
    // Another branch of the handler has started to wait in the meantime.
    if (this.waits > 0) {
      this.slot?.release();
    } else {
      this.released = false;
      this.parents.leave();
    }
  }
}
