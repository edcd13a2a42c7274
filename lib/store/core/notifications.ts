import { type Turn } from '../../ledger/turn.js';
import { type TurnChanges } from '../../ledger/turn.store.js';
import { TurnChangeEmitter } from './turn-change-emitter.js';

/** @param message `null` when messages may have been lost: once the subscription is active, and after each reconnect */
export type NotificationListener = (message: string | null) => void;

/** Messages between the processes of a store. They may be lost, so callers also poll. */
export interface Notifications {
  /** @returns ends the subscription */
  subscribe(channel: string, listener: NotificationListener): () => void;
}

/** The channel that carries the ids of changed turns. */
const CHANGED = 'changed';

/** Subscribes to the channel of a turn, which carries the offset of its last event. */
export function subscribeToEvents(
  notifications: Notifications,
  turnId: string,
  listener: (last: number | null) => void,
): () => void {
  return notifications.subscribe(`appended:${turnId}`, (last) => listener(last === null ? null : Number(last)));
}

/** Turn changes that reach every process of the store. */
export class NotifiedTurnChanges implements TurnChanges {
  readonly reach = 'store';
  private readonly changes = new TurnChangeEmitter();

  constructor(notifications: Notifications) {
    notifications.subscribe(CHANGED, (turnId) => {
      if (turnId !== null) this.emit(turnId);
    });
  }

  subscribe(listener: (turnId: string, turn?: Turn) => void): () => void {
    return this.changes.subscribe(listener);
  }

  /** Notifies listeners of a change by this process directly, because the message may be lost. */
  emit(turnId: string, turn?: Turn): void {
    this.changes.emit(turnId, turn);
  }
}

/** The listeners of this process, by channel. */
export class ChannelListeners {
  private readonly listeners = new Map<string, Set<NotificationListener>>();

  get channels(): string[] {
    return [...this.listeners.keys()];
  }

  has(channel: string): boolean {
    return this.listeners.has(channel);
  }

  add(channel: string, listener: NotificationListener): void {
    const listeners = this.listeners.get(channel) ?? new Set();
    this.listeners.set(channel, listeners.add(listener));
  }

  remove(channel: string, listener: NotificationListener): void {
    const listeners = this.listeners.get(channel);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.listeners.delete(channel);
  }

  notify(channel: string, message: string | null): void {
    for (const listener of this.listeners.get(channel) ?? []) listener(message);
  }
}
