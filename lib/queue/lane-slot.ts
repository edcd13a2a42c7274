import { type VisitSlot } from '../ledger/turn-queue.js';
import { type VisitRoom } from './visit-room.js';

/** A slot of this process that the visits of one lane share. */
export class LaneSlot implements VisitSlot {
  /** How many visits share it. */
  visits = 0;
  private state: 'held' | 'released' | 'over' = 'held';
  /** Stops waiting for the slot. */
  private giveUp: () => void = () => undefined;

  /** @param released is called each time the slot is free for other visits */
  constructor(
    private readonly room: VisitRoom,
    private readonly released: () => void,
  ) {}

  get isHeld(): boolean {
    return this.state === 'held';
  }

  release(): void {
    if (this.state !== 'held') return;
    this.state = 'released';
    this.room.leave();
    this.released();
  }

  async take(): Promise<void> {
    if (this.state !== 'released') return;
    if (this.room.tryEnter()) {
      this.state = 'held';
      return;
    }
    await new Promise<void>((resolve) => {
      const withdraw = this.room.queueUp(() => {
        this.state = 'held';
        resolve();
      });
      this.giveUp = () => {
        withdraw();
        resolve();
      };
    });
  }

  /** Ends it with the last of its visits. */
  end(): void {
    const { isHeld } = this;
    this.state = 'over';
    this.giveUp();
    if (isHeld) this.room.leave();
  }
}
