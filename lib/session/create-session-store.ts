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
import { missingOfSessions, SESSION_METHODS, type SessionStoreAdapter } from '../ledger/session.store.js';

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

/**
 * Creates a session store without Nest (SES-17).
 * @throws SessionsConfigurationError for an unknown or invalid setting, or if the adapter lacks a method
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
  const missing = missingOfSessions(value);
  if (missing.length === 0) return;
  const basic = Object.keys(SESSION_METHODS);
  const methods = missing.some((name) => basic.includes(name))
    ? `the methods ${basic.join(', ')}.`
    : 'all methods of AtomicSessionStoreAdapter, because it has some of them.';
  throw new SessionsConfigurationError(`${path} must have ${methods} Missing: ${missing.join(', ')}.`);
}

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
