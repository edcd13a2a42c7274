import { type SessionsAdapter } from '../../ledger/sessions.adapter.js';
import { corePorts } from './core-ports.js';
import { IndexedDatabase } from './indexed-database.js';
import { BEFORE_OTHERS } from './lane.js';
import { type TableDatabase } from './table-database.js';
import { type CoreDatabase } from './tables.js';

/** The members of the adapter that are not ports, for {@link adapterOverTables}. */
export interface TableAdapterOptions {
  /** Whether several processes can work on the tables at once. Default: `false`. */
  readonly shared?: boolean;
  /** The backend's name for telemetry, as OpenTelemetry's `db.system.name` has it. Default: none. */
  readonly system?: string;
  /** Names the store and where it is, for the log at start, without a user and a password. Default: `system`. */
  readonly label?: string;
  /** True if the data is lost when this process ends, which the start logs. Default: `false`. */
  readonly volatile?: boolean;
  /** Connects, and checks or creates the tables. Called once, before any transaction. Default: nothing. */
  readonly init?: () => Promise<void>;
  /** Resolves when the store answers. Default: an empty transaction. */
  readonly ping?: () => Promise<void>;
  /**
   * Takes the lock of the one process that may run turns; throws `SessionsConfigurationError` when another worker still holds it after
   * `waitMs`. When it resolves, every lease of a running turn lapses, so that this process continues the turns of the process before it. Default: no lock; a
   * lease lapses when its time is over.
   */
  readonly beginWork?: (options?: { readonly waitMs: number }) => Promise<void>;
  /** Closes what `init` and `beginWork` opened. No call follows. Default: nothing. */
  readonly close?: () => Promise<void>;
}

/**
 * Creates an adapter over tables with transactions. It applies all rules of sessions, turns, documents and leases; `memoryAdapter` uses
 * it too. `database` stores the rows of {@link STORE_TABLES}, finds them by their keys, and commits.
 * Turn changes reach the listeners of this process. The caller receives the errors that `database` rejects with.
 */
export function adapterOverTables(database: TableDatabase, options: TableAdapterOptions = {}): SessionsAdapter {
  const { shared = false, ping = () => database.read(() => {}), beginWork, ...members } = options;
  const db = new IndexedDatabase(database);
  return {
    ...corePorts(db),
    ...members,
    shared,
    ping,
    ...(beginWork ? { beginWork: (wait) => beginWork(wait).then(() => lapseLeases(db)) } : {}),
  };
}

/**
 * Ends the leases of the previous worker, and withdraws the offers of lanes to it. The lanes that it ran are due before the others,
 * because they waited longer.
 */
function lapseLeases(db: CoreDatabase): Promise<void> {
  return db.write((tx) => {
    for (const lane of tx.lanes.due(Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER)) {
      const { sessionId, runningTurn, offers, firstAttentionAt } = lane;
      if (runningTurn !== null) {
        tx.lanes.update(sessionId, { leaseUntil: tx.now, attentionAt: BEFORE_OTHERS, offers: 0 });
      } else if (offers > 0) {
        tx.lanes.update(sessionId, { attentionAt: firstAttentionAt, offers: 0 });
      }
    }
  });
}
