import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { corePorts } from '../core/core-ports.js';
import { CoreSessions } from '../core/sessions.js';
import { MemoryDatabase } from './memory-database.js';

/** What `memoryAdapter` takes. */
export interface MemoryAdapterOptions {
  /** Milliseconds since 1970, read at each operation. Default: `Date.now`. For tests that move time. */
  readonly clock?: () => number;
}

/** A store in the process's memory: for tests and first steps. Everything is gone when the process ends. */
export function memoryAdapter(options: MemoryAdapterOptions = {}): SessionsAdapter {
  const db = new MemoryDatabase(options.clock ?? Date.now);
  return { ...corePorts(db), shared: false, ping: async () => {} };
}

/** The sessions of a memory store alone, for `createSessionStore` (SES-17). */
export class InMemorySessionStoreAdapter extends CoreSessions {
  constructor(options: MemoryAdapterOptions = {}) {
    super(new MemoryDatabase(options.clock ?? Date.now));
  }
}
