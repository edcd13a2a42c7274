import { missingMethod, missingMethods, type RequiredMethods } from '../common/required-methods.js';
import { type CheckpointStore } from './checkpoint.store.js';
import { type ConversationLog } from './conversation.store.js';
import { type LeaseStore } from './lease.store.js';
import { missingOfSessions, SESSION_METHODS, type SessionStoreAdapter } from './session.store.js';
import { type StateStore } from './state.store.js';
import { type TurnEventLog } from './turn-event-log.js';
import { type TurnChanges, type TurnLedger } from './turn.store.js';

/**
 * A store backend, passed to `forRoot({ adapter })`. All parts share one backend, because a turn settles in one commit
 * across them. Only `sessions` may be an external store (SES-15).
 */
export interface SessionsAdapter {
  readonly sessions: SessionStoreAdapter;
  readonly turns: TurnLedger;
  readonly changes: TurnChanges;
  readonly events: TurnEventLog;
  readonly checkpoints: CheckpointStore;
  readonly conversations: ConversationLog;
  readonly state: StateStore;
  readonly leases: LeaseStore;
  /** True if several processes can use the store at once. */
  readonly shared: boolean;
  /** The value of OpenTelemetry's `db.system.name`, for example `postgresql`. */
  readonly system?: string;
  /**
   * Names the store and where it is, for the log at start (DAY-15): `PostgreSQL at db:5432/app`. It must contain no user and no
   * password. Default: `system`.
   */
  readonly label?: string;
  /** True if the data is lost when this process ends, which the start logs. Default: false. */
  readonly volatile?: boolean;
  /** Resolves if the store responds. @throws StoreUnavailableError */
  ping(): Promise<void>;
  /**
   * Checks, without a change, that the store has the tables, functions and privileges that this process needs. A worker that has found
   * one missing calls it until it resolves. Without this method, it calls `ping`.
   * @throws StoreUnavailableError, which names what is missing
   */
  probe?(): Promise<void>;
  /** Returns the names of pending migrations, for health checks (NST-20). Absent in stores without migrations. */
  pendingMigrations?(): Promise<readonly string[]>;
  /**
   * Connects, and checks the schema and the settings of the server. Called before all other methods, and again after an error with
   * the reason `outage` (DAY-06).
   * @param limits `maxValueBytes` is the size of the largest value that a turn may store
   * @throws SessionsConfigurationError, StoreUnavailableError
   */
  init?(limits?: { readonly maxValueBytes: number }): Promise<void>;
  /**
   * Called once before this process claims turns. A store that allows only one worker process acquires its lock here,
   * and releases the turns of a crashed worker. `waitMs` is how long to wait for a worker that is stopping (FIX-68).
   * @throws SessionsConfigurationError if another worker still holds the lock
   */
  beginWork?(options?: { readonly waitMs: number }): Promise<void>;
  /** Closes connections that the adapter opened. No call follows. */
  close?(): Promise<void>;
}

/** The members of an adapter that are objects. */
type PortName = {
  [Key in keyof SessionsAdapter]-?: NonNullable<SessionsAdapter[Key]> extends (...args: never[]) => unknown
    ? never
    : NonNullable<SessionsAdapter[Key]> extends object
      ? Key
      : never;
}[keyof SessionsAdapter];

/** The methods that an adapter must have, by port. The conformance suite tests their behavior. */
export const PORT_METHODS: { readonly [Port in PortName]: RequiredMethods<SessionsAdapter[Port]> } = {
  sessions: SESSION_METHODS,
  turns: {
    accept: true,
    claim: true,
    renew: true,
    settle: true,
    retry: true,
    release: true,
    wait: true,
    saveAwaited: true,
    awaited: true,
    signal: true,
    cancel: true,
    saveStep: true,
    get: true,
    list: true,
    steps: true,
    signals: true,
    control: true,
    clear: true,
    lane: true,
    lanes: true,
    due: true,
    purgeSettled: true,
  },
  changes: { subscribe: true },
  events: { append: true, read: true, last: true, deleteExpired: true },
  checkpoints: { load: true, append: true, history: true, list: true, orchestrators: true, prune: true, delete: true },
  conversations: { append: true, window: true, page: true, sessions: true },
  state: {
    get: true,
    set: true,
    append: true,
    delete: true,
    deleteExpired: true,
    evictIdle: true,
    list: true,
    count: true,
    namespaces: true,
    reset: true,
  },
  leases: { acquire: true, renew: true, release: true },
};

/** The methods of the adapter itself. */
const ADAPTER_METHODS: RequiredMethods<SessionsAdapter> = { ping: true };

/** Returns the first member that an adapter lacks, for messages: a port (`turns`), or a method (`turns.claim()`, `ping()`). */
export function missingOfAdapter(value: unknown): string | undefined {
  const ports = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  for (const [name, methods] of Object.entries(PORT_METHODS)) {
    const port = ports[name];
    if (typeof port !== 'object' || port === null) return name;
    const method = (name === 'sessions' ? missingOfSessions(port) : missingMethods(port, methods)).at(0);
    if (method !== undefined) return `${name}.${method}()`;
  }
  return missingMethod(value, ADAPTER_METHODS);
}
