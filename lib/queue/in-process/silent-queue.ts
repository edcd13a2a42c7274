import { type TurnQueue } from '../../ledger/turn-queue.js';

/**
 * Rings nobody: for a process that leaves turns to others and has no queue in common with them. Their reconcilers find the
 * work in the store.
 */
export const silentQueue: TurnQueue = {
  ring: async () => {},
  process: async () => {},
  pause: async () => {},
  resume: async () => {},
  close: async () => {},
};
