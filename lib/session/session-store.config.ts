import { Allow } from 'class-validator';
import { Must, MustBeInteger, Optional } from '../common/check-input.js';
import { type IdGenerator } from '../common/ids.js';
import {
  SURFACE_LIMIT_POLICIES,
  SURFACE_POLICIES,
  type SurfaceLimitPolicy,
  type SurfacePolicy,
} from '../ledger/session.js';
import { type SessionStoreAdapter } from '../ledger/session.store.js';

/** The options of `createSessionStore`. */
export class SessionStoreConfig {
  /** The store of the sessions; use `new InMemorySessionStoreAdapter()` in tests. */
  @Allow()
  readonly adapter!: SessionStoreAdapter;

  /** Idle time in milliseconds after which an active session is suspended. Default 3,600,000 (an hour). */
  @Optional()
  @Must(isDuration, 'must be a number of milliseconds, 0 or more.')
  readonly defaultTtlMs?: number;

  /** Idle time in milliseconds after which `sweepExpired` expires suspended and never used sessions. Default: never. */
  @Optional()
  @Must(isDuration, 'must be a number of milliseconds, 0 or more.')
  readonly expireAfterMs?: number;

  /** Maximum lifetime of a session in milliseconds since its creation, whatever its activity. Default: no limit (SES-19). */
  @Optional()
  @Must(isDuration, 'must be a number of milliseconds, 0 or more.')
  readonly maxLifetimeMs?: number;

  /** How to handle a surface that two sessions of a user attach. Default `move` (SES-07). */
  @Optional()
  @Must((value) => SURFACE_POLICIES.includes(value as SurfacePolicy), `must be one of ${SURFACE_POLICIES.join(', ')}.`)
  readonly surfacePolicy?: SurfacePolicy;

  /** Maximum number of surfaces attached to a session. Default 16. */
  @Optional()
  @MustBeInteger(1, 1000)
  readonly maxSurfacesPerSession?: number;

  /** Whether an attach at that limit detaches the oldest attachment or is rejected. Default `detach`. */
  @Optional()
  @Must(
    (value) => SURFACE_LIMIT_POLICIES.includes(value as SurfaceLimitPolicy),
    `must be one of ${SURFACE_LIMIT_POLICIES.join(', ')}.`,
  )
  readonly onSurfaceLimit?: SurfaceLimitPolicy;

  /** Maximum size of the merged metadata as JSON, in bytes. Default 65,536. */
  @Optional()
  @MustBeInteger(2, 16_777_216)
  readonly maxMetadataBytes?: number;

  /** Generates session ids. Default: 128 random bits as hexadecimal digits. */
  @Optional()
  @Must((value) => typeof value === 'function', 'must be a function that returns an id.')
  readonly generateId?: IdGenerator;
}

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
