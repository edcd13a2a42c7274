import { Allow } from 'class-validator';
import { Must, MustBeInteger, Optional, validateInput } from '../common/check-input.js';
import { type IdGenerator } from '../common/ids.js';
import { SessionsConfigurationError } from '../common/sessions.error.js';
import {
  SURFACE_LIMIT_POLICIES,
  SURFACE_POLICIES,
  type SurfaceLimitPolicy,
  type SurfacePolicy,
} from '../ledger/session.js';
import { SessionStore, type SessionStoreSettings } from './session-store.service.js';
import { type SessionStoreAdapter } from '../ledger/session.store.js';

/** The options of `createSessionStore`; see {@link SessionStoreSettings}. */
export class SessionStoreConfig implements SessionStoreSettings {
  /** The store of the sessions; use `new InMemorySessionStoreAdapter()` in tests. */
  @Allow()
  readonly adapter!: SessionStoreAdapter;

  @Optional()
  @Must(isDuration, 'must be a number of milliseconds, 0 or more.')
  readonly defaultTtlMs?: number;

  @Optional()
  @Must(isDuration, 'must be a number of milliseconds, 0 or more.')
  readonly expireAfterMs?: number;

  @Optional()
  @Must(isDuration, 'must be a number of milliseconds, 0 or more.')
  readonly maxLifetimeMs?: number;

  @Optional()
  @Must((value) => SURFACE_POLICIES.includes(value as SurfacePolicy), `must be one of ${SURFACE_POLICIES.join(', ')}.`)
  readonly surfacePolicy?: SurfacePolicy;

  @Optional()
  @MustBeInteger(1, 1000)
  readonly maxSurfacesPerSession?: number;

  @Optional()
  @Must(
    (value) => SURFACE_LIMIT_POLICIES.includes(value as SurfaceLimitPolicy),
    `must be one of ${SURFACE_LIMIT_POLICIES.join(', ')}.`,
  )
  readonly onSurfaceLimit?: SurfaceLimitPolicy;

  @Optional()
  @MustBeInteger(2, 16_777_216)
  readonly maxMetadataBytes?: number;

  @Optional()
  @Must((value) => typeof value === 'function', 'must be a function that returns an id.')
  readonly generateId?: IdGenerator;
}

const METHODS = ['insert', 'fetchById', 'fetchMany', 'update', 'delete'] as const;

/**
 * Creates a session store without Nest (SES-17).
 * @throws SessionsConfigurationError for an unknown or invalid setting, or if the adapter lacks one of its five methods
 */
export function createSessionStore(config: SessionStoreConfig): SessionStore {
  const checked = validateInput(SessionStoreConfig, config, 'config');
  if ('problem' in checked) {
    const { path, rule } = checked.problem;
    throw new SessionsConfigurationError(`createSessionStore: ${path} ${rule}`);
  }
  const { adapter, ...settings } = checked.value;
  assertSessionStoreAdapter(adapter, 'createSessionStore: config.adapter');
  return new SessionStore(adapter, settings);
}

function assertSessionStoreAdapter(value: unknown, path: string): asserts value is SessionStoreAdapter {
  const missing = METHODS.filter(
    (name) => typeof (value as Record<string, unknown> | null | undefined)?.[name] !== 'function',
  );
  if (missing.length > 0) {
    throw new SessionsConfigurationError(
      `${path} must have the methods ${METHODS.join(', ')}. Missing: ${missing.join(', ')}.`,
    );
  }
}

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
