import { type TurnEvent } from '../ledger/turn-event.js';

type Listener = (events: readonly TurnEvent[]) => void;

/** Passes events that an attempt of this process has stored to readers in this process, without a read. */
export class LocalEvents {
  private readonly listeners = new Map<string, Listener>();
  /** Turns whose next events an attempt of this process is storing. */
  private readonly storing = new Set<string>();

  /** Registers the listener of a turn; one per turn. @returns a function that removes it */
  listen(turnId: string, listener: Listener): () => void {
    this.listeners.set(turnId, listener);
    return () => this.listeners.delete(turnId);
  }

  /** Stores events of an attempt of this process, and passes them on. */
  async store(turnId: string, store: () => Promise<readonly TurnEvent[]>): Promise<void> {
    this.storing.add(turnId);
    try {
      const events = await store();
      this.listeners.get(turnId)?.(events);
    } finally {
      this.storing.delete(turnId);
    }
  }

  /** Returns true if this process is about to pass on the turn's next events. */
  isStoring(turnId: string): boolean {
    return this.storing.has(turnId);
  }
}
