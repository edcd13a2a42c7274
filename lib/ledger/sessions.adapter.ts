import { type CheckpointStore } from './checkpoint.store.js';
import { hasMethods } from '../common/check-options.js';
import { type ConversationLog } from './conversation.store.js';
import { type LeaseStore } from './lease.store.js';
import { type SessionStoreAdapter } from './session.store.js';
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

/** The names of a port's methods, without the optional ones. */
type MethodsOf<Port> = {
  [Key in keyof Port]-?: object extends Pick<Port, Key>
    ? never
    : Port[Key] extends (...args: never[]) => unknown
      ? Key
      : never;
}[keyof Port];

/** The methods that an adapter must have. The conformance suite tests their behavior. */
const PORTS: { readonly [Port in PortName]: Readonly<Record<MethodsOf<SessionsAdapter[Port]>, true>> } = {
  sessions: { insert: true, fetchById: true, fetchMany: true, update: true, delete: true },
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
type PortName = 'sessions' | 'turns' | 'changes' | 'events' | 'checkpoints' | 'conversations' | 'state' | 'leases';

export function isSessionsAdapter(value: unknown): value is SessionsAdapter {
  if (!hasMethods(value, ['ping'])) return false;
  const ports = value as Record<string, unknown>;
  return Object.entries(PORTS).every(([port, methods]) => hasMethods(ports[port], Object.keys(methods)));
}
