import { type FactoryProvider, type ModuleMetadata, type Type } from '@nestjs/common';
import { Allow } from 'class-validator';
import { Must, MustBeBoolean, MustBeInteger, Optional } from '../common/check-input.js';
import { type IdGenerator } from '../common/ids.js';
import { type OrchestrationOptions } from '../orchestration/orchestration.options.js';
import { type SweepOptions } from '../maintenance/sweep.options.js';
import { type TokenCounter } from '../conversation/token-counter.js';
import { type PrincipalResolver } from '../transport/principal.js';
import { type SessionsControllersOptions } from '../http/controllers/controllers.options.js';
import { MAX_SECONDS, SECONDS_RULE, toSeconds } from '../common/seconds.js';
import { isSessionsAdapter, type SessionsAdapter } from '../ledger/sessions.adapter.js';
import { type StateOptions } from '../state/state.options.js';
import {
  SURFACE_LIMIT_POLICIES,
  SURFACE_POLICIES,
  type SurfaceLimitPolicy,
  type SurfacePolicy,
} from '../ledger/session.js';
import { type TurnsOptions } from '../turn/turn.options.js';

const isMethod = (value: unknown): boolean => typeof value === 'function';

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

  /**
   * When idle sessions are suspended, expire, and are deleted; `false` switches all of it off. Default: those of each option.
   */
  @Allow()
  sweep?: false | SweepOptions;

  /** How turns are queued, run and tried again. Default: those of each option. */
  @Allow()
  turns?: TurnsOptions;

  /** What is kept of plans of steps. Default: those of each option. */
  @Allow()
  orchestration?: OrchestrationOptions;

  /** Which state modules there are, and what of them is shown. Default: those of each option. */
  @Allow()
  state?: StateOptions;

  /** Whether spans and metrics are told to OpenTelemetry, where `@opentelemetry/api` is installed. Default true. */
  @Optional()
  @MustBeBoolean()
  telemetry?: boolean;

  /** Who keeps a surface that two sessions of a user want: `move` (default) it, `reject` the second, or `share` it. */
  @Optional()
  @Must((value) => SURFACE_POLICIES.includes(value as SurfacePolicy), `must be one of ${SURFACE_POLICIES.join(', ')}.`)
  surfacePolicy?: SurfacePolicy;

  /** Surfaces that one session may have attached. Default 16. */
  @Optional()
  @MustBeInteger(1, 1000)
  maxSurfacesPerSession?: number;

  /**
   * How a session at that limit gets another surface: `detach` (default) detaches the surface that was attached first,
   * `reject` refuses.
   */
  @Optional()
  @Must(
    (value) => SURFACE_LIMIT_POLICIES.includes(value as SurfaceLimitPolicy),
    `must be one of ${SURFACE_LIMIT_POLICIES.join(', ')}.`,
  )
  onSurfaceLimit?: SurfaceLimitPolicy;

  /** Bytes that a session's metadata may take as JSON. Default 65,536. */
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
  /** What this process does with turns. Default `both`. */
  readonly role?: ProcessRole;
  /** HTTP of this package's own; each controller needs guards. Default: none. */
  readonly controllers?: SessionsControllersOptions;
}

/** What the class of `useClass` or `useExisting` implements. */
export interface SessionsOptionsFactory {
  /** Called once, at the start. */
  createSessionsOptions(): SessionsModuleOptions | Promise<SessionsModuleOptions>;
}

/** What `SessionsModule.forRootAsync` takes: one of `useFactory`, `useClass` and `useExisting`. */
export interface SessionsModuleAsyncOptions extends SessionsModuleStatics, Pick<ModuleMetadata, 'imports'> {
  /** Returns the options, or a promise of them; gets what `inject` names. Default: one of the other two. */
  readonly useFactory?: FactoryProvider<SessionsModuleOptions>['useFactory'];
  /** Tokens of what `useFactory` gets. Default: nothing. */
  readonly inject?: FactoryProvider['inject'];
  /** A class that is made here. Default: one of the other two. */
  readonly useClass?: Type<SessionsOptionsFactory>;
  /** A provider of the imported modules. Default: one of the other two. */
  readonly useExisting?: Type<SessionsOptionsFactory>;
}
