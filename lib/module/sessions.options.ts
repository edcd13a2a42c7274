import { type FactoryProvider, type ModuleMetadata, type Type } from '@nestjs/common';
import { Allow } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, MustHave, Optional } from '../common/check-input.js';
import { type IdGenerator } from '../common/ids.js';
import { type LoggingOptions } from './logging.options.js';
import { type OrchestrationOptions } from '../orchestration/orchestration.options.js';
import { type SweepOptions } from '../maintenance/sweep.options.js';
import { type TokenCounter } from '../conversation/token-counter.js';
import { type PrincipalResolver } from '../transport/principal.js';
import { type SessionsControllersOptions } from '../http/controllers/controllers.options.js';
import { MAX_SECONDS, SECONDS_RULE, toSeconds } from '../common/seconds.js';
import { missingOfAdapter, type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type StateOptions } from '../state/state.options.js';
import {
  SURFACE_LIMIT_POLICIES,
  SURFACE_POLICIES,
  type SurfaceLimitPolicy,
  type SurfacePolicy,
} from '../ledger/session.js';
import { type TurnsOptions } from '../turn/turn.options.js';

const isMethod = (value: unknown): boolean => typeof value === 'function';

/** The options of `SessionsModule.forRoot`. Each has a default. */
export class SessionsModuleOptions {
  /** The store. Default: `memoryAdapter()`, which loses all data when the process exits. */
  @Optional()
  @MustHave(missingOfAdapter, 'must be a SessionsAdapter, for example memoryAdapter() or typeormAdapter({ ... }).')
  adapter?: SessionsAdapter;

  /**
   * Maximum number of attempts to open the store at the start, while it is down. The start fails after the last attempt, or at
   * once if the store answers that it cannot work (DAY-06). Default 10.
   */
  @Optional()
  @MustBeInteger(1, 100_000)
  retryAttempts?: number;

  /** Milliseconds between two attempts to open the store at the start. Default 3,000. */
  @Optional()
  @MustBeInteger(0, 3_600_000)
  retryDelayMs?: number;

  /**
   * Idle seconds before a session is suspended, as a number or a string of digits. Default: the environment variable
   * SESSION_TTL_SECONDS, else 3,600.
   */
  @Optional()
  @Must((value) => toSeconds(value) !== null, SECONDS_RULE)
  ttlSeconds?: number | `${number}`;

  /** Maximum lifetime of a session in seconds since its creation, whatever its activity. Default: no limit. */
  @Optional()
  @MustBeInteger(1, MAX_SECONDS)
  maxLifetimeSeconds?: number;

  /**
   * When idle sessions are suspended, expired and deleted. `false` disables the sweep. Default: the default of each option.
   */
  @Allow()
  sweep?: false | SweepOptions;

  /** How turns are queued, run and retried. Default: the default of each option. */
  @Allow()
  turns?: TurnsOptions;

  /** How the state of step plans is stored. Default: the default of each option. */
  @Allow()
  orchestration?: OrchestrationOptions;

  /** Which state modules are enabled, and what of their data is shown. Default: the default of each option. */
  @Allow()
  state?: StateOptions;

  /** Whether to emit OpenTelemetry spans and metrics if `@opentelemetry/api` is installed. Default true. */
  @Optional()
  @MustBeBoolean()
  telemetry?: boolean;

  /**
   * The details that logs show. Applications of one process share Nest's logger: logs show only what all of them allow.
   * Default: the default of each option.
   */
  @Allow()
  logging?: LoggingOptions;

  /** How to handle a surface that two sessions of a user attach: `move` it (default), `reject` the second, or `share` it. */
  @Optional()
  @Must((value) => SURFACE_POLICIES.includes(value as SurfacePolicy), `must be one of ${SURFACE_POLICIES.join(', ')}.`)
  surfacePolicy?: SurfacePolicy;

  /** Maximum number of surfaces attached to a session. Default 16. */
  @Optional()
  @MustBeInteger(1, 1000)
  maxSurfacesPerSession?: number;

  /**
   * How to attach a surface to a session that has `maxSurfacesPerSession`: `detach` (default) detaches the oldest attachment
   * first, `reject` throws.
   */
  @Optional()
  @Must(
    (value) => SURFACE_LIMIT_POLICIES.includes(value as SurfaceLimitPolicy),
    `must be one of ${SURFACE_LIMIT_POLICIES.join(', ')}.`,
  )
  onSurfaceLimit?: SurfaceLimitPolicy;

  /** Maximum size of a session's metadata as JSON, in bytes. Default 65,536. */
  @Optional()
  @MustBeInteger(2, 16_777_216)
  maxMetadataBytes?: number;

  /**
   * Counts the tokens of a string, for history windows and compaction with token limits. Default: the package gpt-tokenizer
   * (o200k_base), which must be installed only for these.
   */
  @Optional()
  @Must(isMethod, 'must be a function that returns the number of tokens of a string.')
  tokenCounter?: TokenCounter;

  /** Returns the principal of a request or message. Default: `signedInUser`, which reads the user that the guard set. */
  @Optional()
  @Must(isMethod, 'must be a function that takes the execution context.')
  principal?: PrincipalResolver;

  /** Generates ids of sessions and turns; at least 128 bits must be unpredictable. Default: 32 random hexadecimal digits. */
  @Optional()
  @Must(isMethod, 'must be a function that returns an id.')
  generateId?: IdGenerator;
}

/**
 * Sets whether a process accepts turns, runs them, or both. `submit` accepts turns and waits for them, but does not run turns or
 * sweeps; `work` runs them; `both` does all of it.
 */
export type ProcessRole = 'submit' | 'work' | 'both';

export const PROCESS_ROLES: readonly ProcessRole[] = ['submit', 'work', 'both'];

/** Options that must be known when the module is defined. */
export interface SessionsModuleStatics {
  /** Makes the services injectable in every module. Default false. */
  readonly isGlobal?: boolean;
  /** Whether this process accepts turns, runs them, or both. Default `both`. */
  readonly role?: ProcessRole;
  /** The HTTP controllers to enable; each requires guards. Default: none. */
  readonly controllers?: SessionsControllersOptions;
}

/** The interface of the class in `useClass` or `useExisting`. */
export interface SessionsOptionsFactory {
  /** Called once when the application starts. */
  createSessionsOptions(): SessionsModuleOptions | Promise<SessionsModuleOptions>;
}

/** The options of `SessionsModule.forRootAsync`: one of `useFactory`, `useClass` and `useExisting`. */
export interface SessionsModuleAsyncOptions extends SessionsModuleStatics, Pick<ModuleMetadata, 'imports'> {
  /** Returns the options or a promise of them; receives the providers of `inject`. Default: none; set one of the three. */
  readonly useFactory?: FactoryProvider<SessionsModuleOptions>['useFactory'];
  /** Tokens of the providers that `useFactory` receives. Default: none. */
  readonly inject?: FactoryProvider['inject'];
  /** A class to instantiate, which creates the options. Default: none; set one of the three. */
  readonly useClass?: Type<SessionsOptionsFactory>;
  /** A provider of `imports` that creates the options. Default: none; set one of the three. */
  readonly useExisting?: Type<SessionsOptionsFactory>;
}
