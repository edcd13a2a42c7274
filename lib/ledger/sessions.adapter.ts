import { type CheckpointStore } from './checkpoint.store.js';
import { hasMethods } from '../common/has-methods.js';
import { type ConversationLog } from './conversation.store.js';
import { type LeaseStore } from './lease.store.js';
import { type SessionStoreAdapter } from './session.store.js';
import { type StateStore } from './state.store.js';
import { type TurnEventLog } from './turn-event-log.js';
import { type TurnHints, type TurnLedger } from './turn.store.js';

/**
 * A store backend: what `forRoot({ adapter })` takes. All parts share one backend, because a turn settles in one commit
 * over them; only `sessions` may be a foreign store (SES-15).
 */
export interface SessionsAdapter {
  readonly sessions: SessionStoreAdapter;
  readonly turns: TurnLedger;
  readonly hints: TurnHints;
  readonly events: TurnEventLog;
  readonly checkpoints: CheckpointStore;
  readonly conversations: ConversationLog;
  readonly state: StateStore;
  readonly leases: LeaseStore;
  /** Whether several processes can work on the store at once. */
  readonly shared: boolean;
  /** What it is, for telemetry, as OpenTelemetry's `db.system.name` has it: `postgresql`, for example. */
  readonly system?: string;
  /** Resolves when the store answers. @throws StoreUnavailableError */
  ping(): Promise<void>;
  /** Of a store with migrations: the names of those that its tables lack, for health checks (NST-20). */
  pendingMigrations?(): Promise<readonly string[]>;
  /** Connects and checks the schema, once, before any other call. */
  init?(): Promise<void>;
  /**
   * Called once before this process claims turns. A store that allows one worker process at a time takes its lock here,
   * and sets free what a worker that died held.
   * @throws SessionsConfigurationError when another process holds it
   */
  beginWork?(): Promise<void>;
  /** Lets go of connections that the adapter opened itself. No call follows. */
  close?(): Promise<void>;
}

/** What an object must have to be taken for an adapter; that it does the right thing is for the conformance suite. */
const PORTS = {
  sessions: ['insert', 'fetchById', 'fetchMany', 'update', 'delete'],
  turns: [
    'accept',
    'claim',
    'renew',
    'settle',
    'retry',
    'release',
    'wait',
    'signal',
    'cancel',
    'saveStep',
    'get',
    'list',
    'steps',
    'signals',
    'control',
    'clear',
    'lane',
    'lanes',
    'due',
    'purgeSettled',
  ],
  hints: ['subscribe'],
  events: ['append', 'read', 'last', 'deleteExpired'],
  checkpoints: ['load', 'append', 'history', 'list', 'orchestrators', 'prune', 'delete'],
  conversations: ['append', 'window', 'page', 'sessions'],
  state: ['get', 'set', 'append', 'delete', 'deleteExpired', 'evictIdle', 'list', 'count', 'namespaces', 'reset'],
  leases: ['acquire', 'renew', 'release'],
} as const satisfies { [Port in keyof SessionsAdapter]?: readonly (keyof SessionsAdapter[Port])[] };

export function isSessionsAdapter(value: unknown): value is SessionsAdapter {
  if (!hasMethods(value, ['ping'])) return false;
  const ports = value as Record<string, unknown>;
  return Object.entries(PORTS).every(([port, methods]) => hasMethods(ports[port], methods));
}
