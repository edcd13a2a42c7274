import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { adapterOverTables } from '../core/adapter-over-tables.js';
import { IndexedDatabase } from '../core/indexed-database.js';
import { CoreSessions } from '../core/sessions.js';
import { MemoryTables } from './memory-tables.js';

/** Options of `memoryAdapter`. */
export interface MemoryAdapterOptions {
  /** Returns the time in milliseconds since 1970, at each operation, for tests that control the time. Default: `Date.now`. */
  readonly clock?: () => number;
}

/** Creates a store in the memory of the process, for tests and first steps. Its data is lost when the process ends. */
export function memoryAdapter(options: MemoryAdapterOptions = {}): SessionsAdapter {
  const tables = new MemoryTables(options.clock ?? Date.now);
  return adapterOverTables(tables, { label: 'memory of this process', volatile: true });
}

/** The sessions of a memory store alone, for `createSessionStore` (SES-17). */
export class InMemorySessionStoreAdapter extends CoreSessions {
  constructor(options: MemoryAdapterOptions = {}) {
    super(new IndexedDatabase(new MemoryTables(options.clock ?? Date.now)));
  }
}
