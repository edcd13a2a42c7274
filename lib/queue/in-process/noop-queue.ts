import { type TurnQueue } from '../../ledger/turn-queue.js';

/**
 * A queue that notifies no worker. Use it in a process that leaves turns to others and shares no queue with them. Their
 * reconcilers find the work in the store.
 */
export const noopQueue: TurnQueue = {
  label: 'none; workers find turns in the store',
  notify: async () => {},
  process: async () => {},
  pause: async () => {},
  resume: async () => {},
  close: async () => {},
};
