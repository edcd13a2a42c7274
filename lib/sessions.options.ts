import { type FactoryProvider, type ModuleMetadata, type Type } from '@nestjs/common';
import { Allow } from 'class-validator';
import { CronTime } from 'cron';
import { Must, MustBeInteger, MustBeName, Optional } from './common/check-input.js';
import { type IdGenerator } from './common/ids.js';
import { OrchestrationStateOptions } from './orchestration/orchestration.settings.js';
import { type TokenCounter } from './conversation/token-counter.js';
import { type PrincipalResolver } from './transport/principal.js';
import { type SessionsControllersOptions } from './http/controllers/controllers.options.js';
import { isSeconds, MAX_SECONDS, SECONDS_RULE, toSeconds } from './common/seconds.js';
import { isSessionsAdapter, type SessionsAdapter } from './sessions.adapter.js';
import { type StateOptions } from './state/state.settings.js';
import { SURFACE_POLICIES, type SurfacePolicy } from './session/session.js';
import { isTurnQueue, type TurnQueue } from './turn/turn-queue.js';
import { WHEN_BUSY, type WhenBusy } from './turn/turn.js';

const MAX_MS = 2_147_483_647;
const isMethod = (value: unknown): boolean => typeof value === 'function';

/** When idle sessions are suspended, expire, and are deleted. */
export class SweepOptions {
  /** A cron expression, five or six fields. Default: every five minutes. */
  @Optional()
  @Must(isCron, 'must be a cron expression, for example */5 * * * *.')
  cron?: string;

  /** Default true. */
  @Optional()
  @Must((value) => typeof value === 'boolean', 'must be a boolean.')
  enabled?: boolean;

  /** Idle seconds after which suspended and never used sessions expire. Default: never. */
  @Optional()
  @MustBeInteger(1, MAX_SECONDS)
  expireAfterSeconds?: number;

  /** Seconds after which expired sessions are deleted with everything they have. Default: never. */
  @Optional()
  @MustBeInteger(1, MAX_SECONDS)
  purgeAfterSeconds?: number;

  /**
   * Seconds after which settled turns are deleted, with their results, steps and idempotency keys; never before those have
   * lapsed. Messages and checkpoints stay. `false`: never. Default 604,800 (a week).
   */
  @Optional()
  @Must(
    (value) => value === false || isSeconds(value),
    `must be false or a whole number of seconds from 1 to ${MAX_SECONDS}.`,
  )
  purgeTurnsAfterSeconds?: number | false;

  /** At most about this many sessions of each kind a run; the next run goes on. Default 10,000. */
  @Optional()
  @MustBeInteger(1, 10_000_000)
  maxPerRun?: number;
}

/** Pauses between the attempts of a turn. */
export class BackoffOptions {
  /** `exponential` (default) doubles with each failure. */
  @Optional()
  @Must((value) => value === 'fixed' || value === 'exponential', 'must be fixed or exponential.')
  type?: 'fixed' | 'exponential';

  /** Milliseconds before the second attempt. Default 500. */
  @Optional()
  @MustBeInteger(0, MAX_MS)
  delayMs?: number;

  /** Exponential delays grow up to this. Default 60,000. */
  @Optional()
  @MustBeInteger(0, MAX_MS)
  maxDelayMs?: number;
}

export class RetryOptions {
  /** Attempts of a turn in all. Default 3. */
  @Optional()
  @MustBeInteger(1, 1000)
  attempts?: number;

  @Allow()
  backoff?: BackoffOptions;
}

/** How what handlers emit is stored. */
export class TurnEventsOptions {
  /** Seconds for which a turn's events stay once it is over; never longer than the turn itself. Default 3,600. */
  @Optional()
  @MustBeInteger(1, MAX_SECONDS)
  ttlSeconds?: number;

  /** Milliseconds for which events are collected before they are stored together. Default 25. */
  @Optional()
  @MustBeInteger(0, 10_000)
  batchMs?: number;

  /** Bytes of events, as JSON, that are stored without waiting for more. Default 4,096. */
  @Optional()
  @MustBeInteger(1, 262_144)
  batchBytes?: number;
}

/** How turns are queued, run and tried again. */
export class TurnsOptions {
  /** What says that a session has work. Default: a queue in this process. */
  @Optional()
  @Must(isTurnQueue, 'must be a TurnQueue with ring, process, pause, resume and close.')
  queue?: TurnQueue;

  /** Sessions whose turns this process runs at once, with the default queue. Default 32. */
  @Optional()
  @MustBeInteger(1, 10_000)
  concurrency?: number;

  /** What to do when a message arrives while the session is busy. Default `enqueue`. */
  @Optional()
  @Must((value) => WHEN_BUSY.includes(value as WhenBusy), `must be one of ${WHEN_BUSY.join(', ')}.`)
  whenBusy?: WhenBusy;

  /** Queued turns that a session may have. Default 100. */
  @Optional()
  @MustBeInteger(1, 1_000_000)
  maxQueuedPerSession?: number;

  /** Of one input as JSON. Default 262,144. */
  @Optional()
  @MustBeInteger(1, 67_108_864)
  maxInputBytes?: number;

  @Allow()
  retry?: RetryOptions;

  /** `false`: what handlers emit is not stored, and streams have the terminal event only. */
  @Allow()
  events?: false | TurnEventsOptions;

  /** Milliseconds for which a worker holds a turn without renewing; a lost worker's lane waits this long. Default 10,000. */
  @Optional()
  @MustBeInteger(100, 3_600_000)
  leaseMs?: number;

  /** How often lanes that need attention are looked for, in milliseconds. Default 1,000. */
  @Optional()
  @MustBeInteger(10, 3_600_000)
  reconcileMs?: number;

  /** Seconds for which an idempotency key is remembered after its turn settled. Default 86,400 (a day). */
  @Optional()
  @MustBeInteger(1, 31_536_000)
  idempotencySeconds?: number;

  /**
   * Milliseconds that one attempt of a turn may take; then its AbortSignal is aborted and it counts as failed. Waiting for a
   * signal does not count. `false`: no limit. Default 900,000 (15 minutes).
   */
  @Optional()
  @Must((value) => value === false || isMs(value), `must be false or an integer from 1 to ${MAX_MS}.`)
  timeoutMs?: number | false;

  /** Milliseconds that running turns get to finish when the application stops. Default 10,000. */
  @Optional()
  @MustBeInteger(0, 3_600_000)
  shutdownGraceMs?: number;
}

/** How states of orchestration are kept. */
export class OrchestrationOptions extends OrchestrationStateOptions {
  /** Part of stored keys: states of different namespaces never see each other. Default `orchestration-state`. */
  @Optional()
  @MustBeName()
  namespace?: string;

  /** Whether the sweep removes states beyond `maxSessions`; what has expired goes in any case. Default true. */
  @Optional()
  @Must((value) => typeof value === 'boolean', 'must be a boolean.')
  cleanup?: boolean;
}

/** What `SessionsModule.forRoot` takes. Everything has a default. */
export class SessionsModuleOptions {
  /** The store. Default: `memoryAdapter()`, which forgets everything with the process. */
  @Optional()
  @Must(isSessionsAdapter, 'must be a SessionsAdapter, for example memoryAdapter() or typeormAdapter({ ... }).')
  adapter?: SessionsAdapter;

  /**
   * Idle seconds after which a session is suspended; digits as text too, as they come from an environment. Default: the
   * environment's SESSION_TTL_SECONDS, else 3,600.
   */
  @Optional()
  @Must((value) => toSeconds(value) !== null, SECONDS_RULE)
  ttlSeconds?: number | string;

  /** Seconds after its creation that a session may be used, whatever its activity. Default: no limit. */
  @Optional()
  @MustBeInteger(1, MAX_SECONDS)
  maxLifetimeSeconds?: number;

  /** `false` switches all sweeps off. */
  @Allow()
  sweep?: false | SweepOptions;

  @Allow()
  turns?: TurnsOptions;

  @Allow()
  orchestration?: OrchestrationOptions;

  @Allow()
  state?: StateOptions;

  /** Whether spans and metrics are told to OpenTelemetry, where `@opentelemetry/api` is installed. Default true. */
  @Optional()
  @Must((value) => typeof value === 'boolean', 'must be a boolean.')
  telemetry?: boolean;

  /** Who keeps a surface that two sessions of a user want: `move` (default) it, `reject` the second, or `share` it. */
  @Optional()
  @Must((value) => SURFACE_POLICIES.includes(value as SurfacePolicy), `must be one of ${SURFACE_POLICIES.join(', ')}.`)
  surfacePolicy?: SurfacePolicy;

  /** Surfaces that one session may have attached. Default 16. */
  @Optional()
  @MustBeInteger(1, 1000)
  maxSurfacesPerSession?: number;

  /** Of a session's metadata as JSON. Default 65,536. */
  @Optional()
  @MustBeInteger(2, 16_777_216)
  maxMetadataBytes?: number;

  /**
   * Counts the tokens of a text, for windows and compaction that go by tokens. Default: the package gpt-tokenizer
   * (o200k_base), which is needed only then.
   */
  @Optional()
  @Must(isMethod, 'must be a function that returns the number of tokens of a text.')
  tokenCounter?: TokenCounter;

  /** Who a request or a message speaks for. Default: `signedInUser`, which asks what the application's authentication left. */
  @Optional()
  @Must(isMethod, 'must be a function of the execution context.')
  principal?: PrincipalResolver;

  /** Makes ids of sessions and turns; at least 128 bits must be unpredictable. Default: 32 random hexadecimal digits. */
  @Optional()
  @Must(isMethod, 'must be a function that returns an id.')
  generateId?: IdGenerator;
}

/**
 * What a process does with turns: `submit` takes them and waits for them, and leaves running them and the sweeps to others;
 * `work` runs them; `both` does all of it.
 */
export type ProcessRole = 'submit' | 'work' | 'both';

export const PROCESS_ROLES: readonly ProcessRole[] = ['submit', 'work', 'both'];

/** What only the module's definition can decide. */
export interface SessionsModuleStatics {
  /** Makes the services injectable in every module. Default false. */
  readonly isGlobal?: boolean;
  /** Default `both`. */
  readonly role?: ProcessRole;
  /** HTTP of this package's own; each controller needs guards. Default: none. */
  readonly controllers?: SessionsControllersOptions;
}

export interface SessionsOptionsFactory {
  createSessionsOptions(): SessionsModuleOptions | Promise<SessionsModuleOptions>;
}

export interface SessionsModuleAsyncOptions extends SessionsModuleStatics, Pick<ModuleMetadata, 'imports'> {
  readonly useFactory?: FactoryProvider<SessionsModuleOptions>['useFactory'];
  readonly inject?: FactoryProvider['inject'];
  /** A class that is made here. */
  readonly useClass?: Type<SessionsOptionsFactory>;
  /** A provider of the imported modules. */
  readonly useExisting?: Type<SessionsOptionsFactory>;
}

function isMs(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_MS;
}

function isCron(value: unknown): boolean {
  if (typeof value !== 'string') return false;
  try {
    new CronTime(value);
    return true;
  } catch {
    return false;
  }
}
