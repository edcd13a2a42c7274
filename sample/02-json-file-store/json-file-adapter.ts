import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { checkpointsPort } from './checkpoints.js';
import { conversationsPort } from './conversations.js';
import { documentsPort } from './documents.js';
import { eventsPort } from './events.js';
import { FileLock } from './file-lock.js';
import { Journal } from './journal.js';
import { lapseLeases } from './lane.js';
import { leasesPort } from './leases.js';
import { sessionsPort } from './sessions.js';
import { Store } from './store.js';
import { turnsPort } from './turns.js';

export interface JsonFileOptions {
  readonly file: string;
  /** Milliseconds since 1970. Default: `Date.now`. For tests that move time. */
  readonly clock?: () => number;
}

/** All data in memory, and every commit as a line of one file. For one process at a time. */
export function jsonFileAdapter({ file, clock = Date.now }: JsonFileOptions): SessionsAdapter {
  const store = new Store(new Journal(file), new FileLock(`${file}.lock`), clock);
  return {
    sessions: sessionsPort(store),
    turns: turnsPort(store),
    hints: { subscribe: (listener) => store.subscribe(listener) },
    events: eventsPort(store),
    checkpoints: checkpointsPort(store),
    conversations: conversationsPort(store),
    state: documentsPort(store),
    leases: leasesPort(store),
    shared: false,
    ping: async () => {},
    init: async () => store.load(),
    beginWork: () => store.commit(() => lapseLeases(store)),
    close: async () => store.close(),
  };
}
