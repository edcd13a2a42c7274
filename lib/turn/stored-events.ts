import { type TurnEvent } from '../ledger/turn-event.js';

type Listener = (events: readonly TurnEvent[]) => void;

/** Tells the readers of this process at once of what its own attempts have stored. */
export class StoredEvents {
  private readonly listeners = new Map<string, Listener>();

  /** One listener a turn. @returns ends the subscription */
  listen(turnId: string, listener: Listener): () => void {
    this.listeners.set(turnId, listener);
    return () => this.listeners.delete(turnId);
  }

  tell(turnId: string, events: readonly TurnEvent[]): void {
    this.listeners.get(turnId)?.(events);
  }
}
