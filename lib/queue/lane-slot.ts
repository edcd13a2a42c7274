import { type VisitSlot } from '../ledger/turn-queue.js';
import { type Semaphore } from './semaphore.js';

/** A slot of this process that the visits of one lane share. */
export class LaneSlot implements VisitSlot {
  /** The number of visits that share it. */
  visits = 0;
  private state: 'held' | 'released' | 'over' = 'held';
  /** Stops waiting for the slot. */
  private giveUp: () => void = () => undefined;

  /** @param released called each time the slot becomes free for other visits */
  constructor(
    private readonly semaphore: Semaphore,
    private readonly released: () => void,
  ) {}

  get isHeld(): boolean {
    return this.state === 'held';
  }

  release(): void {
    if (this.state !== 'held') return;
    this.state = 'released';
    this.semaphore.release();
    this.released();
  }

  async take(): Promise<void> {
    if (this.state !== 'released') return;
    if (this.semaphore.tryAcquire()) {
      this.state = 'held';
      return;
    }
    await new Promise<void>((resolve) => {
      const withdraw = this.semaphore.wait(() => {
        this.state = 'held';
        resolve();
      });
      this.giveUp = () => {
        withdraw();
        resolve();
      };
    });
  }

  /** Frees the slot permanently. Called when the last of its visits has ended. */
  end(): void {
    const { isHeld } = this;
    this.state = 'over';
    this.giveUp();
    if (isHeld) this.semaphore.release();
  }
}
